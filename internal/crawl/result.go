package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// done handles the outcome of a task: it stores the record of an answer and follows its links, or stores the refusal.
func (st *state) done(t schedule.Task, o *actor.Outcome) {
	requisite := t.Flags.Requisite() // as when it was requested: this decided whether it needs a share of the page limit
	t.Flags = t.FlagsNow()
	verdict := st.f.Done(st.lease.Clock(), t, o)
	st.refusals()
	st.totals.Bytes += o.Wire
	if o.Connect > 0 {
		st.totals.Connections++
	}
	st.countTopic(t.Topic, 0, o.Wire)
	if !t.Request.Resolve {
		st.watched(Watched{&o.Page, o.Wire, o.Ended.Sub(o.Started), verdict == schedule.Again})
	}
	// A failure that may pass is retried later and leaves no page record.
	if verdict == schedule.Again {
		if o.Page.Outcome != blobschema.OutcomeAborted {
			st.totals.Retries++
		}
		return
	}
	if t.Request.Resolve {
		return
	}
	// An answer to a revisit or a recrawl is compared with the previous one.
	p := &o.Page
	p.Robots, p.Topic, p.Requisite = t.Request.Robots, t.Topic, requisite
	if f := t.Request.Previous; f != nil && p.Outcome.Answered() {
		p.Change, p.Before = blobschema.PageSame, f.Digest
		if schedule.Changed(f, p) {
			p.Change = blobschema.PageChanged
		}
	}
	st.totals.Stored += st.archive.store(st.batch, p, o)
	// A robots.txt is stored, and its sitemaps are followed, but it is not counted as a page.
	if p.Robots {
		if len(o.Record) > 0 {
			st.totals.Robots++
			st.batch.add(p)
		}
		if st.cfg.Crawl.Settings.Sitemaps && p.Outcome == blobschema.OutcomeOK { // the target of a redirect is no page
			st.discover(t, o)
		}
		return
	}
	st.count(p, t.Revisit() || t.Urgent() && !requisite)
	st.countRevisit(t, p)
	st.discover(t, o)
	st.batch.add(p)
	if revisits(&st.cfg.Crawl.Settings) {
		st.cache.keep(p)
	}
}

// count adds a settled URL to the totals. A requested or revisited page does not count against the page limit, and a
// requisite is not a page.
func (st *state) count(p *blobschema.Page, again bool) {
	switch {
	case p.Outcome != blobschema.OutcomeOK || again:
	case p.Requisite:
		st.totals.Requisites++
	default:
		st.totals.Pages++
		st.countTopic(p.Topic, 1, 0)
	}
	if p.Original != nil {
		st.totals.Revisits++
	}
	if st.totals.Outcomes == nil {
		st.totals.Outcomes = map[string]int64{}
	}
	st.totals.Outcomes[p.Outcome.String()]++
}

// countFate adds a found link to the totals.
func countFate(t *blobschema.Totals, f fate) {
	switch f {
	case known, capped:
		t.Duplicates++
	case trapped:
		t.Trapped++
	case outside, excluded:
		t.OutOfScope++
	}
}

// refusals stores a page record for every URL that was settled without an answer.
func (st *state) refusals() {
	for _, r := range st.f.Refusals() {
		p := blobschema.Page{
			URL: r.URL.String(), Generation: r.Generation, Depth: r.Depth, Outcome: r.Outcome,
			Time: st.lease.Now().Wall.UTC(), Detail: r.Detail, Attempts: r.Attempts, Topic: r.Topic,
			Requisite: r.Flags.Requisite(),
		}
		st.count(&p, false)
		st.batch.add(&p)
		st.watched(Watched{Page: &p})
	}
}

func (st *state) watched(w Watched) {
	if st.cfg.Watch != nil {
		st.cfg.Watch(w)
	}
}
