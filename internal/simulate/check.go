package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/virtual"
	"github.com/orbweaver/orbweaver/partition"
)

// check compares the result of a run with the ground truth.
func (w *world) check() error {
	all, err := w.visible()
	if err != nil {
		return err
	}
	if err := w.checkRecrawls(all); err != nil {
		return err
	}
	got := map[string]simweb.Got{}
	for url, pages := range all {
		if simweb.IsSitemap(url) {
			continue // the truth has only pages
		}
		last := blobschema.Page{}
		for _, p := range pages { // a requested URL that is out of scope is not part of the crawl
			if p.Outcome != blobschema.OutcomeScope && (last.URL == "" || p.Generation > last.Generation) {
				last = p
			}
		}
		if last.URL != "" {
			w.requisites[url] = wasRequisite(pages)
			g := simweb.GotOf(last)
			if w.changed[hostOf(url)] { // it may be any version of a page that changes
				g.Digest = ""
			}
			got[url] = g
		}
	}
	w.got, w.result.Pages = got, len(got)
	rep, err := w.fsck()
	if err != nil {
		return err
	}
	if x := rep.Index; w.cfg.Index && (x == nil || x.Behind+x.Unindexed+x.Stale > 0) { // every page of the web has text
		return broken("I11", "the index is not complete: %+v", x)
	}
	switch {
	case w.cfg.Killer != "":
		return w.checkKiller(got)
	case w.cfg.MaxPages > 0:
		return w.checkLimit(got)
	}
	scope := simweb.Scope{Agent: agent, MaxDepth: max(0, w.cfg.MaxDepth), Attempts: 0, Requisites: w.cfg.Requisites}
	if w.cfg.Scope == blobschema.ScopeHost {
		scope.Seeds, scope.Within = slices.Clone(w.cfg.Seeds), w.inScope()
		for _, wi := range w.recrawls { // the crawl follows requested URLs that are in scope
			if _, fetched := got[wi.url]; fetched && scope.Within(wi.url) {
				scope.Seeds = append(scope.Seeds, wi.url)
			}
		}
	}
	truth := w.web.Truth(scope)
	if len(w.changed) > 0 {
		forget(truth, got)
	}
	if d := simweb.Diff(truth, got); d != "" {
		return broken("truth", "the result differs from the ground truth:\n%s%s", d, w.heads())
	}
	return nil
}

// forget removes the URLs that were refused without an answer. Pages that have changed lead to the same answered pages as
// before, but perhaps to other refused ones.
func forget(truth simweb.Truth, got map[string]simweb.Got) {
	for url, e := range truth.Pages {
		if !e.Outcome.Answered() {
			delete(truth.Pages, url)
			delete(got, url)
		}
	}
	for url, g := range got {
		if _, ok := truth.Pages[url]; !ok && !g.Outcome.Answered() {
			delete(got, url)
		}
	}
}

// fsck runs the independent checker over everything stored.
func (w *world) fsck() (fsck.Report, error) {
	opt := fsck.Options{Crawl: w.crawl.ID, Skew: w.skew()} // the times in records may be wrong by as much
	if w.result.Faults[Jump] > 0 {                         // a step keeps paces by the clock as it was at its start
		opt.Skew *= 2
	}
	rep, err := fsck.Check(context.Background(), &w.Store, opt)
	if err == nil && len(rep.Violations) > 0 {
		var b strings.Builder
		for _, v := range rep.Violations[:min(10, len(rep.Violations))] {
			fmt.Fprintf(&b, "\n  %+v", v)
		}
		err = broken("fsck "+rep.Violations[0].Invariant, "%d violations:%s", len(rep.Violations), b.String())
	}
	return rep, err
}

