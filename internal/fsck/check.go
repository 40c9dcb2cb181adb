package fsck

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Store is what is checked. One goroutine calls it.
type Store interface {
	// Record reads a record of the key-value table; found is false if there is none.
	Record(ctx context.Context, key string) (value []byte, found bool, err error)
	// Object reads a whole object. The checker does not change the bytes.
	Object(ctx context.Context, name string) ([]byte, error)
	// List yields the names of all objects that begin with prefix.
	List(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// WARCs says how much of the WARC objects is read: nearly all the bytes of a crawl.
type WARCs uint8

// The extents.
const (
	allWARCs  WARCs = iota
	SomeWARCs       // one in 32 of each partition, the first included; of the others only that they exist
)

const sampleEvery = 32

// Options configure a check. The zero value checks all of the active crawl.
type Options struct {
	Crawl string // id; "" for the one that the record of the active crawl names
	WARCs WARCs
	// Delay is the least time between two answers of a host (I9); 0 stands for the one that
	// each commit was made under.
	Delay time.Duration
	// Skew is how far each clock of those that crawled may have been wrong: two times that are
	// nearer to each other than twice that may be in either order.
	Skew time.Duration
	// MaxViolations bounds how many violations of each invariant are kept; 0 stands for 100.
	MaxViolations int
	// Slots and Partition ask for a check of some slots, and of all that is at home in one
	// partition; nil for all. Not together with State.
	Slots     partition.Slots
	Partition *partition.ID
	// State is what the check before left: its WARC objects are not all read again. An empty
	// one asks for a state to be made; nil for none.
	State *State
	// Software and Time are put into the report, which is to say who found what when.
	Software string
	Time     time.Time
	// Progress, if not nil, is called now and then by the goroutine that runs Check.
	Progress func(Progress)
}

// Progress is how far a check is.
type Progress struct {
	Phase       string // "state", "links"
	Done, Total int    // partitions
	Pages       int64  // read so far
}

// Violation is one broken promise.
type Violation struct {
	Invariant string `json:"invariant"` // "I1" to "I9", "I11", "limit" or "ranks"
	What      string `json:"what"`
	Where     string `json:"where"` // object or key
}

// String is the violation on one line.
func (v Violation) String() string { return v.Invariant + " " + v.Where + ": " + v.What }

// Tally says how much was checked of an invariant, and how often it was broken.
type Tally struct {
	Invariant  string `json:"invariant"`
	Checked    int64  `json:"checked"` // facts: URLs, slots, commits, mails, answers, as the invariant is about
	Violations int    `json:"violations"`
}

// Reads are the calls that a check made, and the bytes of objects that came.
type Reads struct {
	Records int64 `json:"records"`
	Objects int64 `json:"objects"` // of which some are read twice
	Bytes   int64 `json:"bytes"`
}

// Report is what a check found. The same store gives the same report.
type Report struct {
	Software string    `json:"software,omitempty"`
	Time     time.Time `json:"time,omitzero"`

	Crawl      string `json:"crawl"`
	Partitions int    `json:"partitions"` // that own slots, or ever did

	Epoch  partition.Epoch `json:"epoch"`  // of the map
	Moving int             `json:"moving"` // slots on the move

	Commits   int   `json:"commits"`                 // visible
	Objects   int   `json:"objects"`                 // of the crawl, named or not
	WARCs     int   `json:"warcs"`                   // named
	WARCsRead int   `json:"warcs_read"`              // and found whole
	WARCsBad  int   `json:"warcs_damaged,omitempty"` // missing ones included
	TakenOver int   `json:"warcs_taken_over"`        // not read, because a check before did
	Orphans   int   `json:"orphans"`                 // objects that nothing names: what crashes and merges leave
	Dead      int   `json:"dead_letters"`
	Pages     int64 `json:"pages"`     // page records, robots.txt included
	URLs      int64 `json:"urls"`      // known
	Pending   int64 `json:"pending"`   // of them
	InFlight  int64 `json:"in_flight"` // URLs in mail not applied yet, or held for it, repeats included
	Links     int64 `json:"links"`     // followed

	Generations int64 `json:"generations"`  // page records of a generation above 0
	Revisits    int64 `json:"revisits"`     // page records whose payload is an earlier one's
	OutOfScope  int64 `json:"out_of_scope"` // page records of URLs that were asked for although out of scope, or left out late for a cap
	Requests    int64 `json:"requests"`     // mails that were made of requests from outside
	Forwarded   int64 `json:"forwarded"`    // URLs whose name's slot sent them on to that of its address; not in URLs
	Capped      int64 `json:"capped"`       // links that were left out for a cap on known URLs

	Index *IndexReport `json:"index,omitempty"` // nil if there is none
	Ranks *RanksReport `json:"ranks,omitempty"` // nil if there are none

	// NotChecked says what a check of some slots, or of one partition, cannot know.
	NotChecked []string `json:"not_checked,omitempty"`

	Read       Reads       `json:"read"`
	Looks      int         `json:"looks"` // 2 where the crawl went on, and what looked broken at first was looked at again
	Invariants []Tally     `json:"invariants"`
	Violations []Violation `json:"violations"` // the first of each invariant
	Found      int         `json:"found"`      // violations, also those not kept

	State *State `json:"-"` // for the next check, if one was asked for
}

// Clean reports whether nothing is damaged.
func (r *Report) Clean() bool { return r.Found == 0 }

// ErrScope says that what a check was asked for is not there.
var ErrScope = errors.New("there is nothing like that to check")

// ErrNoCrawl says that the store holds no crawl.
var ErrNoCrawl = errors.New("there is no crawl")

// Check checks a crawl. Its error says why it could not be done: a record could not
// be read, ctx ended, or there is no crawl. All that is wrong with what is stored is
// in the report, an object that cannot be read too.
//
// Slots move between partitions, and page records stay where they were committed. So what
// is known of a URL is looked for at the home of its slot, the one partition that holds it
// or is to take it from a hand-over, and its page records anywhere.
//
// What it finds of each invariant:
//
//	I1  every stored URL canonicalises to itself, and so does every unit and site
//	I2  the slot stored with a unit or URL is its unit's: its host, registrable domain or
//	    address; a name has one address
//	I3  each slot is held by one partition, or is in one hand-over that nobody has taken;
//	    it is where the map says, or on the move there; a partition's state and pages
//	    are of slots it held then, mail goes to who owned its slots; epochs never go
//	    back, and slots move as the maps that are kept say
//	I4  each commit is where and what its name says, fences never go back, commits
//	    follow one another without a gap, and nobody else names their WARC objects
//	I5  no more mail is applied than was sent, requests included, and marks never shrink
//	I6  every object that is named exists and reads back whole: checksums, order
//	    of runs, digests of all WARC records, and page records that agree with them;
//	    the original of every revisit is a response that an earlier page record, or one of
//	    the same commit, is about
//	I7  every seed, every link followed, every request and every URL in mail that was applied
//	    is known at the home of its slot, is on its way there, or was left out for a cap;
//	    what is settled has a page record that says how, in the commit that its origin
//	    names, and the other way round; what was forwarded is known at an address; no merge
//	    of runs and no move of a slot lost anything; all counts are right
//	I8  of each URL and generation there is one visible page record at most, and none
//	    while that is pending; no URL has two addresses
//	I9  no two answers of a unit are closer than the delay
//	I11 what the index shows is a page of a visible commit that is in it, as of the last answer
//	    that says anything, once; segments are whole, and what manifest and head say of them
//
// A violation of "limit" is about the page limit, one of "ranks" about ranks: that of a job
// that is done each partition has its result, and that ranks add up to 1.
//
// Some things are not stored, so that less can be checked of them. A link that a cap left
// out has neither URL nor reason: what is checked is that its slot, or partition, has as
// many URLs as the cap allows, and that no more links are missing than the partition
// counted. Which pages were asked for on purpose, and so do not count against the limit, no
// record says: with requests or recrawls the total of pages is an upper bound. In a crawl
// by IP the address of a name is known from mail, from pending URLs, and from the WARC
// objects that are read; the pace of names whose address is not known is checked name by
// name, and the slot of their pages not at all.
//
// Heads are not read at one moment, for a large crawl never stands still. A head read early
// tells too little, which looks like mail on its way; only where slots are must agree, and
// is read again until it does. What is broken all the same is looked at a second time if
// the crawl has gone on.
//
// Index and ranks are read when the commits were, each again if something is wrong and
// others have changed it meanwhile. Text is not made again of pages: that a page of
// text/html is not in the index may be for a reason that no record tells, and is only
// counted.
func Check(ctx context.Context, s Store, opt Options) (Report, error) {
	c, err := look(ctx, s, opt)
	return c.report, err
}

// look is Check, with all that it learnt.
func look(ctx context.Context, s Store, opt Options) (*checker, error) {
	if opt.MaxViolations <= 0 {
		opt.MaxViolations = 100
	}
	read := &Reads{}
	for looks := 1; ; looks++ {
		c := newChecker(ctx, s, opt, read)
		err := c.check()
		c.tally(looks)
		if err != nil {
			return c, fmt.Errorf("check crawl: %w", err)
		}
		// What an object was when its name was read it may not be any more: a crawl drops runs
		// as it merges them. What is broken indeed is so when one looks again.
		if c.report.Clean() || looks == maxLooks || !c.wentOn() {
			return c, nil
		}
	}
}

const maxLooks = 2

func newChecker(ctx context.Context, s Store, opt Options, read *Reads) *checker {
	c := &checker{
		ctx: ctx, store: &meter{s, read}, read: read, opt: opt, listed: map[string]bool{}, named: map[string]string{},
		checked: map[string]int64{}, found: map[string]int{}, kept: map[string]int{}, said: map[Violation]bool{},
		hops: map[uint64]bool{}, pins: map[uint64]netip.Addr{}, orphans: map[string]orphan{}, dropped: map[string]time.Time{}, manifests: map[string]opened{}, decoded: map[runAt]bool{},
	}
	c.report.Software, c.report.Time = opt.Software, opt.Time
	return c
}

// meter counts what is read.
type meter struct {
	Store
	*Reads
}

func (m *meter) Record(ctx context.Context, key string) ([]byte, bool, error) {
	m.Reads.Records++
	return m.Store.Record(ctx, key)
}

func (m *meter) Object(ctx context.Context, name string) ([]byte, error) {
	b, err := m.Store.Object(ctx, name)
	m.Reads.Objects++
	m.Reads.Bytes += int64(len(b))
	return b, err
}

// invariants are what violations are of, in the order of reports.
var invariants = [...]string{"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "limit", "I11", "ranks"}

// tally completes the report.
func (c *checker) tally(looks int) {
	c.report.Read, c.report.Looks = *c.read, looks
	if c.index != (IndexReport{}) {
		c.report.Index = &c.index
	}
	if c.ranks != (RanksReport{}) {
		c.report.Ranks = &c.ranks
	}
	for _, i := range invariants {
		if n := c.checked[i]; i != "I11" && i != "ranks" || n+int64(c.found[i]) > 0 { // few crawls have these
			c.report.Invariants = append(c.report.Invariants, Tally{i, n, c.found[i]})
		}
	}
}

// wentOn reports whether the crawl is further than when the check began.
func (c *checker) wentOn() bool {
	if r, found, err := record[blobschema.MapRecord](c, naming.MapKey(c.id)); err != nil || found && r.Version != c.atlas.record.Version {
		return err == nil
	}
	for _, p := range c.parts {
		h, _, err := record[blobschema.Head](c, naming.HeadKey(c.id, p.id))
		if err != nil {
			return false
		}
		if h.Commit != p.head.Commit {
			return true
		}
	}
	return false
}

// errUnusable ends a check early: what was found is all that can be.
var errUnusable = errors.New("the rest cannot be checked")

// checker is one run of Check.
type checker struct {
	ctx    context.Context
	store  *meter
	opt    Options
	report Report
	read   *Reads

	// By invariant: facts that were checked, violations, and those of them that are kept.
	checked map[string]int64
	found   map[string]int
	kept    map[string]int

	said  map[Violation]bool
	phase string

	id     string
	crawl  blobschema.Crawl
	hash   partition.Hash
	pmap   *partition.Map // of epoch 1
	atlas  atlas
	parts  []*part         // by ID
	listed map[string]bool // all objects of the crawl
	named  map[string]string

	manifests map[string]opened // that heads named, by commit
	decoded   map[runAt]bool    // runs whose entries were checked

	given  []string              // objects of seeds and requests
	seeds  []seed                // what is in them
	asked  []asked               // for I9
	claims []claim               // of revisits
	hops   map[uint64]bool       // what a robots.txt redirected to
	pins   map[uint64]netip.Addr // of names, by hash, in a crawl by IP

	only    []bool // slots that are asked for; nil for all
	next    *State
	orphans map[string]orphan
	dropped map[string]time.Time // merged runs that are named no longer, and since when

	granted    map[partition.ID]int64
	allGranted bool // no page of the limit is left

	indexed   bool   // there is an index, or is to be
	lastJob   uint64 // of ranks, as far as it was read
	index     IndexReport
	ranks     RanksReport
	hostRanks string // that the wish names

	requests      blobschema.Requests
	numbered      map[partition.ID]uint64 // requests at a time before that of the heads
	domainsCapped bool                    // some domain has reached its cap
	onPurpose     bool                    // something may have been asked for on purpose
}

// part is what is kept of a partition from one phase to the next. URLs are kept with the
// home of their slot, whoever stored them.
type part struct {
	id      partition.ID
	head    blobschema.Head
	man     *blobschema.Manifest // that the head names; nil before the first commit
	holding *blobschema.Holding  // what that says of slots
	broken  bool                 // a commit or run cannot be read: known is not whole

	state   []entry // of the slots at home here, by fingerprint; and
	records []settled

	// Fingerprints, sorted.
	known     []uint64 // of all known URLs but those that were forwarded
	forwarded []uint64
	sentOn    int64    // generations of forwarded
	outside   []uint64 // of URLs that have a page record for being out of scope
	flights   []uint64 // of URLs on their way to this partition
	leftOut   []uint64 // of URLs that a cap explains, see leaveOut

	answers []answer // for the index, of commits that were read
	index   uint64   // number of its manifest
	ranked  rankedTo

	pages int64 // with OutcomeOK
	again bool  // there are page records of a generation above 0
	done  bool  // its commits were read
}

// where names what says how a partition is: its last commit, or its head before that.
func (c *checker) where(p *part) string {
	return cmp.Or(p.head.Commit, naming.HeadKey(c.id, p.id))
}

func (c *checker) check() error {
	if err := c.open(); err != nil {
		if errors.Is(err, errUnusable) {
			return nil
		}
		return err
	}
	if err := c.checkMap(); err != nil {
		return err
	}
	if err := c.readSeeds(); err != nil {
		return err
	}
	if err := c.readRequests(); err != nil {
		return err
	}
	if c.only != nil {
		if err := c.checkSome(); err != nil {
			return err
		}
		return c.ctx.Err()
	}
	if err := c.checkPartitions(); err != nil {
		return err
	}
	for _, p := range c.parts {
		slices.Sort(p.flights)
		c.report.InFlight += int64(len(p.flights))
	}
	c.checkHistory()
	c.checkPages()
	c.checkSeeds()
	c.checkForwarded()
	c.sortClaims()
	for i, p := range c.parts {
		c.progress("links", i)
		if err := c.checkReferences(p); err != nil {
			return err
		}
	}
	c.checkOriginals()
	c.checkLeftOut()
	c.checkPace()
	if err := c.checkGrants(); err != nil {
		return err
	}
	if err := c.checkRanks(); err != nil {
		return err
	}
	c.countOrphans()
	c.settleState()
	return c.ctx.Err()
}

func (c *checker) progress(phase string, done int) {
	c.phase = phase
	if c.opt.Progress != nil {
		c.opt.Progress(Progress{Phase: phase, Done: done, Total: len(c.parts), Pages: c.report.Pages})
	}
}

func (c *checker) violate(invariant, where, format string, args ...any) {
	c.add(Violation{Invariant: invariant, Where: where, What: fmt.Sprintf(format, args...)})
}

// add reports a violation, once: an object that two things name is missing once.
func (c *checker) add(v Violation) {
	if c.said[v] {
		return
	}
	c.report.Found++
	c.found[v.Invariant]++
	if c.kept[v.Invariant]++; c.kept[v.Invariant] <= c.opt.MaxViolations {
		c.report.Violations = append(c.report.Violations, v)
		c.said[v] = true
	}
}

// record reads and decodes a JSON record. What cannot be decoded is damage.
func record[T any](c *checker, key string) (v T, found bool, err error) {
	b, found, err := c.store.Record(c.ctx, key)
	if err != nil {
		return v, false, fmt.Errorf("read record %s: %w", key, err)
	}
	if !found {
		return v, false, nil
	}
	if err := json.Unmarshal(b, &v); err != nil {
		c.violate("I6", key, "the record cannot be decoded: %v", err)
		return v, true, errUnusable
	}
	return v, true, nil
}

// object reads an object that where names. It returns nil, and the violation is
// reported, if that cannot be done; the error is that of ctx.
func (c *checker) object(name, where string) ([]byte, error) {
	c.checked["I6"]++
	b, err := c.store.Object(c.ctx, name)
	if err == nil {
		return b, nil
	}
	if ctxErr := c.ctx.Err(); ctxErr != nil {
		return nil, ctxErr
	}
	if !c.listed[name] {
		c.violate("I6", name, "the object does not exist; %s names it", where)
	} else {
		c.violate("I6", name, "the object cannot be read: %v", err)
	}
	return nil, nil
}

// open reads the records, and lists the objects after them: whatever the heads name is
// then listed.
func (c *checker) open() error {
	c.id = c.opt.Crawl
	if c.id == "" {
		act, found, err := record[struct {
			Crawl string `json:"crawl"`
		}](c, naming.ActiveKey)
		if err != nil {
			return err
		}
		if !found {
			return ErrNoCrawl
		}
		c.id = act.Crawl
	}
	c.report.Crawl = c.id
	key := naming.CrawlKey(c.id)
	var found bool
	var err error
	if c.crawl, found, err = record[blobschema.Crawl](c, key); err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w with id %q", ErrNoCrawl, c.id)
	}
	if c.crawl.Version != wire.Version {
		return fmt.Errorf("crawl %s: %w: %d", c.id, wire.ErrVersion, c.crawl.Version)
	}
	if err := c.frozen(); err != nil {
		c.violate("I6", key, "%v", err)
		return errUnusable
	}
	if err := c.openRequests(c.moment); err != nil {
		return err
	}
	if err := c.openWish(); err != nil {
		return err
	}
	// Seeds are added to the record before their mail is sent, so this one has all
	// that the heads may know of.
	if c.crawl, _, err = record[blobschema.Crawl](c, key); err != nil {
		return err
	}
	for name, err := range c.store.List(c.ctx, c.id+"/") {
		if err != nil {
			return fmt.Errorf("list objects: %w", err)
		}
		c.listed[name] = true
		c.indexed = c.indexed || strings.HasPrefix(name, naming.IndexPrefix(c.id))
	}
	c.indexed = c.indexed || c.crawl.Settings.Index
	c.report.Objects, c.report.Partitions = len(c.listed), len(c.parts)
	for _, p := range c.parts {
		if err := c.openPartition(p); err != nil {
			return err
		}
	}
	if err := c.openScope(); err != nil {
		return err
	}
	return c.openState()
}

// frozen checks what of the crawl record everything else relies on.
func (c *checker) frozen() (err error) {
	if c.crawl.ID != c.id {
		return fmt.Errorf("the record is of crawl %q", c.crawl.ID)
	}
	if err := naming.CheckCrawlID(c.id); err != nil {
		return err
	}
	if len(c.crawl.HashKey) != 16 {
		return fmt.Errorf("the hash key has %d bytes, not 16", len(c.crawl.HashKey))
	}
	if c.hash, err = partition.NewHash([16]byte(c.crawl.HashKey), c.crawl.Slots); err != nil {
		return err
	}
	if c.pmap, err = partition.NewMap(c.crawl.Slots, c.crawl.Partitions); err != nil {
		return err
	}
	switch by := c.crawl.Settings.PartitionBy; by {
	case "", blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP:
	default:
		return fmt.Errorf("the crawl is partitioned by %q", by)
	}
	for p := range partition.ID(c.crawl.Partitions) {
		c.parts = append(c.parts, &part{id: p})
	}
	return nil
}

// canonical parses a stored URL, and reports one that is not canonical. It returns
// false for that.
func (c *checker) canonical(url, where string) (weburl.URL, bool) {
	c.checked["I1"]++
	u, err := weburl.Parse(url)
	if err != nil {
		c.violate("I1", where, "stored URL %q is none: %v", url, err)
		return u, false
	}
	if u.String() != url {
		c.violate("I1", where, "stored URL %q is not canonical: it would be %q", url, u.String())
		return u, false
	}
	return u, true
}

// knows reports whether a URL of a slot at home in a partition is known, on its way to it, or
// refused as out of scope. One that cannot be read whole is taken to know it.
func (p *part) knows(fp uint64) bool {
	return p.broken || has(p.known, fp) || has(p.forwarded, fp) || has(p.flights, fp) || has(p.outside, fp)
}

func has(sorted []uint64, fp uint64) bool {
	_, ok := slices.BinarySearchFunc(sorted, fp, cmp.Compare[uint64])
	return ok
}

// checkGrants checks the limit of pages: no partition stores more than it was
// granted, and no more is granted than the limit.
func (c *checker) checkGrants() error {
	if c.crawl.Settings.MaxPages <= 0 {
		return nil
	}
	key := naming.GrantsKey(c.id)
	// A grant is made before its pages are asked for, and what is given back was never
	// used: so a later look at the record than at the heads is harmless.
	g, found, err := record[blobschema.Grants](c, key)
	if errors.Is(err, errUnusable) {
		return nil
	}
	if err != nil {
		return err
	}
	if !found {
		c.violate("limit", key, "there is no record, but a limit of %d pages", c.crawl.Settings.MaxPages)
		return nil
	}
	var granted int64
	unused := false
	for _, p := range c.parts {
		c.checked["limit"]++
		n := g.Granted[p.id]
		granted += n
		if pages := p.head.Totals.Pages; pages > n {
			c.violate("limit", key, "partition %d has %d pages and was granted %d", p.id, pages, n)
		} else if pages < n {
			unused = true
		}
	}
	c.granted, c.allGranted = g.Granted, granted >= g.Limit
	if granted > g.Limit && unused { // a limit may be lowered below what is there
		c.violate("limit", key, "%d pages are granted of a limit of %d", granted, g.Limit)
	}
	return nil
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
