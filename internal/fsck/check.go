package fsck

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Store is the storage that Check reads, from one goroutine.
type Store = blobschema.Store

// sampleEvery is the part of the WARC objects that a quick check reads: one in 32.
const sampleEvery = 32

// Options configure a check. The zero value checks all of the active crawl.
type Options struct {
	Crawl string // id; "" for the one that the record of the active crawl names
	// Quick reads one in 32 of the WARC objects, the first included, and checks only that the
	// others exist. WARC objects are nearly all the bytes of a crawl.
	Quick bool
	// Delay is the least time between two answers of a host (I9). If it is 0, each commit is
	// checked against its own delay.
	Delay time.Duration
	// Skew bounds the error of each clock of the crawl: two times that differ by less than twice
	// the skew may be in either order.
	Skew time.Duration
	// MaxViolations bounds the violations kept of each invariant; 0 means 100.
	MaxViolations int
	// Software and Time are copied into the report.
	Software string
	Time     time.Time
	// Progress, if not nil, is called now and then from the goroutine of Check.
	Progress func(Progress)
}

// Progress is the progress of a check.
type Progress struct {
	Phase       string // "state", "commits"
	Done, Total int    // partitions
	Pages       int64  // page records read so far
}

// Violation is one broken invariant.
type Violation struct {
	Invariant string `json:"invariant"` // "I1" to "I9", "I11", "limit" or "ranks"
	What      string `json:"what"`
	Where     string `json:"where"` // object or key
}

// String is the violation on one line.
func (v Violation) String() string { return v.Invariant + " " + v.Where + ": " + v.What }

// Tally counts the facts that were checked for an invariant, and its violations.
type Tally struct {
	Invariant  string `json:"invariant"`
	Checked    int64  `json:"checked"` // URLs, slots, commits, mails or answers, depending on the invariant
	Violations int    `json:"violations"`
}

// Reads counts the calls of a check, and the bytes of the objects read.
type Reads struct {
	Records int64 `json:"records"`
	Objects int64 `json:"objects"` // of which some are read twice
	Bytes   int64 `json:"bytes"`
}

// Report is the result of a check. The same store gives the same report.
type Report struct {
	Software string    `json:"software,omitempty"`
	Time     time.Time `json:"time,omitzero"`

	Crawl      string `json:"crawl"`
	Partitions int    `json:"partitions"` // partitions that own slots or ever did

	Epoch  partition.Epoch `json:"epoch"`  // of the map
	Moving int             `json:"moving"` // slots on the move

	Commits   int   `json:"commits"`                 // visible
	Objects   int   `json:"objects"`                 // of the crawl, named or not
	WARCs     int   `json:"warcs"`                   // named
	WARCsRead int   `json:"warcs_read"`              // and found whole
	WARCsBad  int   `json:"warcs_damaged,omitempty"` // missing ones included
	Orphans   int   `json:"orphans"`                 // objects that nothing names: crashes and merges leave them
	Dead      int   `json:"dead_letters"`
	Pages     int64 `json:"pages"`     // page records, robots.txt included
	URLs      int64 `json:"urls"`      // known
	Pending   int64 `json:"pending"`   // of them
	InFlight  int64 `json:"in_flight"` // URLs in mail that is buffered or not applied yet, with repeats
	Links     int64 `json:"links"`     // followed

	Generations int64 `json:"generations"`  // page records of a generation above 0
	Revisits    int64 `json:"revisits"`     // page records whose payload equals that of an earlier record
	OutOfScope  int64 `json:"out_of_scope"` // page records of URLs that were requested although out of scope, or left out late for a cap
	Requests    int64 `json:"requests"`     // mails made of requests from outside
	Forwarded   int64 `json:"forwarded"`    // URLs that their name's slot sent on to the slot of an address; not in URLs
	Capped      int64 `json:"capped"`       // links left out for a cap on known URLs

	Index *IndexReport `json:"index,omitempty"` // nil if the crawl has no index
	Ranks *RanksReport `json:"ranks,omitempty"` // nil if there is no rank job

	Read       Reads       `json:"read"`
	Checks     int         `json:"checks"` // number of checks; 2 if the crawl continued during a check with violations
	Invariants []Tally     `json:"invariants"`
	Violations []Violation `json:"violations"` // the first of each invariant
	Found      int         `json:"found"`      // violations, also those not kept
}

// Clean reports whether nothing is damaged.
func (r *Report) Clean() bool { return r.Found == 0 }

// ErrNoCrawl means that the store contains no crawl.
var ErrNoCrawl = blobschema.ErrNoCrawl

// Check checks a crawl. It returns an error only if the check was not possible: a record could
// not be read, ctx ended, or there is no crawl. Damage of the stored crawl is in the report,
// also an object that cannot be read.
//
// Slots move between partitions, and page records stay where they were committed. A URL is
// therefore looked up at the home of its slot: the one partition that holds the slot, or
// that is to take it from a hand-over. The page records of the URL may be anywhere.
//
// Some facts are not stored, so they can be checked less strictly. A link that a cap left
// out has neither URL nor reason: Check compares the number of missing links with what the
// partition counted, where its slot or partition is as full as the cap allows. No record
// says which pages were requested and do not count against the limit: with
// requests or revisits the total of pages is only an upper bound. In a crawl by IP the
// address of a name is known from mail, pending URLs and the WARC objects that are read.
//
// Heads are not read at one moment, because a large crawl changes all the time. A head that
// is read early shows too little, which looks like mail on its way. Only the places of
// slots must agree, so heads are read again until they do. If the crawl has made commits
// during a check with violations, Check checks again, and the second check counts.
func Check(ctx context.Context, s Store, opt Options) (Report, error) {
	c, err := check(ctx, s, opt)
	return c.report, err
}

