package view

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// outOfScope returns the reason why links to u are not followed, or "" if they are.
func (v *View) outOfScope(ctx context.Context, c *blobschema.Crawl, w *blobschema.Wish, u weburl.URL) (string, error) {
	s := &c.Settings
	name := func(h weburl.Host) string { return string(h) }
	switch s.Scope {
	case blobschema.ScopeAny:
		return outOfPatterns(s, u), nil
	case blobschema.ScopeDomain:
		name = weburl.Host.RegistrableDomain
	}
	var names []string
	inside := false
	add := func(h weburl.Host) {
		n := name(h)
		inside = inside || n == name(u.Host())
		if len(names) < 4 && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	if err := v.eachSeed(ctx, c, func(_ uint64, seed weburl.URL) bool { add(seed.Host()); return !inside }); err != nil {
		return "", err
	}
	for _, h := range w.Scope {
		if h, err := weburl.ParseHost(h); err == nil {
			add(h)
		}
	}
	if inside {
		return outOfPatterns(s, u), nil
	}
	if len(names) > 3 {
		names[3] = "…"
	}
	return fmt.Sprintf("out of scope: with --scope %s the crawl keeps to %s", s.Scope, strings.Join(names, ", ")), nil
}

// outOfPatterns returns which of the operator's patterns excludes u.
func outOfPatterns(s *blobschema.Settings, u weburl.URL) string {
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
