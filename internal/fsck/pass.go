package fsck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

func newChecker(ctx context.Context, s Store, opt Options, read *Reads) *checker {
	c := &checker{
		ctx: ctx, store: s, opt: opt, reads: read, said: map[Violation]bool{}, listed: map[string]time.Time{}, named: map[string]string{},
		manifests: map[string]manifest{}, decoded: map[runAt]bool{}, dropped: map[string]time.Time{}, orphans: map[string]string{},
		pins: map[uint64]netip.Addr{}, gifts: map[turn]gift{}, routes: map[route]routed{}, hops: map[uint64]bool{},
	}
	c.report.Software, c.report.Time = opt.Software, opt.Time
	c.judges = c.invariants()
	return c
}

// pass gathers all facts, and shows each to the invariants.
func (c *checker) pass() {
	if !c.readMoment() {
		return
	}
	c.show(moment{})
	c.readBatches()
	c.readPartitions()
	for _, p := range c.parts {
		slices.Sort(p.flights)
		c.report.InFlight += int64(len(p.flights))
	}
	c.show(end{})
	if c.err == nil {
		c.err = c.ctx.Err()
	}
	c.countOrphans()
}

func (c *checker) progress(phase string, done int) {
	if c.opt.Progress != nil {
		c.opt.Progress(Progress{Phase: phase, Done: done, Total: len(c.parts), Pages: c.report.Pages})
	}
}

// readBatches reads the URLs given from outside: seeds, and requests that are not known to be applied.
func (c *checker) readBatches() {
	for i, name := range c.crawl.SeedBatches {
		c.readBatch(&batch{object: name, by: naming.CrawlKey(c.id), seeds: i + 1})
	}
	for _, m := range c.requests.Outbox {
		c.readBatch(&batch{object: m.Object, by: naming.RequestsKey(c.id), mail: m})
	}
	for to := range c.parts {
		c.report.Requests += int64(c.numbered[partition.ID(to)])
	}
	c.onPurpose = c.onPurpose || c.report.Requests > 0 || c.crawl.Settings.RecrawlPerHour > 0
}

// readBatch reads a batch. A URL of it is on its way until its mail is applied.
func (c *checker) readBatch(f *batch) {
	c.name(f.object, f.by)
	b, data, ok := decoded(c, f.object, f.by, blobschema.DecodeSeeds)
	if ok {
		f.number, f.content, f.urls = b.Number, data, c.places(b.URLs)
	}
	c.show(f)
	c.show(&urls{f.object, f.urls})
	c.batches = append(c.batches, f.object)
	if f.seeds == 0 && int(f.mail.To) >= len(c.parts) {
		return // reported
	}
	for i := range f.urls {
		a := &f.urls[i]
		if a.err != nil {
			continue
		}
		g := given{fp: a.fp, slot: a.slot, batch: uint32(len(c.batches) - 1), to: f.mail.To, epoch: max(1, f.mail.Epoch)}
		from, number := partition.Requests, f.mail.Number
		if f.seeds > 0 { // the first map deals them
			g.to, from, number = c.pmap.Owner(a.slot), partition.Intake, uint64(f.seeds)
		}
		c.given = append(c.given, g)
		if !c.parts[g.to].hasApplied(from, number) {
			c.flies(a)
		}
	}
}

// flies notes that a URL is on its way to the home of its slot.
func (c *checker) flies(a *address) {
	home := c.homeOf(a.slot)
	home.flights = append(home.flights, a.fp)
}

// readPartitions reads the state and then the commits of all partitions. Links go to any
// partition, so the fingerprints of all known URLs are kept. Of the rest of the state one
// partition after another is in memory: it is read again for that. Once slots have moved,
// pages of a slot may be anywhere, so that all state is needed at once.
func (c *checker) readPartitions() {
	var groups [][]*part
	if c.atlas.anyMoved || len(c.parts) == 1 {
		groups = append(groups, c.parts)
	} else {
		for i := range c.parts {
			groups = append(groups, c.parts[i:i+1])
		}
	}
	for i, g := range groups {
		c.progress("state", i)
		c.readState(g)
		for _, p := range g {
			c.keepKnown(p)
			if len(groups) > 1 {
				p.work = work{}
			}
		}
	}
	for _, g := range groups {
		if len(groups) > 1 && !g[0].broken {
			c.readState(g)
		}
		f := &group{parts: g}
		for _, p := range g {
			c.walk(p)
			f.broken = f.broken || p.broken
		}
		for _, p := range g {
			slices.Sort(p.outside)
			slices.SortFunc(p.records, settled.compare)
			p.broken = f.broken
		}
		c.show(f)
		for _, p := range g {
			p.work = work{}
		}
	}
}