const maxChecks = 2

// check is Check, with all facts.
func check(ctx context.Context, s Store, opt Options) (*checker, error) {
	if opt.MaxViolations <= 0 {
		opt.MaxViolations = 100
	}
	read := &Reads{}
	for checks := 1; ; checks++ {
		c := newChecker(ctx, s, opt, read)
		c.pass()
		c.tally(checks)
		if c.err != nil {
			return c, fmt.Errorf("check crawl: %w", c.err)
		}
		// A running crawl deletes runs as it merges them. Real damage is found again.
		if c.report.Clean() || checks == maxChecks || !c.wentOn() {
			return c, c.err
		}
	}
}

// invariants returns a judge for each invariant, in the order of reports.
func (c *checker) invariants() (judges []*judge) {
	for _, i := range []struct {
		name  string
		check func(v *judge, fact any)
	}{
		{"I1", i1}, {"I2", i2}, {"I3", i3}, {"I4", i4}, {"I5", i5}, {"I6", i6}, {"I7", i7}, {"I8", i8}, {"I9", i9},
		{"limit", limit}, {"I11", i11}, {"ranks", rankSums},
	} {
		judges = append(judges, &judge{c, Tally{Invariant: i.name}, i.check})
	}
	return judges
}

// judge checks one invariant. Its function sees every fact of the pass and all that was
// gathered, and ignores facts that say nothing about its invariant.
type judge struct {
	*checker
	Tally
	check func(v *judge, fact any)
}

// must checks a fact, and reports a violation unless ok.
func (v *judge) must(ok bool, where, format string, args ...any) {
	if v.Checked++; !ok {
		v.violate(where, format, args...)
	}
}

// same checks a stored value against the value that follows from other stored values.
func (v *judge) same(where, what string, is, should any) {
	a, b := fmt.Sprintf("%+v", is), fmt.Sprintf("%+v", should)
	v.must(a == b, where, "its %s: %s, and should be %s", what, a, b)
}

func (v *judge) violate(where, format string, args ...any) {
	v.add(Violation{v.Invariant, fmt.Sprintf(format, args...), where})
}

// keeps reports whether the next violation is kept.
func (v *judge) keeps() bool { return v.Violations < v.opt.MaxViolations }

// show shows a fact to all invariants.
func (c *checker) show(fact any) {
	for _, v := range c.judges {
		v.check(v, fact)
	}
}

func (c *checker) judge(invariant string) *judge {
	return c.judges[slices.IndexFunc(c.judges, func(v *judge) bool { return v.Invariant == invariant })]
}

// damaged reports something that cannot be read, so that it gives no fact.
func (c *checker) damaged(where, format string, args ...any) {
	c.judge("I6").violate(where, format, args...)
}

// add reports a violation, once: an object that two others name is missing once.
func (c *checker) add(found Violation) {
	if c.said[found] {
		return
	}
	if c.retry {
		c.found = append(c.found, found)
		return
	}
	v := c.judge(found.Invariant)
	c.report.Found++
	if v.keeps() {
		c.report.Violations = append(c.report.Violations, found)
		c.said[found] = true
	}
	v.Violations++
}

// maxReadings bounds how often something that changes is read.
const maxReadings = 5

// steadily checks objects that records name while others may change them, and delete what they
// replace. If it finds a violation and the records have changed meanwhile, it forgets the
// result and checks again.
func (c *checker) steadily(keys []string, check func()) {
	stamp := func() string {
		values, err := c.store.Records(c.ctx, keys...)
		c.reads.Records += int64(len(keys))
		c.err = cmp.Or(c.err, err)
		return fmt.Sprintf("%q", values)
	}
	c.retry = true
	for reading := 1; ; reading++ {
		before := stamp()
		c.found = nil
		if check(); len(c.found) == 0 || reading == maxReadings || c.err != nil || stamp() == before {
			break
		}
	}
	c.retry = false
	for _, found := range c.found {
		c.add(found)
	}
}

// tally completes the report.
func (c *checker) tally(checks int) {
	c.report.Read, c.report.Checks = *c.reads, checks
	if c.index != (IndexReport{}) {
		c.report.Index = &c.index
	}
	if c.ranks != (RanksReport{}) {
		c.report.Ranks = &c.ranks
	}
	for _, v := range c.judges {
		if v.Invariant != "I11" && v.Invariant != "ranks" || v.Checked+int64(v.Violations) > 0 { // few crawls have these
			c.report.Invariants = append(c.report.Invariants, v.Tally)
		}
	}
}

// wentOn reports whether the crawl has made commits since the check began.
func (c *checker) wentOn() bool {
	r, found := record[blobschema.MapRecord](c, naming.MapKey(c.id))
	on := found && r.Version != c.atlas.record.Version
	for _, p := range c.parts {
		h, _ := record[blobschema.Head](c, naming.HeadKey(c.id, p.id))
		on = on || h.Commit != p.head.Commit
	}
	return on && c.err == nil && c.bad == 0
}
