package simulate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/partition"
)

// learnPace takes note of what a robots.txt asks of us, once its answer is here. It
// binds the step at once, and others from the step's clean end on: what a crashed step
// had only just learnt, nobody knows.
func (p *proc) learnPace(host string, body []byte) {
	if d, ok := polite.ParseRobots(body, agent).CrawlDelay(); ok {
		p.learnt[host] = max(p.learnt[host], min(d, polite.MaxCrawlDelay))
	}
}

// check compares the end of a run with the ground truth.
func (w *world) check() error {
	all, err := w.visible()
	if err != nil {
		return err
	}
	if err := w.checkWishes(all); err != nil {
		return err
	}
	got := map[string]simweb.Got{}
	for url, pages := range all {
		last := blobschema.Page{}
		for _, p := range pages { // what was asked for while out of scope is none of the crawl
			if p.Outcome != blobschema.OutcomeScope && (last.URL == "" || p.Generation > last.Generation) {
				last = p
			}
		}
		if last.URL != "" {
			got[url] = simweb.GotOf(last)
		}
	}
	w.result.Pages = len(got)
	if err := w.fsck(); err != nil {
		return err
	}
	switch {
	case w.cfg.Killer != "":
		return w.checkKiller(got)
	case w.cfg.MaxPages > 0:
		return w.checkLimit(got)
	}
	scope := simweb.Scope{Agent: agent, MaxDepth: max(0, w.cfg.MaxDepth), Attempts: 0}
	if w.cfg.Scope == blobschema.ScopeHost {
		scope.Seeds, scope.Within = slices.Clone(w.cfg.Seeds), w.inScope()
		for _, wi := range w.wishes { // what is asked for on purpose is crawled from, in scope
			if _, fetched := got[wi.url]; fetched && scope.Within(wi.url) {
				scope.Seeds = append(scope.Seeds, wi.url)
			}
		}
	}
	if d := simweb.Diff(w.web.Truth(scope), got); d != "" {
		return fmt.Errorf("the result differs from the ground truth:\n%s%s", d, w.heads())
	}
	return nil
}

// fsck has the independent checker look at everything that is stored.
func (w *world) fsck() error {
	rep, err := fsck.Check(context.Background(), store{w}, fsck.Options{Crawl: w.crawl.ID})
	if err != nil {
		return err
	}
	if len(rep.Violations) > 0 {
		var b strings.Builder
		for _, v := range rep.Violations[:min(10, len(rep.Violations))] {
			fmt.Fprintf(&b, "\n  %+v", v)
		}
		return fmt.Errorf("fsck found %d violations:%s", len(rep.Violations), b.String())
	}
	return nil
}

// scopeSeeds draws seeds for a crawl of their hosts: a root, and some URL that may
// redirect elsewhere.
func scopeSeeds(cfg simweb.Config, r *rand.Rand) []string {
	web, err := simweb.New(cfg)
	if err != nil {
		return nil
	}
	seeds := web.Seeds()
	for _, u := range web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Reachable() {
		if strings.Contains(u, "/go/") && r.IntN(4) == 0 {
			seeds = append(seeds, u)
		}
	}
	return seeds
}

// inScope says which URLs a crawl of the seeds' hosts should fetch: those of the
// hosts of seeds, and of what a seed redirects to.
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

// mayAcknowledge checks I5: the head names a commit that holds the mail's effect.
func (p *proc) mayAcknowledge(r embedded.Receipt) error {
	w := p.w
	m, err := blobschema.DecodeMail(w.bodies[r])
	if err != nil {
		return nil // put aside, not applied
	}
	v, _, ok := w.table.Get(blobschema.HeadKey(w.crawl.ID, p.part))
	if !ok {
		return fmt.Errorf("I5 broken: mail %d from %d to %d is acknowledged before any commit", m.Number, m.From, m.To)
	}
	h, err := decodeHead(v)
	if err != nil {
		return err
	}
	c, err := blobschema.OpenCommit(w.blobs[h.Commit])
	if err != nil {
		return fmt.Errorf("I5 broken: mail %d from %d is acknowledged: %w", m.Number, m.From, err)
	}
	man, err := c.Manifest()
	if err != nil {
		return err
	}
	marks := man.Applied[m.From]
	if m.Number > marks.Low && !slices.Contains(marks.Above, m.Number) {
		return fmt.Errorf("I5 broken: mail %d from %d to %d is acknowledged and not committed", m.Number, m.From, m.To)
	}
	return nil
}

// visible reads the page records that are reachable from the heads. A URL with two
// records of one generation breaks I8.
func (w *world) visible() (map[string][]blobschema.Page, error) {
	got := map[string][]blobschema.Page{}
	for p := range partition.ID(w.cfg.Partitions) {
		v, _, ok := w.table.Get(blobschema.HeadKey(w.crawl.ID, p))
		if !ok {
			continue
		}
		h, err := decodeHead(v)
		if err != nil {
			return nil, err
		}
		if h.Commit == "" {
			continue
		}
		if err := w.pagesOf(h.Commit, got); err != nil {
			return nil, err
		}
	}
	return got, nil
}