// keepKnown keeps what links are compared with.
func (c *checker) keepKnown(p *part) {
	p.known = make([]uint64, 0, len(p.state))
	for _, e := range p.state { // sorted already
		switch {
		case e.state == blobschema.Forwarded:
			p.forwarded = append(p.forwarded, e.fp)
			p.sentOn += int64(e.gen) + 1
			continue
		case e.state == blobschema.Pending:
			c.report.Pending++
		}
		p.known = append(p.known, e.fp)
	}
	c.report.URLs += int64(len(p.known))
	c.report.Forwarded += int64(len(p.forwarded))
}

// maxMissing is how many commits may be missing in a row before the others are given up:
// the ranges that name them may be wrong.
const maxMissing = 10

// walk reads all commits of a partition in order.
func (c *checker) walk(p *part) {
	if p.man == nil {
		return
	}
	p.then = blobschema.NewHolding(p.id, c.pmap, nil)
	prev, missing := &blobschema.Manifest{}, 0
	for name := range blobschema.CommitNames(p.man) {
		c.name(name, p.head.Commit)
		f := c.readCommit(p, name, prev)
		if f == nil {
			if p.broken, missing = true, missing+1; missing == maxMissing || c.err != nil {
				return
			}
			continue
		}
		missing, prev = 0, f.m
		c.progress("commits", int(p.id))
	}
}

// readCommit reads all of a commit. It returns nil, and has reported why, if that cannot be done.
func (c *checker) readCommit(p *part, name string, prev *blobschema.Manifest) *commit {
	data, ok := c.object(name, p.head.Commit)
	if !ok {
		return nil
	}
	r, m, err := openCommit(data)
	f := &commit{part: p, name: name, m: &m, prev: prev, was: p.then, is: p.then}
	pages := section(&err, r, (*blobschema.CommitReader).Pages)
	if err != nil {
		c.damaged(name, "%v", err)
		return nil
	}
	if !reflect.DeepEqual(prev.Moved, m.Moved) {
		f.is = blobschema.NewHolding(p.id, c.pmap, m.Moved)
	}
	p.then = f.is
	f.pages = make([]page, len(pages))
	for i := range pages {
		f.pages[i] = page{Page: &pages[i], address: c.address(pages[i].URL)}
	}
	c.readWARCs(f)
	f.outbox = section(&err, r, (*blobschema.CommitReader).Outbox)
	hosts := section(&err, r, (*blobschema.CommitReader).Hosts)
	f.delta = section(&err, r, (*blobschema.CommitReader).Run)
	if err != nil {
		c.damaged(name, "%v", err)
		return nil
	}
	c.report.Commits++
	for i := range f.pages {
		c.placePage(f, &f.pages[i])
	}
	c.show(f)
	for _, h := range hosts {
		c.show(&located{object: name, what: "observed host", name: h.Host, unit: h.Host, slot: h.Slot, err: c.checkUnit(h.Host)})
	}
	c.keepPages(f)
	if err := c.readSections(f, r); err != nil {
		c.damaged(name, "%v", err)
		return nil
	}
	return f
}

// readSections shows the sections of a commit that may be large, one after another.
func (c *checker) readSections(f *commit, r *blobschema.CommitReader) error {
	list, err := r.Links()
	if err != nil {
		return err
	}
	c.show(&links{f, list})
	away, err := r.Outside()
	if err != nil {
		return err
	}
	out := &urls{where: f.name}
	for _, q := range away {
		out.list = append(out.list, parse(q.URL))
	}
	c.show(out)
	for _, out := range f.outbox {
		c.showLetter(c.openLetter(f, out))
	}
	held, err := r.Held()
	if err != nil {
		return err
	}
	for _, to := range slices.Sorted(maps.Keys(held)) {
		first, waits := f.man.HeldFrom[to]
		c.showLetter(&letter{commit: f, to: to, held: true, waits: waits && f.m.Seq >= first, urls: c.places(held[to])})
	}
	return nil
}

// section reads a section of a commit, unless one before could not be read.
func section[T any](err *error, r *blobschema.CommitReader, read func(*blobschema.CommitReader) (T, error)) (v T) {
	if *err == nil {
		v, *err = read(r)
	}
	return v
}

// openLetter decodes mail.
func (c *checker) openLetter(f *commit, out blobschema.OutMail) *letter {
	l := &letter{commit: f, to: out.To, number: out.Number}
	l.mail, l.err = blobschema.DecodeMail(out.Body)
	m := &l.mail
	l.fits = m.Crawl == c.id && m.From == f.id && m.To == out.To && m.Number == out.Number && int(out.To) < len(c.parts)
	l.urls = c.places(m.URLs)
	return l
}

// placePage finds the slot of a page. In a crawl by IP the state knows that of a name's page.
func (c *checker) placePage(f *commit, pg *page) {
	if pg.err != nil || !c.byIP() || pg.literal || pg.Outcome == blobschema.OutcomeScope {
		return
	}
	found := c.placeByState(f.part, pg)
	for i := 0; !found && c.atlas.anyMoved && i < len(c.parts); i++ {
		found = c.placeByState(c.parts[i], pg)
	}
}

