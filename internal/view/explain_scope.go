package view

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// outOfScope returns the reason why links to u are not followed, or "" if they are. A topic may admit a URL that the
// crawl's own scope refuses.
func (v *View) outOfScope(ctx context.Context, c *blobschema.Crawl, w *blobschema.DesiredState, u weburl.URL) (string, error) {
	// Scope 0 is the crawl's own, the others are those of the topics by number. Rows of one topic share a scope: of the first.
	s := &c.Settings
	scopes := append([]blobschema.Topic{{Scope: s.Scope, Include: s.Include, Exclude: s.Exclude}}, s.Topics...)
	first, inside := make([]int, len(scopes)), make([]bool, len(scopes))
	for i := range scopes {
		first[i] = i
		if i > 1 && scopes[i].Name == scopes[i-1].Name {
			first[i] = first[i-1]
		}
		inside[i] = scopes[i].Scope == blobschema.ScopeAny
	}
	var names []string // in the crawl's own scope
	add := func(number int, h weburl.Host) {
		if number >= len(scopes) {
			return
		}
		i := first[number]
		n := nameIn(scopes[i].Scope, h)
		inside[i] = inside[i] || n == nameIn(scopes[i].Scope, u.Host())
		if i == 0 && len(names) < 4 && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if err := v.eachSeed(ctx, c, func(_ uint64, topic uint8, seed weburl.URL) bool { add(int(topic), seed.Host()); return true }); err != nil {
		return "", err
	}
	for _, entry := range w.Scope { // a host, or the number of a topic, a slash and a host
		number, host, ok := strings.Cut(entry, "/")
		if !ok {
			number, host = "0", entry
		}
		n, err := strconv.ParseUint(number, 10, 8)
		if h, herr := weburl.ParseHost(host); err == nil && herr == nil {
			add(int(n), h)
		}
	}
	for i := range scopes {
		if inside[i] && outOfPatterns(&scopes[i], u) == "" {
			return "", nil
		}
	}
	if inside[0] {
		return outOfPatterns(&scopes[0], u), nil
	}
	if len(names) == 0 {
		return "out of scope: no topic admits it", nil
	}
	if len(names) > 3 {
		names[3] = "…"
	}
	return fmt.Sprintf("out of scope: with --scope %s the crawl keeps to %s", s.Scope, strings.Join(names, ", ")), nil
}

// nameIn is what a scope compares of a host.
func nameIn(s blobschema.Scope, h weburl.Host) string {
	if s == blobschema.ScopeDomain {
		return h.RegistrableDomain()
	}
	return string(h)
}

// outOfPatterns returns which pattern of a scope excludes u.
func outOfPatterns(s *blobschema.Topic, u weburl.URL) string {
	matches := func(expr string) bool {
		re, err := regexp.Compile(expr)
		return err == nil && re.MatchString(u.String())
	}
	for _, expr := range s.Exclude {
		if matches(expr) {
			return fmt.Sprintf("out of scope: --exclude %q matches it", expr)
		}
	}
	if len(s.Include) > 0 && !slices.ContainsFunc(s.Include, matches) {
		return fmt.Sprintf("out of scope: no --include matches it: %q", s.Include)
	}
	return ""
}
