package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/page"
)

// Sizes of a WARC object.
const (
	maxWARCBytes = 32 << 20
	maxWARCPages = 1000
)

// batch is what has happened since the last commit was begun.
type batch struct {
	pages    []blobschema.Page
	links    []blobschema.PageLinks
	outside  []blobschema.Queued
	receipts []Receipt // to acknowledge after the commit
	applied  bool      // some mail had an effect
	newScope []string
	warcs    []string
	puts     int // objects being put that the commit relies on
	warc     *warcFile
}

func (b *batch) empty() bool {
	return len(b.pages) == 0 && !b.applied && len(b.receipts) == 0 && len(b.newScope) == 0
}

// warcFile is the WARC object being filled.
type warcFile struct {
	name  string
	parts [][]byte // records, as the fetches brought them
	size  int
	pages int
}

// done takes what came of a task: record and links of an answer, or its refusal.
func (s *Step) done(t frontier.Task, o *page.Outcome) {
	verdict := s.st.f.Done(s.clock(), t, o)
	s.refusals()
	s.st.totals.Bytes += o.Wire
	if s.careful > 0 {
		s.careful, s.clearing = s.careful-1, true
	}
	delete(s.suspects, t.Request.URL.String())
	if verdict == frontier.Again {
		if o.Page.Outcome != blobschema.OutcomeAborted {
			s.st.totals.Retries++
		}
		return
	}
	p := &o.Page
	p.Robots = t.Request.Robots
	if len(o.Record) > 0 {
		s.store(p, o)
	}
	if p.Robots {
		if len(o.Record) > 0 {
			s.st.totals.Robots++
			s.batch.pages = append(s.batch.pages, *p)
			s.sinceCommit++
		}
		return
	}
	s.count(p)
	s.follow(t, o)
	s.batch.pages = append(s.batch.pages, *p)
	s.sinceCommit++
}

// count adds a settled URL to the totals.
func (s *Step) count(p *blobschema.Page) {
	if p.Outcome == blobschema.OutcomeOK {
		s.st.totals.Pages++
	}
	if s.st.totals.Outcomes == nil {
		s.st.totals.Outcomes = map[string]int64{}
	}
	s.st.totals.Outcomes[p.Outcome.String()]++
}

// refusals keeps a page record of every URL that was settled without an answer.
func (s *Step) refusals() {
	for _, r := range s.st.f.Refusals() {
		p := blobschema.Page{
			URL: r.URL.String(), Generation: r.Generation, Depth: r.Depth, Outcome: r.Outcome,
			Time: s.now.Wall.UTC(), Detail: r.Detail, Attempts: r.Attempts,
		}
		s.count(&p)
		s.batch.pages = append(s.batch.pages, p)
		s.sinceCommit++
	}
}

// store appends an answer's records to the WARC being filled. A full one is put at
// once, while fetching goes on; a page enters a commit only after its WARC was put.
func (s *Step) store(p *blobschema.Page, o *page.Outcome) {
	w := s.batch.warc
	if w != nil && (w.size+len(o.Record) > maxWARCBytes || w.pages >= maxWARCPages) {
		s.seal()
		w = nil
	}
	if w == nil {
		w = s.newWARC()
		s.batch.warc = w
	}
	p.WARC = w.name
	p.Offset = int64(w.size + o.ResponseAt)
	w.parts, w.size = append(w.parts, o.Record), w.size+len(o.Record)
	w.pages++
	s.st.totals.Stored += int64(len(o.Record))
}

func (s *Step) newWARC() *warcFile {
	s.warcs++
	kind := blobschema.None
	if s.cfg.Compressed {
		kind = blobschema.GzipFast
	}
	w := &warcFile{name: blobschema.WARCName(s.cfg.Crawl.ID, s.cfg.Partition, s.head.Fence, uint64(s.warcs), kind)}
	info := blobschema.WARCInfo(s.now.Wall.UTC(), w.name, blobschema.WARCInfoFields{
		Software: s.cfg.Software, Robots: blobschema.RobotsObey, UserAgent: s.cfg.Crawl.Settings.UserAgent, IsPartOf: s.cfg.Crawl.ID,
	})
	data, _, err := blobschema.NewWARCEncoder(kind).Append(nil, info)
	if err != nil {
		s.end(err)
	}
	w.parts, w.size = [][]byte{data}, len(data)
	s.st.totals.Stored += int64(len(data))
	return w
}

// seal puts the WARC being filled.
func (s *Step) seal() {
	b, w := s.batch, s.batch.warc
	if w == nil {
		return
	}
	b.warc = nil
	b.warcs = append(b.warcs, w.name)
	b.puts++
	s.put(PutObject{Name: w.name, Parts: w.parts}, func() { b.puts-- })
}

// follow takes an answer's links to their owners and keeps the link graph.
func (s *Step) follow(t frontier.Task, o *page.Outcome) {
	if len(o.Links) == 0 {
		return
	}
	host := t.Host()
	slot := s.hash.Slot(host)
	pl := blobschema.PageLinks{Source: t.Fingerprint(), Slot: slot, Targets: make([]blobschema.Target, 0, len(o.Links))}
	for i := range o.Links {
		l := &o.Links[i]
		if h := string(l.URL.Host()); h != host || i == 0 { // neighbours are of one host more often than not
			host, slot = h, s.hash.Slot(h)
		}
		target := blobschema.Target{Fingerprint: s.hash.Fingerprint(l.URL.String()), Slot: slot, NoFollow: l.NoFollow, Anchor: l.Anchor}
		if !l.NoFollow {
			target.Followed = s.followLink(t, l, &target)
		}
		pl.Targets = append(pl.Targets, target)
	}
	s.batch.links = append(s.batch.links, pl)
}

// followLink reports whether a link is in scope; if so its URL is known from now on.
func (s *Step) followLink(t frontier.Task, l *page.Link, target *blobschema.Target) bool {
	u := l.URL
	q := blobschema.Queued{Depth: t.Request.Depth, Generation: 0}
	if l.Kind != page.LinkRedirect {
		q.Depth++
	} else if t.Flags&blobschema.FlagSeed != 0 {
		q.Flags = t.Flags.NextHop()
	}
	if !s.st.scope.depth(int(q.Depth)) {
		return false
	}
	if q.Flags&blobschema.FlagSeed == 0 && !s.st.scope.host(u.Host()) {
		s.st.totals.OutOfScope++
		if s.st.sent.first(target.Fingerprint, q.Depth) {
			q.URL = u.String()
			s.batch.outside = append(s.batch.outside, q)
		}
		return false
	}
	if !s.st.scope.patterns(u) {
		s.st.totals.OutOfScope++
		return false
	}
	if !s.found(u, target.Slot, target.Fingerprint, q) {
		s.st.totals.Duplicates++
	}
	return true
}
