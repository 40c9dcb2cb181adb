package fsck

import (
	"cmp"
	"context"
	"math/bits"
	"net/netip"
	"sort"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// The facts of a check, in the order in which the pass shows them. The checker keeps the
// joined state of all partitions, about 30 bytes for each URL, and what later facts are
// compared with; it drops commits and blocks of runs once they were shown.
//
//	moment    records, heads and their manifests, the list of objects (fields of checker)
//	*part     one partition with its head and manifest
//	*runName  that a manifest names a run
//	*block    entries of a run, in blocks
//	*counts   the entries of a manifest or hand-over, counted by slot
//	*commit   one commit with its pages and their links
//	*page     one page record of the commit
//	*letter   one mail of the commit, or the links that it buffers for one partition
//	*batch    URLs of one batch of seeds or requests
//	*urls     URLs of a batch, block or letter, or links out of scope
//	*located  anything else that is stored with a slot: politeness keys, documents, texts of links
//	end       the facts of all partitions together (fields of part)

// checker gathers the facts of one check.
type checker struct {
	ctx   context.Context
	store Store
	opt   Options
	reads *Reads
	err   error // ends the check: nothing is read any more
	bad   int   // records that cannot be decoded

	report    Report
	judges    []*judge
	said      map[Violation]bool
	verifying chan struct{} // full while as many WARC objects are being verified as may be in memory
	retry     bool          // violations are buffered, because the check may be repeated
	found     []Violation   // see steadily

	// The moment.
	id       string
	crawl    blobschema.Crawl
	hash     partition.Hash
	pmap     *partition.Map // of epoch 1
	atlas    atlas
	parts    []*part              // by ID
	listed   map[string]time.Time // all objects of the crawl, with the times of their last puts
	desired  blobschema.DesiredState
	requests blobschema.Requests
	numbered map[partition.ID]uint64 // requests, by a record newer than the heads
	indexed  bool                    // there is an index, or is to be

	named   map[string]string // objects, with one that names each
	decoded map[runAt]bool    // runs whose blocks were shown
	dropped map[string]time.Time
	orphans map[string]string // objects that nothing names, and why they may be deleted

	missing   map[lost]madeKnown    // URLs that were made known, and that no run knows
	requested bool                  // something may have been requested
	pins      map[uint64]netip.Addr // addresses of names, by hash, in a crawl by IP

	given    map[turn]gift             // for I3
	taken    map[turn]partition.ID     // for I3
	gained   map[place]partition.Epoch // for I3: when a partition first gained a slot
	routes   map[place]routed          // for I3
	claims   []claim                   // for I6: of revisits
	captures map[uint64]claim          // for I6: of responses, by the hash of their place
	visible  []visible                 // for I8
	answers  []keyAnswer               // for I9
	hops     map[uint64]bool           // for I9

	index IndexReport
	ranks RanksReport
}

type moment struct{}

type end struct{}

// part is a partition. URLs are kept at the home of their slot.
type part struct {
	id      partition.ID
	head    blobschema.Head
	man     *blobschema.Manifest     // manifest that the head names; empty if it is missing or unreadable
	damage  error                    // why it cannot be read
	holding *blobschema.Holding      // slots by the manifest
	sums    []blobschema.SlotSummary // of its slots, whole
	broken  bool                     // a commit or run cannot be read: known is not whole

	state   []entry         // of the slots at home here, sorted
	first   []uint32        // where in state the entries of each prefix begin, see sortState
	outside map[uint64]bool // fingerprints of URLs with a page record because they are out of scope
	flights map[uint64]bool // fingerprints of URLs on their way to this partition

	answers      []answer            // for the index
	counted      blobschema.Totals   // recounted totals
	okPages      int64               // page records with OutcomeOK, of pages
	okRequisites int64               // and of requisites
	again        bool                // some page records have a generation above 0
	then         *blobschema.Holding // of the commit read last
	unread       bool                // a WARC object was not read: how many bytes they have is not known

	indexAt  uint64     // number of the manifest of its index
	rankHead ranks.Head // its state of rank jobs
}

// batch is an object with seeds or requests.
type batch struct {
	object, by string                 // by: the key of the record that names it
	seeds      int                    // position among the batches of seeds, from 1; 0 for requests
	mail       blobschema.RequestMail // of requests
	number     uint64                 // in the object
	content    []byte                 // nil if it cannot be read
	urls       []address
}

// runName is a run that a manifest or hand-over names; again reports that an earlier one has named it.
type runName struct {
	*part
	ref   blobschema.RunRef
	again bool
}

// block is a part of a run. The first of its entries may be the last of the block before.
type block struct {
	object string       // the run
	of     partition.ID // partition that wrote it
	ix     *blobschema.RunIndex
	merged bool
	*blobschema.Run
	urls []address // of Queued
}

// address is a stored URL with the values derived from it.
type address struct {
	text    string
	url     weburl.URL
	err     error // it is no URL, or not canonical: then nothing follows
	key     string
	slot    partition.Slot
	fp      uint64
	at      netip.Addr // of its name, where it was placed at one
	stray   string     // quoted key of an entry that says it was placed, if it cannot be placed there
	literal bool       // its host is an address
	flags   blobschema.QueuedFlags
}

// page is a page record.
type page struct {
	*blobschema.Page
	address
	in        *commit
	contacted netip.Addr // address by its WARC record, if that was read

	home  *part  // part of its URL; nil for a robots.txt and a bad URL
	known *entry // the state of the URL; nil if there is none
	sent  *entry // the note that the URL was forwarded; nil if there is none
}

// outside reports whether the record is about a URL out of scope, or over a cap. It may settle
// a URL, but mostly is of none in the state, and there is one for each request of it.
func (pg *page) outside() bool { return pg.Outcome == blobschema.OutcomeScope }

// letter is mail of a commit, or the links that it buffers for a partition.
type letter struct {
	*commit
	to       partition.ID
	number   uint64 // by the outbox
	mail     blobschema.Mail
	err      error // it cannot be decoded
	fits     bool  // mail and outbox agree
	buffered bool  // buffered links, not yet mail
	waits    bool  // they are in no mail yet
	urls     []address
}

// commit is the content of one commit.
type commit struct {
	*part
	name    string
	m       *blobschema.Manifest
	prev    *blobschema.Manifest // of the commit before; empty if that was not read
	was, is *blobschema.Holding  // slots that the partition held before the commit and after it
	pages   []page
	links   []blobschema.PageLinks
	outbox  []blobschema.OutMail // its mail, which is also shown letter by letter
	delta   []byte               // its run
	warcs   [][]string           // faults of each of its WARC objects
}

// record names the commit in entries of the state.
func (f *commit) record() blobschema.RecordRef {
	return blobschema.RecordRef{Partition: f.id, Seq: uint32(f.m.Seq)}
}

// urls are URLs that are stored in one place.
type urls struct {
	where string
	list  []address
}

// located is anything stored with the slot of its politeness key: the state or the observations of a key
// or site, a document, or texts of links to a page.
type located struct {
	object, what, name string
	key                string
	slot               partition.Slot
	err                error // the name is not canonical
}

// knows reports whether a URL of a slot at home in a partition is known, on its way to it,
// or refused as out of scope. A partition with unreadable parts counts as knowing every URL.
func (p *part) knows(fp uint64) bool {
	return p.broken || len(p.entries(fp)) > 0 || p.flights[fp] || p.outside[fp]
}

// entries returns the state of a URL: two entries if it was forwarded from one slot to another.
func (p *part) entries(fp uint64) []entry {
	if len(p.first) == 0 {
		return nil
	}
	b := prefix(fp, len(p.first)-1)
	return equal(p.state[p.first[b]:p.first[b+1]], func(e *entry) int { return cmp.Compare(e.fp, fp) })
}

// sortState sorts the entries, and joins those of one URL: several partitions may have told of it. Then it divides them by the first
// bits of their fingerprints, so that entries searches only a few: those of prefix n are state[first[n]:first[n+1]].
func (p *part) sortState() {
	p.state = join(p.state)
	n := 1 << bits.Len(uint(len(p.state)/8))
	p.first = make([]uint32, n+1)
	for i := range p.state {
		p.first[prefix(p.state[i].fp, n)+1]++
	}
	for b := range n {
		p.first[b+1] += p.first[b]
	}
}

// prefix returns the first bits of a fingerprint: a number below n, which is a power of two.
func prefix(fp uint64, n int) uint64 { return fp >> (65 - bits.Len(uint(n))) }

// find returns the state of a URL, and the note that it was forwarded.
func (p *part) find(fp uint64) (known, sent *entry) {
	all := p.entries(fp)
	for i := range all {
		if all[i].state == blobschema.Forwarded {
			sent = &all[i]
		} else if known == nil {
			known = &all[i]
		}
	}
	return known, sent
}

// equal returns the items of a sorted list that compare equal.
func equal[T any](list []T, compare func(*T) int) []T {
	first := sort.Search(len(list), func(i int) bool { return compare(&list[i]) >= 0 })
	end := first
	for end < len(list) && compare(&list[end]) == 0 {
		end++
	}
	return list[first:end]
}
