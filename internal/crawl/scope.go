package crawl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// scopes holds the scopes of a crawl's topics by number. Number 0 is the crawl's own scope, for URLs without a topic.
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

// of returns the scope of a topic; for an unknown topic, the crawl's own.
func (l scopes) of(topic uint8) *scope {
	if int(topic) < len(l) {
		return l[topic]
	}
	return l[0]
}

// adopt takes the names in scope from the scopes before a change of settings.
func (l scopes) adopt(old scopes) {
	for i := range old {
		if i < len(l) {
			l[i].names = old[i].names
		}
	}
}

// admit returns the first topic whose scope contains a URL.
func (l scopes) admit(u weburl.URL) (topic uint8, ok bool) {
	for i := range l {
		n := (i + 1) % len(l) // the crawl's own comes last
		if l[n].host(u.Host()) && l[n].patterns(u) {
			return uint8(n), true
		}
	}
	return 0, false
}

// bounded reports whether the host of a link can be out of scope.
func (l scopes) bounded() bool {
	return slices.ContainsFunc(l, func(s *scope) bool { return s.kind != blobschema.ScopeAny })
}

// add adds a host to the scope of a topic, from an entry in a head or the desired state.
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

// take adds a host to the scope of a topic, and reports whether it is new. It ignores an unknown topic; the step reads that
// topic's seeds again when it learns of the topic.
func (l scopes) take(topic uint8, h weburl.Host) bool {
	return int(topic) < len(l) && l[topic].add(h)
}

// ScopeEntry returns the entry of a host in the scope of a topic: "www.example.org", or "2/www.example.org" for topic 2.
func ScopeEntry(topic uint8, h weburl.Host) string {
	if topic == 0 {
		return string(h)
	}
	return fmt.Sprintf("%d/%s", topic, h)
}

// OutOfScope returns the reason why links to a URL are not followed, or "" if they are. hosts are the entries of the hosts
// in scope.
func OutOfScope(set *blobschema.Settings, hosts []string, u weburl.URL) (string, error) {
	l, err := newScopes(set)
	if err != nil {
		return "", err
	}
	for _, entry := range hosts {
		l.add(entry)
	}
	if _, ok := l.admit(u); ok {
		return "", nil
	}
	own := l[0]
	if own.host(u.Host()) {
		for _, re := range own.exclude {
			if re.MatchString(u.String()) {
				return fmt.Sprintf("out of scope: --exclude %q matches it", re), nil
			}
		}
		return fmt.Sprintf("out of scope: no --include matches it: %q", set.Include), nil
	}
	names := slices.Sorted(maps.Keys(own.names))
	if len(names) == 0 {
		return "out of scope: no topic admits it", nil
	}
	if len(names) > 3 {
		names = append(names[:3], "…")
	}
	return fmt.Sprintf("out of scope: with --scope %s the crawl keeps to %s", set.Scope, strings.Join(names, ", ")), nil
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

// add adds a host to the scope and reports whether it is new.
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

// patterns reports whether the operator's patterns allow a URL.
func (sc *scope) patterns(u weburl.URL) bool {
	return !sc.excludes(u) && (len(sc.include) == 0 || matchesAny(sc.include, u))
}

func (sc *scope) excludes(u weburl.URL) bool { return matchesAny(sc.exclude, u) }

func matchesAny(list []*regexp.Regexp, u weburl.URL) bool {
	s := u.String()
	return slices.ContainsFunc(list, func(re *regexp.Regexp) bool { return re.MatchString(s) })
}

func (sc *scope) depth(d int) bool { return sc.maxDepth < 0 || d <= sc.maxDepth }
