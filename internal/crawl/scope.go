package crawl

import (
	"fmt"
	"regexp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// scope decides which links are followed.
type scope struct {
	kind     blobschema.Scope
	names    map[string]bool // hosts or registrable domains
	include  []*regexp.Regexp
	exclude  []*regexp.Regexp
	maxDepth int
}

func newScope(s blobschema.Settings) (*scope, error) {
	sc := &scope{kind: s.Scope, names: map[string]bool{}, maxDepth: s.MaxDepth}
	for _, list := range []struct {
		from []string
		to   *[]*regexp.Regexp
	}{{s.Include, &sc.include}, {s.Exclude, &sc.exclude}} {
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