func (w *world) pagesOf(last string, got map[string][]blobschema.Page) error {
	c, err := blobschema.OpenCommit(w.blobs[last])
	if err != nil {
		return err
	}
	man, err := c.Manifest()
	if err != nil {
		return err
	}
	for name := range blobschema.CommitNames(&man) {
		c, err := blobschema.OpenCommit(w.blobs[name])
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		pages, err := c.Pages()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, pg := range pages {
			if pg.Robots {
				continue
			}
			for _, old := range got[pg.URL] {
				if old.Generation == pg.Generation && old.Outcome != blobschema.OutcomeScope && pg.Outcome != blobschema.OutcomeScope {
					return fmt.Errorf("I8 broken: generation %d of %s is visible twice", pg.Generation, pg.URL)
				}
			}
			got[pg.URL] = append(got[pg.URL], pg)
		}
	}
	return nil
}

// checkKiller checks that the URL which crashes steps is refused, and no other is.
func (w *world) checkKiller(got map[string]simweb.Got) error {
	if o := got[w.cfg.Killer].Outcome; o != blobschema.OutcomeSuspect {
		return fmt.Errorf("%s crashes every step, its outcome is %v", w.cfg.Killer, o)
	}
	for url, g := range got {
		if g.Outcome == blobschema.OutcomeSuspect && url != w.cfg.Killer {
			return fmt.Errorf("%s is refused as a suspect, but crashed nothing", url)
		}
	}
	return nil
}

// checkLimit checks a run with a page limit: exactly so many, if there are.
func (w *world) checkLimit(got map[string]simweb.Got) error {
	scope := simweb.Scope{Agent: agent, SkipDigests: true}
	if w.cfg.Scope == blobschema.ScopeHost {
		scope.Seeds, scope.Within = w.cfg.Seeds, w.inScope()
	}
	truth := w.web.Truth(scope)
	want := int64(0)
	for _, e := range truth.Pages {
		if e.Outcome == blobschema.OutcomeOK {
			want++
		}
	}
	n := int64(0)
	for _, g := range got {
		if g.Outcome == blobschema.OutcomeOK {
			n++
		}
	}
	most := min(want, w.cfg.MaxPages)
	if len(w.wishes) > 0 { // what is requested may link to what the seeds do not lead to
		most = w.cfg.MaxPages + int64(len(w.wishes))
	}
	if n < min(want, w.cfg.MaxPages) || n > most {
		return fmt.Errorf("%d pages are stored of a limit of %d, where there are %d", n, w.cfg.MaxPages, want)
	}
	return nil
}

// Scenario makes a scenario of a seed: everything about it is drawn.
func Scenario(seed uint64) Config {
	r := newRand(seed)
	pick := func(list ...int) int { return list[r.IntN(len(list))] }
	cfg := Config{
		Seed: seed, Web: simweb.Small(seed), Partitions: pick(1, 2, 3, 4, 8), Slots: pick(16, 64, 256, 1024),
		Connections: pick(1, 4, 16, 64), MaxDepth: -1, Scope: blobschema.ScopeAny, Delay: time.Duration(pick(0, 200, 1000)) * time.Millisecond,
	}
	if r.IntN(3) == 0 {
		cfg.MaxResident = pick(30, 100, 300)
	}
	cfg.MailEvery = time.Duration(pick(20, 120, 600)) * time.Second
	cfg.Local = r.IntN(3) == 0
	if r.IntN(6) == 0 {
		cfg.MaxPages = int64(pick(1, 10, 37, 100, 100000))
	}
	p := func() float64 { return []float64{0, 0.001, 0.005, 0.02}[r.IntN(4)] }
	cfg.Faults = Faults{
		Crash: p(), Lost: p(), Doubt: p(), Repeat: p() * 5, Drop: p(), Slow: p(), Freeze: p() / 4, Damage: p(), Stop: p() / 4,
		MaxFaults: pick(0, 20, 100, 400),
	}
	if r.IntN(2) == 0 {
		cfg.Resend = 15 * time.Minute
	} else { // nothing makes up for mail that the steps themselves lose
		cfg.Faults.Drop, cfg.Faults.Damage = 0, 0
	}
	if r.IntN(4) == 0 {
		cfg.Scope, cfg.Seeds = blobschema.ScopeHost, scopeSeeds(cfg.Web, r)
	}
	// Drawn from a source of their own, so that the rest stays as it is.
	r = rand.New(rand.NewPCG(seed, 0x2ec))
	if r.IntN(2) == 0 {
		cfg.Recrawls = 1 + r.IntN(20)
	}
	if r.IntN(3) == 0 {
		cfg.Policy = "capability"
	}
	if cfg.Resend > 0 && r.IntN(3) == 0 { // also near the end, where nothing else keeps the crawl going
		cfg.Faults.Drop = 0.3
	}
	switch r.IntN(4) {
	case 0:
		cfg.PartitionBy = blobschema.ByDomain
	case 1:
		cfg.PartitionBy = blobschema.ByIP
	}
	r = rand.New(rand.NewPCG(seed, 0xc01d))
	if cfg.Cold = !cfg.Local && r.IntN(2) == 0; cfg.Cold {
		cfg.Concurrency = r.IntN(2 * cfg.Partitions)
		cfg.Late = r.IntN(2) == 0
	}
	return cfg
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x5ce)) }

func decodeHead(b []byte) (blobschema.Head, error) { return decodeJSON[blobschema.Head](b) }

func decodeJSON[T any](b []byte) (v T, err error) {
	if err := json.Unmarshal(b, &v); err != nil {
		return v, fmt.Errorf("decode %T: %w", v, err)
	}
	return v, nil
}