func (c *checker) placeByState(p *part, pg *page) (found bool) {
	for _, e := range equal(p.state, func(e *entry) int { return cmp.Compare(e.fp, pg.fp) }) {
		if e.state != blobschema.Forwarded {
			pg.slot, found = partition.Slot(e.slot), true
		}
	}
	return found
}

// keepPages keeps what later facts are made of.
func (c *checker) keepPages(f *commit) {
	for _, run := range f.m.Dropped {
		c.dropped[run] = f.m.Time
	}
	for i := range f.pages {
		c.report.Pages++
		if pg := &f.pages[i]; pg.Robots {
			f.counted.Robots++ // the crawler fetched it for itself: no URL of the frontier
		} else if pg.err == nil {
			c.keepPage(f, pg)
		}
	}
}

// showLetter shows a letter, and notes which of its URLs are on their way.
func (c *checker) showLetter(l *letter) {
	c.show(l)
	c.show(&urls{l.name, l.urls})
	if l.err != nil || !l.held && !l.fits || int(l.to) >= len(c.parts) {
		return
	}
	flies := l.waits || !l.held && !c.parts[l.to].hasApplied(l.id, l.number)
	for i := range l.urls {
		a := &l.urls[i]
		c.onPurpose = c.onPurpose || !l.held && a.flags&blobschema.FlagAgain != 0
		if l.waits && a.err == nil {
			l.counted.Held++
		}
		if flies && a.err == nil {
			c.flies(a)
		}
	}
}

// keepPage counts a page record, and keeps what is compared with the state at the home of its slot.
func (c *checker) keepPage(f *commit, pg *page) {
	if f.counted.Outcomes == nil {
		f.counted.Outcomes = map[string]int64{}
	}
	f.counted.Outcomes[pg.Outcome.String()]++
	if pg.Outcome == blobschema.OutcomeOK {
		f.okPages++
	}
	if pg.Original != nil {
		f.counted.Revisits++
	}
	if pg.Generation > 0 {
		f.again = true
		c.report.Generations++
	}
	home := c.homeOf(pg.slot)
	s := settled{fp: pg.fp, gen: pg.Generation, state: blobschema.Refused, origin: blobschema.Origin{Partition: f.id, Seq: uint32(f.m.Seq)}}
	switch {
	case pg.Outcome.Answered():
		s.state = blobschema.Fetched
	case pg.Outcome == blobschema.OutcomeScope:
		s.scope = true
		c.report.OutOfScope++
		home.outside = append(home.outside, pg.fp)
	}
	home.records = append(home.records, s)
	if c.indexed {
		f.answers = append(f.answers, c.answerOf(pg, f.m.Seq))
	}
}

// settled is a page record of a URL.
type settled struct {
	fp     uint64
	gen    uint32
	state  blobschema.State
	origin blobschema.Origin // its commit
	// scope says that the record is about a URL out of scope, or over a cap. It may settle a
	// URL, but mostly is of none in the state, and there is one for each request of it.
	scope bool
}

func (a settled) compare(b settled) int {
	return cmp.Or(cmp.Compare(a.fp, b.fp), cmp.Compare(a.gen, b.gen), compareBool(a.scope, b.scope), a.origin.Compare(b.origin))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// commitOf names the visible commit of a partition with a number.
func (c *checker) commitOf(p partition.ID, seq uint64) string {
	return cmp.Or(blobschema.CommitOf(c.parts[p].man, seq), c.parts[p].head.Commit)
}

// urlAt returns the URL with a hash for a message, from the page records of a commit. The
// hash replaces it if the message is not kept, or the commit has no record of it.
func (v *judge) urlAt(fp uint64, p partition.ID, seq uint64) string {
	var pages []blobschema.Page
	if v.keeps() {
		if data, err := v.bytes(v.commitOf(p, seq)); err == nil {
			if r, _, err := openCommit(data); err == nil {
				pages, _ = r.Pages()
			}
		}
	}
	for i := range pages {
		if v.hash.Fingerprint(pages[i].URL) == fp {
			return pages[i].URL
		}
	}
	return fmt.Sprintf("%016x", fp)
}

func (v *judge) urlBy(r settled) string {
	return v.urlAt(r.fp, r.origin.Partition, uint64(r.origin.Seq))
}

// countOrphans counts the objects that nothing names.
func (c *checker) countOrphans() {
	for name := range c.listed {
		switch {
		case c.named[name] != "":
		case strings.HasPrefix(name, naming.DeadPrefix(c.id)):
			if !naming.IsReplayed(name) {
				c.report.Dead++
			}
		case name == naming.CDXJIndex(c.id): // made from the rest
		case strings.HasPrefix(name, naming.RequestPrefix(c.id)): // applied, and named no longer
		default:
			c.report.Orphans++
			c.orphans[name] = c.orphaned(name)
		}
	}
}
