package extract

import (
	"bytes"
	"slices"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxHeaderLinks bounds the links that one answer's header gives.
const maxHeaderLinks = 100

// AddLinkHeader adds to the links of a page those in the Link fields of its header (RFC 8288)
// that a link element of HTML would give: rel canonical, next, prev, and
// alternate if it has no type or one of HTML (actor.LinkHeader) or of a feed
// (actor.LinkFeed). It keeps at most [MaxLinks] links, without duplicates and without self.
// rel=nofollow sets NoFollow; a link that also occurs in the page has NoFollow only if both have it. A
// link whose anchor parameter names another document is ignored. If a value violates
// the grammar, the links before the error count.
func AddLinkHeader(links []actor.Link, values []string, self weburl.URL) []actor.Link {
	n := 0
	for _, v := range values {
		for rest := []byte(v); n < maxHeaderLinks; {
			var l headerLink
			var ok bool
			if l, rest, ok = nextHeaderLink(rest); !ok {
				break
			}
			kind, ok := relation(l.rel, l.typ)
			if !ok || len(l.target) > maxHref {
				continue
			}
			if l.anchor != nil {
				if u, err := self.Resolve(string(l.anchor)); err != nil || u != self {
					continue
				}
			}
			u, err := self.Resolve(string(l.target))
			if err != nil || u == self {
				continue
			}
			if kind == actor.LinkRel {
				kind = actor.LinkHeader
			}
			links = mergeLink(links, actor.Link{URL: u, Kind: kind, NoFollow: hasToken(l.rel, "nofollow")})
			n++
		}
	}
	return links
}

// mergeLink adds a link unless its URL is already there.
func mergeLink(links []actor.Link, l actor.Link) []actor.Link {
	i := slices.IndexFunc(links, func(old actor.Link) bool { return old.URL == l.URL })
	switch {
	case i >= 0:
		links[i].NoFollow = links[i].NoFollow && l.NoFollow
	case len(links) < MaxLinks:
		links = append(links, l)
	}
	return links
}

// A headerLink is one link of a Link field: its target and its relevant parameters,
// nil if absent. The first of repeated parameters counts (RFC 8288 section 3.3).
type headerLink struct {
	target, rel, typ, anchor []byte
}

// nextHeaderLink cuts the first link off a value (RFC 8288 appendix B.2). It
// returns false if the value has no link.
func nextHeaderLink(s []byte) (l headerLink, rest []byte, ok bool) {
	s = bytes.TrimLeft(s, " \t,")
	if len(s) == 0 || s[0] != '<' {
		return l, nil, false
	}
	target, s, ok := bytes.Cut(s[1:], []byte(">"))
	if !ok {
		return l, nil, false
	}
	l.target = target
	for {
		s = bytes.TrimLeft(s, " \t")
		if len(s) == 0 || s[0] != ';' {
			break
		}
		s = bytes.TrimLeft(s[1:], " \t")
		n := tokenLength(s)
		name, value := s[:n], []byte{}
		s = bytes.TrimLeft(s[n:], " \t")
		if len(s) > 0 && s[0] == '=' {
			value, s = parameterValue(bytes.TrimLeft(s[1:], " \t"))
		}
		for _, p := range [...]struct {
			name string
			to   *[]byte
		}{{"rel", &l.rel}, {"type", &l.typ}, {"anchor", &l.anchor}} {
			if *p.to == nil && equalFold(name, p.name) {
				*p.to = value
			}
		}
	}
	if len(s) > 0 && s[0] != ',' {
		return l, nil, false // the end of the parameters is unclear
	}
	return l, s, true
}

// tokenLength counts the bytes before a delimiter of parameters.
func tokenLength(s []byte) int {
	if n := bytes.IndexAny(s, " \t=;,"); n >= 0 {
		return n
	}
	return len(s)
}

// parameterValue cuts a token or a quoted string (RFC 9110 section 5.6.4) off s.
// The value is not nil.
func parameterValue(s []byte) (value, rest []byte) {
	if len(s) == 0 || s[0] != '"' {
		n := tokenLength(s)
		return s[:n:n], s[n:]
	}
	value = []byte{}
	for s = s[1:]; len(s) > 0 && s[0] != '"'; s = s[1:] {
		if s[0] == '\\' && len(s) > 1 {
			s = s[1:]
		}
		value = append(value, s[0])
	}
	return value, s[min(1, len(s)):]
}