// inScope returns a test for the URLs that a crawl of the seeds' hosts should fetch: those of the hosts of seeds and of
// their redirects.
func (w *world) inScope() func(string) bool {
	hosts := map[string]bool{}
	truth := w.web.Truth(simweb.Scope{Agent: agent, Seeds: w.cfg.Seeds, SkipDigests: true})
	for _, s := range w.cfg.Seeds {
		for hop := 0; s != "" && hop <= 5; hop++ {
			hosts[hostOf(s)] = true
			e := truth.Pages[s]
			if s = ""; e.Kind == simweb.KindRedirect {
				s = e.Redirect
			}
		}
	}
	return func(url string) bool { return hosts[hostOf(url)] }
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// visible reads the page records that are reachable from the heads.
func (w *world) visible() (map[string][]blobschema.Page, error) {
	got := map[string][]blobschema.Page{}
	for p := range partition.ID(w.partitions()) {
		part := w.part(p)
		if part.head.Commit == "" {
			continue
		}
		for name := range blobschema.CommitNames(&part.man) {
			c, err := blobschema.ReadCommit(w.Get, name)
			if err != nil {
				return nil, err
			}
			pages, err := c.Pages()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			for _, pg := range pages {
				if !pg.Robots {
					got[pg.URL] = append(got[pg.URL], pg)
				}
			}
		}
	}
	return got, nil
}

// checkKiller checks that the URL that crashes steps is refused, and no other URL is.
func (w *world) checkKiller(got map[string]simweb.Got) error {
	if o := got[w.cfg.Killer].Outcome; o != blobschema.OutcomeSuspect {
		return broken("suspect", "%s crashes every step, but its outcome is %v", w.cfg.Killer, o)
	}
	for url, g := range got {
		if g.Outcome == blobschema.OutcomeSuspect && url != w.cfg.Killer {
			return broken("suspect", "%s is refused as a suspect, but crashed nothing", url)
		}
	}
	return nil
}

// checkLimit checks a run with a page limit: it must store exactly that many pages if the web has them.
func (w *world) checkLimit(got map[string]simweb.Got) error {
	scope := simweb.Scope{Agent: agent, SkipDigests: true, Requisites: w.cfg.Requisites}
	if w.cfg.Scope == blobschema.ScopeHost {
		scope.Seeds, scope.Within = w.cfg.Seeds, w.inScope()
	}
	truth := w.web.Truth(scope)
	want, least := int64(0), int64(0)
	for _, e := range truth.Pages {
		if e.Outcome == blobschema.OutcomeOK {
			want++
			if !e.Optional {
				least++
			}
		}
	}
	n, all := int64(0), int64(0)
	for url, g := range got {
		if g.Outcome == blobschema.OutcomeOK {
			all++
			if !w.requisites[url] { // they do not count, even if a page is one
				n++
			}
		}
	}
	most := min(want, w.cfg.MaxPages)
	if len(w.recrawls) > 0 { // a requested URL may link to pages that the seeds do not lead to
		most = w.cfg.MaxPages + int64(len(w.recrawls))
	}
	if all < min(least, w.cfg.MaxPages) || n > most {
		return broken("limit", "%d pages are stored; the limit is %d, and the web has %d", n, w.cfg.MaxPages, want)
	}
	if w.cfg.Requisites && len(w.changed) == 0 { // an earlier version of a page may have needed or linked to something else
		return w.checkWhole(got)
	}
	return nil
}

// checkWhole checks that the crawl requested what the stored pages need to be displayed. The limit may leave out a URL that is also
// a seed or a link: it counts as a page.
func (w *world) checkWhole(got map[string]simweb.Got) error {
	stored := func(url string) bool { return got[url].Outcome == blobschema.OutcomeOK && !w.requisites[url] }
	links := simweb.Scope{Agent: agent, MaxDepth: 1, SkipDigests: true, SkipSitemaps: true}
	links.Seeds = slices.Concat(slices.Collect(maps.Keys(got)), w.cfg.Seeds, w.web.Seeds())
	linked := w.web.Truth(links).Pages
	need := simweb.Scope{Agent: agent, SkipDigests: true, SkipSitemaps: true, Requisites: true, Within: stored}
	need.Without = func(url string) bool {
		_, ok := got[url]
		return !ok && linked[url].Kind != ""
	}
	need.Seeds = slices.DeleteFunc(slices.Collect(maps.Keys(got)), func(url string) bool { return !stored(url) })
	for url := range w.web.Truth(need).Pages {
		if _, ok := got[url]; !ok {
			return broken("limit", "stored pages need %s, which was not requested", url)
		}
	}
	return nil
}

func decodeJSON[T any](b []byte) (v T, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("decode %T: %w", v, err)
	}
	return v, nil
}

// wasRequisite reports whether a URL was only a requisite at first: it may be requested once more as a page.
func wasRequisite(pages []blobschema.Page) bool {
	return slices.ContainsFunc(pages, func(p blobschema.Page) bool { return p.Requisite })
}

// checkRecrawls checks that each requested URL in scope was fetched or refused after it was requested, and no more often than
// it was requested.
func (w *world) checkRecrawls(got map[string][]blobschema.Page) error {
	requests, last := map[string]map[string]bool{}, map[string]time.Duration{}
	for _, wi := range w.recrawls {
		if requests[wi.url] == nil {
			requests[wi.url] = map[string]bool{}
		}
		requests[wi.url][wi.id] = true
		last[wi.url] = max(last[wi.url], wi.at)
	}
	for url, pages := range got {
		latest := blobschema.Page{}
		for _, p := range pages {
			if latest.URL == "" || p.Time.After(latest.Time) {
				latest = p
			}
			if w.cfg.PerHour == 0 && p.Generation > 0 && int(p.Generation) > len(requests[url]) && !wasRequisite(pages) {
				return broken("requests", "%s has generation %d after %d requests", url, p.Generation, len(requests[url]))
			}
		}
		if at, ok := last[url]; ok && latest.Time.Before(virtual.Epoch.Add(at-w.skew())) {
			return broken("requests", "%s was requested at %v, but has no record after %v", url, at, latest.Time.Sub(virtual.Epoch))
		}
		delete(last, url)
	}
	for url, at := range last {
		return broken("requests", "%s was requested at %v, but has no record", url, at)
	}
	return nil
}
