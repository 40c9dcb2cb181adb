package fsck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"runtime"
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
		decoded: map[runAt]bool{}, dropped: map[string]time.Time{}, orphans: map[string]string{},
		pins: map[uint64]netip.Addr{}, given: map[turn]gift{}, taken: map[turn]partition.ID{},
		gained: map[place]partition.Epoch{}, routes: map[place]routed{}, hops: map[uint64]bool{}, missing: map[lost]madeKnown{},
		captures: map[uint64]claim{}, verifying: make(chan struct{}, runtime.GOMAXPROCS(0)+4),
	}
	c.report.Software, c.report.Time = opt.Software, opt.Time
	c.judges = c.invariants()
	return c
}

// pass gathers all facts, and shows each to the invariants. State comes before commits,
// because links are compared with it, and batches come last, because their URLs are
// compared with state and mail.
func (c *checker) pass() {
	if !c.readMoment() {
		return
	}
	c.show(moment{})
	for _, p := range c.parts {
		c.show(p)
	}
	c.readState()
	c.spreadDamage()
	for _, p := range c.parts {
		c.walk(p)
	}
	c.spreadDamage()
	c.readBatches()
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

// spreadDamage marks all partitions as broken if one is and slots have moved: then what cannot
// be read may have been of any of them.
func (c *checker) spreadDamage() {
	if c.atlas.anyMoved && c.anyBroken() {
		for _, p := range c.parts {
			p.broken = true
		}
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
	c.requested = c.requested || c.report.Requests > 0 || c.crawl.Settings.RecrawlPerHour > 0
}

// readBatch reads a batch. A URL of it is on its way until its mail is applied.
func (c *checker) readBatch(f *batch) {
	c.name(f.object, f.by)
	b, data, ok := decoded(c, f.object, f.by, blobschema.DecodeSeeds)
	if ok {
		f.number, f.content, f.urls = b.Number, data, c.locateAll(b.URLs)
	}
	from, number := partition.Requests, f.mail.Number
	if f.seeds > 0 {
		from, number = partition.Intake, uint64(f.seeds)
	}
	for i := range f.urls {
		a := &f.urls[i]
		to := f.mail.To
		if f.seeds > 0 { // the first map deals them
			to = c.pmap.Owner(a.slot)
		}
		if a.err == nil && int(to) < len(c.parts) && !c.parts[to].hasApplied(from, number) {
			c.flies(a)
		}
	}
	c.show(f)
	c.show(&urls{f.object, f.urls})
}

// flies notes that a URL is on its way to the home of its slot.
func (c *checker) flies(a *address) {
	c.homeOf(a.slot).flights[a.fp] = true
	c.report.InFlight++
}

// maxMissing is how many commits may be missing in a row before the others are given up:
// the ranges that name them may be wrong.
const maxMissing = 10

// walk reads all commits of a partition in order.
func (c *checker) walk(p *part) {
	if p.man.Seq == 0 {
		return
	}
	p.then = blobschema.NewHolding(p.id, c.pmap, nil)
	prev, missing := &blobschema.Manifest{}, 0
	var shows []func() // of commits whose WARC objects are being verified
	for name := range blobschema.CommitNames(p.man) {
		c.name(name, p.head.Commit)
		m, show := c.readCommit(p, name, prev)
		if m == nil {
			if p.broken, missing = true, missing+1; missing == maxMissing || c.err != nil {
				break
			}
			continue
		}
		missing, prev = 0, m
		if shows = append(shows, show); len(shows) > commitsAhead {
			shows[0]()
			shows = shows[1:]
		}
	}
	for _, show := range shows {
		show()
	}
}

// commitsAhead is how many commits of a partition are read ahead, so that their WARC objects are verified in parallel.
const commitsAhead = 2

// readCommit reads a commit, and begins to verify its WARC objects. show waits until they are verified, and then shows the
// commit. The manifest is nil, and readCommit has reported why, if the commit cannot be read.
func (c *checker) readCommit(p *part, name string, prev *blobschema.Manifest) (manifest *blobschema.Manifest, show func()) {
	data, ok := c.object(name, p.head.Commit)
	if !ok {
		return nil, nil
	}
	r, err := blobschema.OpenCommit(data)
	m := section(&err, r, (*blobschema.CommitReader).Manifest)
	f := &commit{part: p, name: name, m: &m, prev: prev, was: p.then, is: p.then}
	pages := section(&err, r, (*blobschema.CommitReader).Pages)
	f.links = section(&err, r, (*blobschema.CommitReader).Links)
	f.outbox = section(&err, r, (*blobschema.CommitReader).Outbox)
	f.delta = section(&err, r, (*blobschema.CommitReader).Run)
	held := section(&err, r, (*blobschema.CommitReader).Buffered)
	away := section(&err, r, (*blobschema.CommitReader).Outside)
	hosts := section(&err, r, (*blobschema.CommitReader).Hosts)
	if err != nil {
		c.damaged(name, "%v", err)
		return nil, nil
	}
	if !reflect.DeepEqual(prev.Moved, m.Moved) {
		f.is = blobschema.NewHolding(p.id, c.pmap, m.Moved)
	}
	p.then = f.is
	c.report.Commits++
	for _, run := range m.Dropped {
		c.dropped[run] = m.Time
	}
	f.pages = make([]page, len(pages))
	for i := range pages {
		f.pages[i] = page{Page: &pages[i], address: c.address(pages[i].URL), in: f}
		c.placePage(&f.pages[i])
	}
	verified := c.readWARCs(f)
	return f.m, func() {
		verified()
		c.show(f)
		for i := range f.pages {
			c.countPage(&f.pages[i])
			c.show(&f.pages[i])
		}
		for _, h := range hosts {
			c.show(&located{object: name, what: "observed host", name: h.Host, key: h.Host, slot: h.Slot, err: c.checkKey(h.Host)})
		}
		out := &urls{where: name}
		for _, q := range away {
			out.list = append(out.list, c.address(q.URL))
		}
		c.show(out)
		for _, out := range f.outbox {
			c.showLetter(c.openLetter(f, out))
		}
		for _, to := range slices.Sorted(maps.Keys(held)) {
			first, waits := p.man.BufferedFrom[to]
			c.showLetter(&letter{commit: f, to: to, buffered: true, waits: waits && m.Seq >= first, urls: c.locateAll(held[to])})
		}
		c.progress("commits", int(p.id))
	}
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
	l.urls = c.locateAll(m.URLs)
	return l
}

// placePage finds the state of a page's URL. In a crawl by IP the state knows the slot of a name's page.
func (c *checker) placePage(pg *page) {
	if pg.err != nil || pg.Robots {
		return // the crawler fetches robots.txt for itself: it is no URL of the frontier
	}
	if c.byIP() && !pg.literal && !pg.outside() {
		near := []*part{pg.in.part}
		if c.atlas.anyMoved {
			near = append(near, c.parts...)
		}
		for _, p := range near {
			if known, _ := p.find(pg.fp); known != nil {
				pg.slot = partition.Slot(known.slot)
				break
			}
		}
	}
	pg.home = c.homeOf(pg.slot)
	pg.known, pg.sent = pg.home.find(pg.fp)
}

// countPage counts a page record, and keeps what the index is compared with.
func (c *checker) countPage(pg *page) {
	f := pg.in
	c.report.Pages++
	if pg.Robots {
		f.counted.Robots++
	}
	if pg.home == nil {
		return
	}
	if f.counted.Outcomes == nil {
		f.counted.Outcomes = map[string]int64{}
	}
	f.counted.Outcomes[pg.Outcome.String()]++
	switch {
	case pg.Outcome != blobschema.OutcomeOK:
	case pg.Requisite:
		f.okRequisites++
	default:
		f.okPages++
	}
	if pg.Original != nil {
		f.counted.Revisits++
	}
	if pg.Generation > 0 {
		f.again = true
		c.report.Generations++
	}
	if pg.outside() {
		c.report.OutOfScope++
		pg.home.outside[pg.fp] = true
	}
	if c.indexed {
		f.answers = append(f.answers, c.answerOf(pg, f.m.Seq))
	}
}

// showLetter shows a letter, and notes which of its URLs are on their way.
func (c *checker) showLetter(l *letter) {
	c.show(l)
	c.show(&urls{l.name, l.urls})
	if l.err != nil || !l.buffered && !l.fits || int(l.to) >= len(c.parts) {
		return
	}
	flies := l.waits || !l.buffered && !c.parts[l.to].hasApplied(l.id, l.number)
	for i := range l.urls {
		a := &l.urls[i]
		c.requested = c.requested || !l.buffered && a.flags&blobschema.FlagAgain != 0
		if l.waits && a.err == nil {
			l.counted.Buffered++
		}
		if flies && a.err == nil {
			c.flies(a)
		}
	}
}

// commitAt names the visible commit that an entry of the state refers to.
func (c *checker) commitAt(r blobschema.RecordRef) string {
	return c.commitOf(r.Partition, uint64(r.Seq))
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
		if r, err := blobschema.ReadCommit(v.get, v.commitOf(p, seq)); err == nil {
			pages, _ = r.Pages()
		}
	}
	for i := range pages {
		if v.hash.Fingerprint(pages[i].URL) == fp {
			return pages[i].URL
		}
	}
	return fmt.Sprintf("%016x", fp)
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
