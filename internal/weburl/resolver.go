package weburl

import (
	"hash/maphash"
	"strings"
)

const (
	resolverSize = 1 << 15 // remembered URLs
	maxKnown     = 256     // length of the longest URL that is remembered
)

// A Resolver resolves the references of one document after another, like [URL.Resolve], and remembers canonical URLs.
// Pages of a site repeat most of their links: a repeated link takes one lookup, and all copies share one text.
//
// A remembered URL is used only if it is the canonical text that the reference would have, so the result does not depend on
// earlier documents. The zero value is ready for use. It takes up to about 10 MB and is not safe for concurrent use.
type Resolver struct {
	base        URL
	origin, dir prefix
	seed        maphash.Seed
	known       []URL // by hash; nil until the first URL is remembered
}

// prefix is a part of the base that precedes references.
type prefix struct {
	text string
	hash uint64
}

// SetBase sets the base of the following references.
func (r *Resolver) SetBase(base URL) {
	if r.known == nil {
		r.seed = maphash.MakeSeed()
	}
	r.base = base
	r.origin = r.prefix(base.s[:base.hostEnd])
	r.dir = r.prefix(base.s[:int(base.hostEnd)+strings.LastIndexByte(base.Path(), '/')+1])
}

func (r *Resolver) prefix(text string) prefix { return prefix{text, maphash.String(r.seed, text)} }

// Resolve resolves a reference. The result shares no memory with ref.
func (r *Resolver) Resolve(ref string) (URL, error) {
	before, ok := r.before(ref)
	if !ok {
		return resolve(r.base, ref)
	}
	at := (before.hash ^ maphash.String(r.seed, ref)) % resolverSize
	if r.known != nil {
		if u := r.known[at]; len(u.s) == len(before.text)+len(ref) && u.s[len(before.text):] == ref && u.s[:len(before.text)] == before.text {
			return u, nil
		}
	}
	u, err := resolve(r.base, ref)
	if err == nil && len(u.s) <= maxKnown && len(u.s) == len(before.text)+len(ref) && u.s[len(before.text):] == ref {
		if r.known == nil {
			r.known = make([]URL, resolverSize)
		}
		r.known[at] = u
	}
	return u, err
}

// before returns the part of the base that precedes ref in its canonical URL, if ref is written canonically. It returns
// false for references of other forms: these are not remembered.
func (r *Resolver) before(ref string) (p prefix, ok bool) {
	switch {
	case ref == "" || ref[0] == '?':
		return p, false
	case ref[0] == '/':
		return r.origin, len(ref) == 1 || ref[1] != '/'
	case strings.HasPrefix(ref, "http"):
		return p, true
	}
	return r.dir, strings.IndexByte(ref, ':') < 0 // text before a colon may be a scheme
}
