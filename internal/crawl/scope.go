package crawl

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// scopes are those of a crawl's topics by number. 0 is that of what belongs to none, and of a
// crawl without topics.
type scopes []*scope

func newScopes(s *blobschema.Settings) (scopes, error) {
	own, err := newScope(s.Scope, s.Include, s.Exclude, s.MaxDepth)
	if err != nil {
		return nil, err
	}
	list := scopes{own}
	for i := range s.Topics {
		t := &s.Topics[i]
		if i > 0 && t.Name == s.Topics[i-1].Name {
			list = append(list, list[i])
			continue
		}
		sc, err := newScope(t.Scope, t.Include, t.Exclude, t.MaxDepth)
		if err != nil {
			return nil, fmt.Errorf("topic %q: %w", t.Name, err)
		}
		list = append(list, sc)
	}
	return list, nil
}

// of returns the scope of a topic; that of one nobody knows is the crawl's own.
func (l scopes) of(topic uint8) *scope {
	if int(topic) < len(l) {
		return l[topic]
	}
	return l[0]
}

// adopt takes over the names that are in scope, when the settings have changed.
func (l scopes) adopt(old scopes) {
	for i := range old {
		if i < len(l) {
			l[i].names = old[i].names
		}
	}
}

// admit returns the first topic that a URL is in the scope of.
func (l scopes) admit(u weburl.URL) (topic uint8, ok bool) {
	for i := range l {
		n := (i + 1) % len(l) // the crawl's own comes last
		if l[n].host(u.Host()) && l[n].patterns(u) {
			return uint8(n), true
		}
	}
	return 0, false
}

// bounded reports whether any link may be out of scope for its host.
func (l scopes) bounded() bool {
	return slices.ContainsFunc(l, func(s *scope) bool { return s.kind != blobschema.ScopeAny })
}

// add takes a host into the scope of a topic as it is told in heads and wishes.
func (l scopes) add(entry string) {
	topic, host := 0, entry
	if number, rest, ok := strings.Cut(entry, "/"); ok {
		n, err := strconv.ParseUint(number, 10, 8)
		if err != nil {
			return
		}
		topic, host = int(n), rest
	}
	if h, err := weburl.ParseHost(host); err == nil {
		l.take(uint8(topic), h)
	}
}

// take takes a host into the scope of a topic, and reports whether that is news. That of a
// topic nobody knows yet is not the crawl's own: its seeds are read again when it is known.
func (l scopes) take(topic uint8, h weburl.Host) bool {
	return int(topic) < len(l) && l[topic].add(h)
}

// scopeEntry is how a host that is in the scope of a topic is told: "www.example.org", or
// "2/www.example.org" for topic 2.
func scopeEntry(topic uint8, h weburl.Host) string {
	if topic == 0 {
		return string(h)
	}
	return fmt.Sprintf("%d/%s", topic, h)
}

// scope decides which links are followed.
type scope struct {
	kind     blobschema.Scope
	names    map[string]bool // hosts or registrable domains
	include  []*regexp.Regexp
	exclude  []*regexp.Regexp
	maxDepth int
}

func newScope(kind blobschema.Scope, include, exclude []string, maxDepth int) (*scope, error) {
	sc := &scope{kind: kind, names: map[string]bool{}, maxDepth: maxDepth}
	for _, list := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{include, &sc.include}, {exclude, &sc.exclude}} {
		for _, expr := range list.from {
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, fmt.Errorf("scope pattern %q: %w", expr, err)
			}
			*list.to = append(*list.to, re)
		}
	}
	return sc, nil
}

func (sc *scope) name(h weburl.Host) string {
	if sc.kind == blobschema.ScopeDomain {
		return h.RegistrableDomain()
	}
	return string(h)
}

// add takes a host into the scope and reports whether that is news.
func (sc *scope) add(h weburl.Host) bool {
	if sc.kind == blobschema.ScopeAny {
		return false
	}
	n := sc.name(h)
	if sc.names[n] {
		return false
	}
	sc.names[n] = true
	return true
}

func (sc *scope) host(h weburl.Host) bool {
	return sc.kind == blobschema.ScopeAny || sc.names[sc.name(h)]
}

// patterns reports whether the operator's patterns let a URL through.
func (sc *scope) patterns(u weburl.URL) bool {
	s := u.String()
	for _, re := range sc.exclude {
		if re.MatchString(s) {
			return false
		}
	}
	for _, re := range sc.include {
		if re.MatchString(s) {
			return true
		}
	}
	return len(sc.include) == 0
}

func (sc *scope) depth(d int) bool { return sc.maxDepth < 0 || d <= sc.maxDepth }
