package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
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
	receipts []actor.Receipt // to acknowledge after the commit
	applied  bool            // some mail had an effect
	urls     int             // that came by mail
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
func (s *Step) done(t frontier.Task, o *actor.Outcome) {
	t.Flags = s.st.f.FlagsOf(t)
	verdict := s.st.f.Done(s.Clock(), t, o)
	s.refusals()
	s.st.totals.Bytes += o.Wire
	if o.Connect > 0 {
		s.st.totals.Connections++
	}
	s.countTopic(t.Topic, 0, o.Wire)
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
	if t.Request.Resolve {
		return
	}
	p := &o.Page
	p.Robots, p.Topic = t.Request.Robots, t.Topic
	if f := t.Request.Former; f != nil && p.Outcome.Answered() {
		p.Change = blobschema.PageSame
		if frontier.Changed(f, p) {
			p.Change = blobschema.PageChanged
		}
	}
	s.refer(p, o)
	if len(o.Record) > 0 {
		s.store(p, o)
	}
	if p.Robots {
		if len(o.Record) > 0 {
			s.st.totals.Robots++
			s.batch.pages = append(s.batch.pages, *p)
			s.sinceCommit++
		}
		if s.cfg.Crawl.Settings.Sitemaps {
			s.discover(t, o)
		}
		return
	}
	s.count(p, t.Urgent() || t.Look())
	s.countLook(t, p)
	s.discover(t, o)
	s.batch.pages = append(s.batch.pages, *p)
	s.sinceCommit++
	if looks(&s.cfg.Crawl.Settings) {
		s.st.formers.keep(p)
	}
}

// count adds a settled URL to the totals. What was asked for on purpose, or looked at again, does not count
// against the limit on pages.
func (s *Step) count(p *blobschema.Page, again bool) {
	if p.Outcome == blobschema.OutcomeOK && !again {
		s.st.totals.Pages++
		s.countTopic(p.Topic, 1, 0)
	}
	if p.Original != nil {
		s.st.totals.Revisits++
	}
	if s.st.totals.Outcomes == nil {
		s.st.totals.Outcomes = map[string]int64{}
	}
	s.st.totals.Outcomes[p.Outcome.String()]++
}

// countFate adds a found link to the totals.
func countFate(t *blobschema.Totals, f fate) {
	switch f {
	case known:
		t.Duplicates++
	case trapped:
		t.Trapped++
	case outside, excluded:
		t.OutOfScope++
	}
}

// refusals keeps a page record of every URL that was settled without an answer.
func (s *Step) refusals() {
	for _, r := range s.st.f.Refusals() {
		p := blobschema.Page{
			URL: r.URL.String(), Generation: r.Generation, Depth: r.Depth, Outcome: r.Outcome,
			Time: s.Now().Wall.UTC(), Detail: r.Detail, Attempts: r.Attempts, Topic: r.Topic,
		}
		s.count(&p, false)
		s.batch.pages = append(s.batch.pages, p)
		s.sinceCommit++
	}
}

// refer makes the record of an answer a revisit if this partition has stored the same
// payload before, of this URL or another.
func (s *Step) refer(p *blobschema.Page, o *actor.Outcome) {
	if len(o.Head) == 0 || p.Original != nil || p.BodyBytes < minRevisit || p.Truncated != "" {
		return
	}
	of, known := s.st.payloads.get(p.Digest)
	if !known {
		return
	}
	rec := warc.Revisit(p.Time, p.URL, o.IP, warc.ProfileIdenticalPayload, p.Digest, of, o.Head)
	rec.ConcurrentTo = o.RequestID
	data, _, err := s.encoder().Append(o.Record[:o.ResponseAt:o.ResponseAt], &rec)
	if err != nil {
		return // whole, then
	}
	p.Original, p.Length = &of, int64(len(data)-o.ResponseAt)
	o.Record = data
}

// encoder makes the records that the step writes itself.
func (s *Step) encoder() *warc.Encoder {
	if s.st.encoder == nil {
		kind := warc.None
		if s.cfg.Compressed {
			kind = warc.GzipFast
		}
		s.st.encoder = warc.NewEncoder(kind)
	}
	return s.st.encoder
}

// store appends an answer's records to the WARC being filled. A full one is put at
// once, while fetching goes on; a page enters a commit only after its WARC was put.
func (s *Step) store(p *blobschema.Page, o *actor.Outcome) {
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
	if len(o.Head) > 0 && p.Original == nil && p.BodyBytes >= minRevisit && p.Truncated == "" {
		s.st.payloads.put(p.Digest, p.Payload(), maxPayloads)
	}
}

func (s *Step) newWARC() *warcFile {
	s.warcs++
	w := &warcFile{name: naming.WARC(s.cfg.Crawl.ID, s.cfg.Partition, s.head.Fence, uint64(s.warcs), s.cfg.Compressed)}
	info := warc.Info(s.Now().Wall.UTC(), w.name, warc.InfoFields{
		Software: s.cfg.Software, UserAgent: s.cfg.Crawl.Settings.UserAgent, IsPartOf: s.cfg.Crawl.ID,
	})
	data, _, err := s.encoder().Append(nil, info)
	if err != nil {
		s.End(err)
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
	s.put(actor.PutObject{Name: w.name, Parts: w.parts}, func() { b.puts-- })
}
