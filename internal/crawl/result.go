package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
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
			s.follow(t, o)
		}
		return
	}
	s.count(p, t.Urgent() || t.Look())
	s.countLook(t, p)
	s.follow(t, o)
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
		Software: s.cfg.Software, Robots: warc.RobotsObey, UserAgent: s.cfg.Crawl.Settings.UserAgent, IsPartOf: s.cfg.Crawl.ID,
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

// follow takes an answer's links to their owners and keeps the link graph.
func (s *Step) follow(t frontier.Task, o *actor.Outcome) {
	if len(o.Links) == 0 {
		return
	}
	var host weburl.Host
	var at blobschema.Queued // what the links of one host have in common
	pl := blobschema.PageLinks{Source: t.Fingerprint(), Slot: s.hash.Slot(t.Host()), Host: string(t.Request.URL.Host()), Targets: make([]blobschema.Target, 0, len(o.Links))}
	cash := s.cash(t, o.Links)
	for i := range o.Links {
		l := &o.Links[i]
		if h := l.URL.Host(); h != host { // neighbours are of one host more often than not
			host, at = h, blobschema.Queued{}
			at.Slot = s.hash.Slot(place(&s.cfg.Crawl.Settings, l.URL, &at))
		}
		target := blobschema.Target{Fingerprint: s.hash.Fingerprint(l.URL.String()), Slot: at.Slot, Host: string(host), NoFollow: l.NoFollow, Anchor: l.Anchor}
		if !l.NoFollow {
			target.Followed = s.followLink(t, l, &target, at, cash)
		}
		pl.Targets = append(pl.Targets, target)
	}
	if !t.Request.Robots {
		s.batch.links = append(s.batch.links, pl)
	}
}

// changedSince reports whether a sitemap that was read again lists a URL as changed
// since it was read before, so that it is asked for at once. Where pages are looked at again, the look comes sooner instead. A day is the least that many sitemaps tell apart.
func changedSince(t frontier.Task, l *actor.Link) bool {
	f := t.Request.Former
	return f != nil && l.Kind == actor.LinkListed && l.Modified >= f.Time.Add(-24*time.Hour).Unix()
}

// maxRedirects is how long a chain of redirects is followed: it adds nothing to the depth.
const maxRedirects = 10

// followLink reports whether a link is in scope; if so its URL is known from now on.
func (s *Step) followLink(t frontier.Task, l *actor.Link, target *blobschema.Target, q blobschema.Queued, cash float64) bool {
	u, sc := l.URL, s.st.scopes.of(t.Topic)
	q.Depth, q.Topic = t.Request.Depth, t.Topic
	switch {
	case l.Kind == actor.LinkRedirect:
		if t.Flags.Hops() >= maxRedirects {
			s.st.totals.Trapped++
			return false
		}
		q.Flags |= t.Flags.NextHop()
	case l.Kind != actor.LinkSitemap:
		q.Depth++
		if l.Kind == actor.LinkListed {
			q.Flags |= blobschema.FlagListed
		}
	case t.Request.Robots:
		q.Flags |= blobschema.FlagSitemap
	default:
		q.Flags |= t.Flags.NextHop() &^ blobschema.FlagSeed
		if q.Flags&blobschema.FlagSitemap == 0 { // nested too deep, or known by its looks alone
			q.Depth++
		}
	}
	q.Rank = s.rank(u, frontier.Candidate{
		Depth: q.Depth, Priority: l.Priority, Relevant: s.relevant(t.Topic, l), Fingerprint: target.Fingerprint, Cash: cash,
	})
	if !sc.depth(int(q.Depth)) {
		return false
	}
	if q.Flags&blobschema.FlagSeed == 0 && !sc.host(u.Host()) {
		s.st.totals.OutOfScope++
		if rank, news := s.st.sent.tell(target.Fingerprint, &q); news {
			q.URL, q.Rank = u.String(), rank
			s.batch.outside = append(s.batch.outside, q)
		}
		return false
	}
	if !sc.patterns(u) {
		s.st.totals.OutOfScope++
		return false
	}
	if q.Flags&blobschema.FlagSeed == 0 && Trap(&s.cfg.Crawl.Settings, u) != "" {
		s.st.totals.Trapped++
		return false
	}
	if !s.hint(t, l, target, &q) && changedSince(t, l) {
		q.URL, q.Flags = u.String(), q.Flags|blobschema.FlagAgain
		s.hold(s.owner(q.Slot), q) // also to this partition itself: as mail it is not lost
		return true
	}
	if s.heldLate(u, target.Slot, target.Fingerprint, q) {
		return true
	}
	if !s.found(u, target.Slot, target.Fingerprint, q) {
		s.st.totals.Duplicates++
	}
	return true
}

// heldLate holds a URL that turns out to be a seed but may be settled already: as mail to
// its own partition it is looked at, and not lost. It reports whether that is so.
func (s *Step) heldLate(u weburl.URL, slot partition.Slot, fp uint64, q blobschema.Queued) bool {
	if !s.lateSeed(slot, fp, &q) || !s.mayBeSettled(slot, fp) {
		return false
	}
	q.URL, q.Slot = u.String(), slot
	s.hold(s.cfg.Partition, q)
	return true
}

// mayBeSettled reports whether a URL that is not pending may be settled: here, just now
// too, or sent on to its address, or in a slot that is not loaded.
func (s *Step) mayBeSettled(slot partition.Slot, fp uint64) bool {
	return !s.st.f.Loaded(slot, fp) || s.st.f.Settled(slot, fp)
}
