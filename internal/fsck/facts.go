package fsck

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"sort"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// The facts of a check, in the order in which the pass shows them. The checker keeps only what
// later facts are compared with; it drops commits and blocks of runs once they were shown.
//
//	moment    records, heads and their manifests, the list of objects (fields of checker)
//	*batch    URLs of one batch of seeds or requests
//	*runName  that a manifest names a run
//	*block    entries of a run, in blocks
//	*commit   one commit with its pages
//	*links    the links of these pages
//	*letter   one mail of the commit, or the links that it buffers for one partition
//	*group    the state and the page records of one partition, joined
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

	report Report
	judges []*judge
	said   map[Violation]bool
	retry  bool        // violations are buffered, because the check may be repeated
	held   []Violation // see steadily

	// The moment.
	id       string
	crawl    blobschema.Crawl
	hash     partition.Hash
	pmap     *partition.Map // of epoch 1
	atlas    atlas
	parts    []*part              // by ID
	listed   map[string]time.Time // all objects of the crawl, with the times of their last puts
	wish     blobschema.Wish
	requests blobschema.Requests
	numbered map[partition.ID]uint64 // requests, by a record newer than the heads
	indexed  bool                    // there is an index, or is to be

	manifests map[string]manifest // that heads named, by commit
	named     map[string]string   // objects, with one that names each
	decoded   map[runAt]bool      // runs whose blocks were shown
	dropped   map[string]time.Time
	orphans   map[string]string // objects that nothing names, and why they may be deleted

	given     []given               // URLs of seeds and requests
	batches   []string              // their objects
	missing   []missing             // URLs that were made known, and that no run knows
	onPurpose bool                  // something may have been requested on purpose
	pins      map[uint64]netip.Addr // addresses of names, by hash, in a crawl by IP

	gifts    map[turn]gift    // for I3
	turns    []turn           // for I3, in the end
	routes   map[route]routed // for I3
	claims   []claim          // for I6
	captures []claim          // for I6
	asked    []asked          // for I9
	hops     map[uint64]bool  // for I9

	lastJob uint64 // highest rank job of the records that were read
	index   IndexReport
	ranks   RanksReport
}

type moment struct{}

type end struct{}

// part is a partition. URLs are kept at the home of their slot.
type part struct {
	id partition.ID
	manifest
	head    blobschema.Head
	holding *blobschema.Holding      // slots by the manifest
	sums    []blobschema.SlotSummary // of its slots, whole
	broken  bool                     // a commit or run cannot be read: known is not whole

	// Fingerprints, sorted in the end.
	known     []uint64 // of all known URLs except forwarded ones
	forwarded []uint64
	sentOn    int64    // generations of forwarded
	outside   []uint64 // of URLs with a page record because they are out of scope
	flights   []uint64 // of URLs on their way to this partition

	okPages int64 // with OutcomeOK
	again   bool  // some page records have a generation above 0

	indexAt  uint64     // number of the manifest of its index
	rankHead ranks.Head // its state of rank jobs

	work
}

// work is the memory for a partition while its group is checked.
type work struct {
	state     []entry   // of the slots at home here, by fingerprint
	records   []settled // page records of these slots
	summaries []summaries
	answers   []answer            // for the index
	counted   blobschema.Totals   // recounted totals
	then      *blobschema.Holding // of the commit read last
	unread    bool                // a WARC object was not read: how many bytes they have is not known
}

// manifest is a manifest that a head names, or why it cannot be read. A partition has
// neither before its first commit.
type manifest struct {
	man    *blobschema.Manifest
	damage error
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

// given is a URL of a batch.
type given struct {
	fp    uint64
	slot  partition.Slot
	batch uint32 // index in checker.batches
	to    partition.ID
	epoch partition.Epoch // of the map by which it was dealt
}

// runName is a run that a manifest or hand-over names; again reports that an earlier one has named it.
type runName struct {
	*part
	ref   blobschema.RunRef
	again bool
}

// block is a part of a run. The first of its entries may be the last of the block before.
type block struct {
	*run
	settled []blobschema.Settled
	queued  []blobschema.Queued
	urls    []address // of queued
	hosts   []blobschema.HostState
}

// run is a run that is read.
type run struct {
	object string
	of     partition.ID // that made it
	ix     *blobschema.RunIndex
	merged bool
}

// address is a stored URL with the values derived from it.
type address struct {
	text    string
	url     weburl.URL
	err     error // it is no URL, or not canonical: then nothing follows
	unit    string
	slot    partition.Slot
	fp      uint64
	at      netip.Addr // of its name, where it was placed at one
	stray   string     // where it is said to be placed, and cannot be
	literal bool       // its host is an address
	flags   blobschema.QueuedFlags
}

// page is a page record.
type page struct {
	*blobschema.Page
	address
	asked netip.Addr // address by its WARC record, if that was read
}

// links are the links of the pages of a commit.
type links struct {
	*commit
	list []blobschema.PageLinks
}

// letter is mail of a commit, or the links that it buffers for a partition.
type letter struct {
	*commit
	to     partition.ID
	number uint64 // by the outbox
	mail   blobschema.Mail
	err    error // it cannot be decoded
	fits   bool  // mail and outbox agree
	held   bool  // buffered links, not yet mail
	waits  bool  // they are in no mail yet
	urls   []address
}

// commit is the content of one commit.
type commit struct {
	*part
	name    string
	m       *blobschema.Manifest
	prev    *blobschema.Manifest // of the commit before; empty if that was not read
	was, is *blobschema.Holding  // slots that the partition held before the commit and after it
	pages   []page
	outbox  []blobschema.OutMail // its mail, which is also shown letter by letter
	delta   []byte               // its run
	warcs   [][]string           // faults of each of its WARC objects
}

// group is a set of partitions that have no slots or pages of others.
type group struct {
	parts  []*part
	broken bool // something cannot be read: counts and comparisons would only repeat it
}

// urls yields the state and the page records of each URL. One of the two may be empty. The
// state has two entries of a URL that was forwarded from one slot to another.
func (p *part) urls() iter.Seq2[[]entry, []settled] {
	return func(yield func([]entry, []settled) bool) {
		state, records := p.state, p.records
		for len(state)+len(records) > 0 {
			fp := uint64(0)
			if len(records) == 0 || len(state) > 0 && state[0].fp <= records[0].fp {
				fp = state[0].fp
			} else {
				fp = records[0].fp
			}
			n, m := 0, 0
			for n < len(state) && state[n].fp == fp {
				n++
			}
			for m < len(records) && records[m].fp == fp {
				m++
			}
			if !yield(state[:n], records[:m]) {
				return
			}
			state, records = state[n:], records[m:]
		}
	}
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
	unit               string
	slot               partition.Slot
	err                error // the name is not canonical
}

// knows reports whether a URL of a slot at home in a partition is known, on its way to it,
// or refused as out of scope. A partition that cannot be read whole is taken to know it.
func (p *part) knows(fp uint64) bool {
	return p.broken || p.has(fp) || has(p.flights, fp) || has(p.outside, fp)
}

// has reports whether the state has a URL.
func (p *part) has(fp uint64) bool { return has(p.known, fp) || has(p.forwarded, fp) }

// equal returns the items of a sorted list that compare equal.
func equal[T any](list []T, compare func(*T) int) []T {
	first := sort.Search(len(list), func(i int) bool { return compare(&list[i]) >= 0 })
	end := first
	for end < len(list) && compare(&list[end]) == 0 {
		end++
	}
	return list[first:end]
}

func has(sorted []uint64, fp uint64) bool {
	_, ok := slices.BinarySearch(sorted, fp)
	return ok
}
