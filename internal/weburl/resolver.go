package weburl

import "strings"

const (
	resolverBits = 15  // logarithm of the number of remembered URLs
	maxKnown     = 256 // length of the longest URL that is remembered
)

// A Resolver resolves the references of one document after another, like [URL.Resolve], and remembers canonical URLs.
// Pages of a site repeat most of their links: a repeated link takes one lookup, and all copies share one text.
//
// A remembered URL is used only if it is the canonical text that the reference would have, so the result does not depend on
// earlier documents. The zero value is ready for use. It takes up to about 10 MB and is not safe for concurrent use.
type Resolver struct {
	base        URL
	origin, dir prefix
	known       []URL // by hash; nil before the first reference
}

// prefix is a part of the base that precedes references.
type prefix struct {
	text string
	hash uint64
}

// SetBase sets the base of the following references.
func (r *Resolver) SetBase(base URL) {
	origin, dir := base.s[:base.hostEnd], base.s[:int(base.hostEnd)+strings.LastIndexByte(base.Path(), '/')+1]
	r.base, r.origin, r.dir = base, prefix{origin, hash(origin)}, prefix{dir, hash(dir)}
}

// Resolve resolves a reference. The result shares no memory with ref.
func (r *Resolver) Resolve(ref string) (URL, error) {
	before, ok := r.before(ref)
	if !ok {
		return resolve(r.base, ref)
	}
	if r.known == nil {
		r.known = make([]URL, 1<<resolverBits)
	}
	known := &r.known[(before.hash^hash(ref))>>(64-resolverBits)]
	if known.joins(before.text, ref) {
		return *known, nil
	}
	u, err := resolve(r.base, ref)
	if err == nil && len(u.s) <= maxKnown && u.joins(before.text, ref) {
		*known = u
	}
	return u, err
}

// joins reports whether the text of u is that of a, then b.
func (u *URL) joins(a, b string) bool {
	return len(u.s) == len(a)+len(b) && u.s[len(a):] == b && u.s[:len(a)] == a
}

// before returns the part of the base that precedes ref in its canonical URL, if ref is written canonically. It returns
// false for references of other forms: these are not remembered.
func (r *Resolver) before(ref string) (p prefix, ok bool) {
	switch {
	case ref == "" || ref[0] == '?':
		return p, false
	case ref[0] == '/':
		return r.origin, len(ref) == 1 || ref[1] != '/'
	case strings.HasPrefix(ref, "http"): // an absolute URL; other references are not found, and resolved
		return p, true
	}
	return r.dir, strings.IndexByte(ref, ':') < 0 // text before a colon may be a scheme
}

// hash is a fast hash of eight bytes at a time. A collision costs a miss, so it need not withstand an attack.
func hash(s string) uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio
	h := uint64(len(s))
	for ; len(s) >= 8; s = s[8:] {
		h = (h ^ (uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)) * odd
		h ^= h >> 32
	}
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * odd
	}
	return (h ^ h>>32) * odd
}
