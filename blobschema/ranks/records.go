package ranks

import (
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Job is the record of the last rank job: its inputs and its results. The [Head] of each partition has its
// progress.
type Job struct {
	Version int       `json:"version"`
	Number  uint64    `json:"number"` // grows by one with each job
	Params  Params    `json:"params"`
	Inputs  []Input   `json:"inputs,omitempty"` // by partition, including those without commits
	Map     string    `json:"map,omitempty"`    // object of the partition map of this job; "": that of epoch 1
	Started time.Time `json:"started"`
	Done    time.Time `json:"done,omitzero"`    // end of the job, successful or not
	Failed  string    `json:"failed,omitempty"` // why there is no result
	Fresh   bool      `json:"fresh,omitempty"`  // results of previous jobs are not used
	// Alone is the number of nodes and links of both levels up to which one partition computes all ranks.
	Alone int64 `json:"alone,omitempty"`
	// The following fields are set when the job is done.
	Rounds    int        `json:"rounds,omitempty"`    // of iteration
	Residuals []Residual `json:"residuals,omitempty"` // of the last MaxRankResiduals rounds
	Totals    Totals     `json:"totals,omitzero"`
	// HostRanks is a text object: lines of a host, a tab and its rank, best first; 1 is the mean.
	// CrawledHosts is the same for the best hosts with a page that was answered, "" in jobs of earlier
	// versions. PageRanks is the same for the best pages.
	HostRanks    string `json:"host_ranks,omitempty"`
	CrawledHosts string `json:"crawled_hosts,omitempty"`
	PageRanks    string `json:"page_ranks,omitempty"`
	// Previous is the last finished job before this one, without its Inputs and Previous. Its results are kept until
	// this job is finished.
	Previous *Job `json:"previous,omitempty"`
}

// Finished returns the job whose results are in use: j, or the previous one; nil if there is none.
func (j *Job) Finished() *Job {
	if !j.Done.IsZero() && j.Failed == "" {
		return j
	}
	return j.Previous
}

// Params are the parameters of a job.
type Params struct {
	Damping   float64 `json:"damping"`    // the chance that a surfer follows a link; above 0, below 1
	Tolerance float64 `json:"tolerance"`  // the job ends when no level changes by more in a round: the sum of all absolute differences
	MaxRounds int     `json:"max_rounds"` // bound on the rounds of iteration
	// Personal lists where a surfer jumps to, in proportion to weights. Empty: to any page, or to any host.
	Personal []Weight `json:"personal,omitempty"`
}

// Weight is the weight of a page, or of all pages of a host together.
type Weight struct {
	Host   string  `json:"host,omitempty"` // either Host or URL is set
	URL    string  `json:"url,omitempty"`  // canonical
	Weight float64 `json:"weight"`
}

// Bounds of a job. The record is one item of a table.
const (
	MaxRounds        = 1000
	MaxRankResiduals = 200
	maxPersonal      = 1000
	maxPersonalBytes = 64 << 10
)

// DefaultParams returns the default parameters.
func DefaultParams() Params {
	return Params{Damping: 0.85, Tolerance: 1e-8, MaxRounds: 200}
}

// Check returns an error if p is invalid.
func (p *Params) Check() error {
	size := 0
	for _, w := range p.Personal {
		size += len(w.Host) + len(w.URL)
		if (w.Host == "") == (w.URL == "") {
			return errors.New("a weight is that of a host or of a URL")
		}
		if !(w.Weight > 0 && w.Weight <= 1e9) {
			return fmt.Errorf("weight %g of %s%s is not above 0, up to 1e9", w.Weight, w.Host, w.URL)
		}
	}
	switch {
	case !(p.Damping > 0 && p.Damping < 1):
		return fmt.Errorf("damping %g is not above 0 and below 1", p.Damping)
	case !(p.Tolerance >= 0 && p.Tolerance <= 1):
		return fmt.Errorf("tolerance %g is not from 0 to 1", p.Tolerance)
	case p.MaxRounds < 1 || p.MaxRounds > MaxRounds:
		return fmt.Errorf("%d rounds are not 1 to %d", p.MaxRounds, MaxRounds)
	case len(p.Personal) > maxPersonal || size > maxPersonalBytes:
		return fmt.Errorf("personalisation by %d hosts and URLs of %d bytes: at most %d, of %d bytes", len(p.Personal), size, maxPersonal, maxPersonalBytes)
	}
	return nil
}

// Input is the input of a job from one partition: its commits up to one of them.
type Input struct {
	Partition partition.ID `json:"p"`
	Seq       uint64       `json:"seq"` // 0: no commits
	Fence     uint64       `json:"fence,omitempty"`
}

// Commit returns the name of the last commit object.
func (i Input) Commit(crawl string) string {
	return naming.Commit(crawl, i.Partition, i.Seq, i.Fence)
}

// Residual is how much a round changed the ranks, by level: the sum of all absolute
// differences, of ranks that add up to 1.
type Residual struct {
	Pages float64 `json:"pages"`
	Hosts float64 `json:"hosts"`
}

// Level returns the figure of a level: 0 is that of pages, 1 that of hosts.
func (r *Residual) Level(i int) *float64 { return [...]*float64{&r.Pages, &r.Hosts}[i] }

// Totals are the sizes of the graphs of pages and hosts.
type Totals struct {
	Pages         int64 `json:"pages,omitempty" cbor:"1,keyasint,omitempty"`          // nodes: known URLs, fetched or not
	Crawled       int64 `json:"crawled,omitempty" cbor:"2,keyasint,omitempty"`        // nodes that were answered with 2xx or a redirect
	Links         int64 `json:"links,omitempty" cbor:"3,keyasint,omitempty"`          // between different pages, each pair once
	Dangling      int64 `json:"dangling,omitempty" cbor:"4,keyasint,omitempty"`       // pages without links
	Hosts         int64 `json:"hosts,omitempty" cbor:"5,keyasint,omitempty"`          // nodes
	HostLinks     int64 `json:"host_links,omitempty" cbor:"6,keyasint,omitempty"`     // between different hosts, each pair once
	DanglingHosts int64 `json:"dangling_hosts,omitempty" cbor:"7,keyasint,omitempty"` // hosts without links
	Anchors       int64 `json:"anchors,omitempty" cbor:"8,keyasint,omitempty"`        // crawled pages with texts of links to them
}

// Add adds the figures of another partition.
func (t *Totals) Add(o *Totals) {
	t.Pages += o.Pages
	t.Crawled += o.Crawled
	t.Links += o.Links
	t.Dangling += o.Dangling
	t.Hosts += o.Hosts
	t.HostLinks += o.HostLinks
	t.DanglingHosts += o.DanglingHosts
	t.Anchors += o.Anchors
}

// The rounds of a job. Each ends when all partitions have finished it.
const (
	Gather  = 0 // the links of commits go to the partitions that own the pages
	Join    = 1 // each page keeps its last answer; its links go to the owners of their targets
	Nodes   = 2 // all nodes get numbers; anchor texts are collected
	Start   = 3 // the first ranks, and their shares for linked nodes
	Iterate = 4 // this round and all later ones: one multiplication each
)

// Head is the record of a partition's progress with a job. Steps replace it by compare-and-set. The step that loses a
// race has no effect.
type Head struct {
	Partition partition.ID `json:"partition"`
	Job       uint64       `json:"job"`
	// Rounds are the last two finished rounds, the newer one last: other partitions may still need the older one.
	Rounds []Round `json:"rounds"`
	Final  bool    `json:"final,omitempty"` // the last of Rounds is the last round of the job
	Totals Totals  `json:"totals,omitzero"` // set from Nodes on
	// Next holds the results of the current job so far. Last holds the results of the previous finished job.
	Next Result `json:"next"`
	Last Result `json:"last,omitzero"`
	// Dropped are objects to delete when all partitions have finished a round.
	Dropped []Dropped        `json:"dropped,omitempty"`
	Calls   blobschema.Calls `json:"calls,omitzero"` // of this partition's steps, for all jobs
}

// Round is a round that a partition has finished.
type Round struct {
	Number int       `json:"number"`
	Time   time.Time `json:"time"`
	// Object holds the part of the round for each partition, in order, then the state that this partition needs for the
	// next round. Parts are their lengths, as varints.
	Object string `json:"object,omitempty"`
	Parts  []byte `json:"parts,omitempty"`
	Sums   Sums   `json:"sums,omitzero"`
}

// Round returns the last round of a job that h has finished; -1 if there is none.
func (h *Head) Round(job uint64) int {
	if h.Job != job || len(h.Rounds) == 0 {
		return -1
	}
	return h.Rounds[len(h.Rounds)-1].Number
}

// At returns a round, or nil if it is not one of the last two.
func (h *Head) At(round int) *Round {
	for i := range h.Rounds {
		if h.Rounds[i].Number == round {
			return &h.Rounds[i]
		}
	}
	return nil
}

// Part locates the n-th part in Object. The part after those of all partitions is the partition's own state. The error
// is [wire.ErrDamaged].
func (r *Round) Part(n int) (off, length int64, err error) {
	c := &wire.Cursor{Rest: r.Parts}
	for i := 0; i <= n; i++ {
		off += length
		length = int64(c.Uvarint(1 << 40))
	}
	if c.Err != nil {
		return 0, 0, fmt.Errorf("part %d of %s: %w", n, r.Object, c.Err)
	}
	return off, length, nil
}

// Result returns the results of a finished job for the partition, or false if h does not have them.
func (h *Head) Result(job uint64) (Result, bool) {
	switch {
	case h.Next.Job == job && h.Final:
		return h.Next, true
	case h.Last.Job == job && job > 0:
		return h.Last, true
	}
	return Result{}, false
}

// Sums are numbers that are summed in the order of partitions, so that every partition computes bit-identical sums.
type Sums struct {
	Residual Residual `json:"residual,omitzero"` // of the round
	Dangling Residual `json:"dangling,omitzero"` // ranks of nodes without links
	Weight   Residual `json:"weight,omitzero"`   // of personalisation
	Known    Residual `json:"known,omitzero"`    // previous ranks of nodes
	New      Residual `json:"new,omitzero"`      // weights of nodes without a previous rank
}

// Add adds the sums of another partition.
func (s *Sums) Add(o *Sums) {
	s.Residual.add(o.Residual)
	s.Dangling.add(o.Dangling)
	s.Weight.add(o.Weight)
	s.Known.add(o.Known)
	s.New.add(o.New)
}

func (r *Residual) add(o Residual) {
	r.Pages += o.Pages
	r.Hosts += o.Hosts
}

// Result names the results of a job for a partition.
type Result struct {
	Job     uint64 `json:"job"`
	Seq     uint64 `json:"seq"`               // the commits up to this one are included
	Graph   string `json:"graph,omitempty"`   // object: pages and their links
	Layout  string `json:"layout,omitempty"`  // object: a [Layout], while the job runs
	Anchors string `json:"anchors,omitempty"` // object: see [AnchorTarget]
	Table   string `json:"table,omitempty"`   // object: a [Table] of the answered pages
	Rest    string `json:"rest,omitempty"`    // object: a [Table] of the other nodes
	Hosts   string `json:"hosts,omitempty"`   // object: ranks of the partition's hosts
}

// Objects returns the names of the objects.
func (r *Result) Objects() (names []string) {
	for _, n := range []string{r.Graph, r.Layout, r.Anchors, r.Table, r.Rest, r.Hosts} {
		if n != "" {
			names = append(names, n)
		}
	}
	return names
}

// Dropped is an object that may be deleted when all partitions have finished a round.
type Dropped struct {
	Object string `json:"object"`
	Job    uint64 `json:"job"`
	Round  int    `json:"round"`
}
