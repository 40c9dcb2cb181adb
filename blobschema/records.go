package blobschema

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/partition"
)

// Crawl is the record that begins a crawl: one conditional create in the
// table. Everything but SeedBatches, Published and what of the Settings may change is frozen.
type Crawl struct {
	Version    int       `json:"version"`
	ID         string    `json:"id"`
	Created    time.Time `json:"created"`
	HashKey    []byte    `json:"hash_key"` // 16 bytes
	Slots      int       `json:"slots"`
	Partitions int       `json:"partitions"` // of epoch 1
	Settings   Settings  `json:"settings"`
	// SeedBatches names the objects of seeds given so far, in order; the batch at
	// index i is mail number i+1 from partition.Intake to every partition.
	SeedBatches []string `json:"seed_batches"`
	// Published counts the batches whose mail was sent. Sending one again is harmless.
	Published int `json:"published"`
}

// Scope says which links are followed.
type Scope string

// The scopes.
const (
	ScopeHost   Scope = "host"   // the hosts of the seeds, and of what a seed redirects to
	ScopeDomain Scope = "domain" // their registrable domains
	ScopeAny    Scope = "any"
)

// PartitionBy selects the politeness key of a URL, see [PartitionBy.Key].
type PartitionBy string

// The kinds of politeness key.
const (
	ByHost   PartitionBy = "host"   // the authority of a URL
	ByDomain PartitionBy = "domain" // its registrable domain
	ByIP     PartitionBy = "ip"     // the address that its name had when it was first resolved
)

// Settings are what a crawl was asked to do. The first two groups are frozen, but for Plain and
// the shares of Topics; the others may change when the crawl is resumed.
type Settings struct {
	Scope    Scope    `json:"scope"`
	Include  []string `json:"include,omitempty"` // RE2; a link must match one, where there are any
	Exclude  []string `json:"exclude,omitempty"` // RE2; a link must match none
	MaxDepth int      `json:"max_depth"`         // links from a seed, -1 for no bound
	MaxBody  int64    `json:"max_body"`          // bytes of a body that are kept

	// What is told apart, and in which order it is asked for.
	PartitionBy PartitionBy `json:"partition_by,omitempty"` // empty: by host
	Policy      string      `json:"policy,omitempty"`       // name of a frontier policy; empty: breadth-first
	Quality     string      `json:"quality,omitempty"`      // name of a source of quality, for policies that rank by it; empty: depth
	HostRanks   string      `json:"host_ranks,omitempty"`   // object with what hosts are worth, for the quality "host-rank"
	Topics      []Topic     `json:"topics,omitempty"`       // number 1 and on; the crawl without any is number 0
	Sitemaps    bool        `json:"sitemaps,omitempty"`     // follow the sitemaps that robots.txt names
	Srcset      bool        `json:"srcset,omitempty"`       // follow the images of img and source elements
	Plain       bool        `json:"plain,omitempty"`        // WARC files are not compressed

	// Caps against traps; 0 is none.
	MaxHostURLs   int64 `json:"max_host_urls,omitempty"`   // known URLs of one host
	MaxDomainURLs int64 `json:"max_domain_urls,omitempty"` // known URLs of one registrable domain, within what a tick lets pass
	MaxSegments   int   `json:"max_segments,omitempty"`    // of a path
	MaxRepeats    int   `json:"max_repeats,omitempty"`     // of one segment in a path

	Delay     time.Duration `json:"delay"` // between the starts of two requests to a host
	UserAgent string        `json:"user_agent"`
	Timeout   time.Duration `json:"timeout"` // of one request, unless its body arrives steadily
	MaxPages  int64         `json:"max_pages,omitempty"`

	// Between these the tick chooses the number of partitions, and evens their load; 0, 0:
	// slots are moved by hand only.
	LeastPartitions int `json:"least_partitions,omitempty"`
	MostPartitions  int `json:"most_partitions,omitempty"`

	// What the operators of some hosts allow, and how the URLs of those that allow several
	// connections are dealt to queues.
	Hosts   []HostRule `json:"hosts,omitempty"`
	QueueBy QueueBy    `json:"queue_by,omitempty"` // empty: by BKDR hash, to as many queues as there are connections
	Queues  int        `json:"queues,omitempty"`   // of one host, unless by host

	// Index says that what is crawled is to be searchable: it is indexed, and ranks are computed,
	// as the crawl goes.
	Index bool `json:"index,omitempty"`

	// RecrawlPerHour is how many settled URLs are asked for again in an hour, by what is known
	// of how often they change; such a crawl never finishes. 0: none are.
	RecrawlPerHour float64 `json:"recrawl_per_hour,omitempty"`

	// AllowNet are networks that are not public, which the owner of a folder lets this crawl
	// connect to from their own machine. Functions and workers ignore them: what those may
	// reach is a matter of their own configuration.
	AllowNet []netip.Prefix `json:"allow_net,omitempty"`
}

// QueueBy says which queue of its host a URL belongs to (Zhang, Wang). One request at a time is
// made of each queue.
type QueueBy string

// The queue assignments.
const (
	QueueByHost QueueBy = "host" // one queue
	QueueBySURT QueueBy = "surt" // all URLs of one SURT prefix, which ends with the first segment of the path, in one queue
	QueueByBKDR QueueBy = "bkdr" // by the BKDR hash of the URL
	QueueByELF  QueueBy = "elf"
	QueueBySDBM QueueBy = "sdbm"
)

// HostRule is what the operator of a host allows.
type HostRule struct {
	Host        string         `json:"host"`                  // an authority; the rule applies to its politeness key
	Connections int            `json:"connections,omitempty"` // requests under way at once; 0: 1
	Delay       *time.Duration `json:"delay,omitempty"`       // in place of the crawl's; robots.txt may ask for more
}

// Topic is a named part of a crawl, with a scope and a share of its own (Fan, Li). Several in
// a row with one name are one topic, whose URLs have priorities of their own: what is found on
// a page has the page's.
type Topic struct {
	Name     string        `json:"name"`
	Priority int           `json:"priority,omitempty"` // higher goes first, -100 to 100
	Slice    time.Duration `json:"slice,omitempty"`    // length of its turn among topics of its priority; 0: DefaultSlice
	Minimum  int64         `json:"minimum,omitempty"`  // pages that it is to have in each Period; then its slice shrinks. 0: no minimum
	Period   time.Duration `json:"period,omitempty"`   // 0: DefaultPeriod
	Scope    Scope         `json:"scope"`
	Include  []string      `json:"include,omitempty"`
	Exclude  []string      `json:"exclude,omitempty"`
	MaxDepth int           `json:"max_depth"`       // -1 for no bound
	Words    []string      `json:"words,omitempty"` // lower-case; links that contain one in URL or anchor go first
}

// Defaults and bounds of topics.
const (
	DefaultSlice  = 10 * time.Second
	DefaultPeriod = 24 * time.Hour
	MaxTopics     = 255
)

// Head is the record that names a partition's last commit and holds its
// lease. Only steps write it, each time by compare-and-set (invariant I4).
type Head struct {
	Partition  partition.ID    `json:"partition"`
	Fence      uint64          `json:"fence"`
	Owner      string          `json:"owner,omitempty"` // "<process>/<step>", empty when released
	LeaseUntil time.Time       `json:"lease_until,omitzero"`
	Crashes    int             `json:"crashes,omitempty"` // takeovers since the last commit that settled a URL
	Floor      time.Time       `json:"floor,omitzero"`    // of the last takeover from a crash: hosts rest for a pace from then
	Commit     string          `json:"commit,omitempty"`  // object name; empty before the first
	Seq        uint64          `json:"seq"`               // of that commit
	Epoch      partition.Epoch `json:"epoch"`
	Wish       uint64          `json:"wish"` // version of the wish the commit obeyed
	Due        time.Time       `json:"due,omitzero"`
	Totals     Totals          `json:"totals"`
	Sent       []uint64        `json:"sent,omitempty"`     // mail sent, by receiving partition
	Applied    uint64          `json:"applied,omitempty"`  // mail applied, from all senders
	Requests   uint64          `json:"requests,omitempty"` // of it from intake's requests: all up to this number
	// Published is the last commit whose outbox, and all before, is known to be sent.
	Published uint64   `json:"published,omitempty"`
	Scope     []string `json:"scope,omitempty"` // hosts that seeds redirected to, for the wish
	// Domains are the registrable domains of which most URLs are known here, for the cap.
	Domains map[string]int64 `json:"domains,omitempty"`
	// WakeAt is when the wake arrives that a step sent for its partition's later work: as
	// long as it is to come, no step needs to send another.
	WakeAt time.Time `json:"wake_at,omitzero"`
	// Workless counts the steps in a row, up to the last one, that did no work.
	Workless int `json:"workless,omitempty"`
	// Owes counts the slots that are still held but go to others by the map of Epoch.
	Owes int `json:"owes,omitempty"`
	// Gives are the hand-overs in the manifest, not known to be confirmed: by receiver, the
	// newest epoch.
	Gives map[partition.ID]partition.Epoch `json:"gives,omitempty"`
	// Awaits is the oldest epoch by which slots should come that are not here yet; 0 for none.
	// So moves to this partition of an epoch up to Epoch, and before Awaits, are confirmed.
	Awaits partition.Epoch `json:"awaits,omitempty"`
	// Threshold is the one that looks are planned with, to within a factor of 1.5.
	Threshold float64 `json:"threshold,omitempty"`
	// LooksDue is when a step should see to looks, if they are all that the limit on pages leaves; zero
	// if it leaves more, or nobody knows.
	LooksDue time.Time `json:"looks_due,omitzero"`
	// Calls are those of the partition's steps, but for what was not told yet when the last
	// of them ended, and what crashed steps did since their last commit.
	Calls Calls `json:"calls,omitzero"`
}

// Totals are a partition's figures since the crawl began.
type Totals struct {
	Known      int64            `json:"known,omitempty" cbor:"1,keyasint,omitempty"`   // URLs
	Pending    int64            `json:"pending,omitempty" cbor:"2,keyasint,omitempty"` // URLs known and not settled
	Unexamined int64            `json:"unexamined,omitempty" cbor:"3,keyasint,omitempty"`
	Held       int64            `json:"held,omitempty" cbor:"4,keyasint,omitempty"` // links for others, not yet mailed
	Hosts      int64            `json:"hosts,omitempty" cbor:"5,keyasint,omitempty"`
	Pages      int64            `json:"pages,omitempty" cbor:"6,keyasint,omitempty"`    // OutcomeOK, robots.txt apart: what limits count
	Outcomes   map[string]int64 `json:"outcomes,omitempty" cbor:"7,keyasint,omitempty"` // by Outcome name, robots.txt apart
	Bytes      int64            `json:"bytes,omitempty" cbor:"8,keyasint,omitempty"`    // received
	Stored     int64            `json:"stored,omitempty" cbor:"9,keyasint,omitempty"`   // in WARC objects
	Duplicates int64            `json:"duplicates,omitempty" cbor:"10,keyasint,omitempty"`
	DeadMail   int64            `json:"dead_mail,omitempty" cbor:"11,keyasint,omitempty"`
	OutOfScope int64            `json:"out_of_scope,omitempty" cbor:"12,keyasint,omitempty"`
	WaitMillis int64            `json:"wait_ms,omitempty" cbor:"13,keyasint,omitempty"` // politeness: host-time between ready URL and permission
	Retries    int64            `json:"retries,omitempty" cbor:"14,keyasint,omitempty"`
	Robots     int64            `json:"robots,omitempty" cbor:"15,keyasint,omitempty"`    // robots.txt answers stored
	Urgent     int64            `json:"urgent,omitempty" cbor:"16,keyasint,omitempty"`    // of Pending: asked for on purpose
	Capped     int64            `json:"capped,omitempty" cbor:"17,keyasint,omitempty"`    // links left out: their host or domain has too many URLs
	Trapped    int64            `json:"trapped,omitempty" cbor:"18,keyasint,omitempty"`   // links left out: their path looks like a trap
	Revisits   int64            `json:"revisits,omitempty" cbor:"19,keyasint,omitempty"`  // answers stored as a reference to an earlier payload
	Forwarded  int64            `json:"forwarded,omitempty" cbor:"20,keyasint,omitempty"` // URLs sent on to the slot of their address
	// Topics are the figures of topics by number, 0 apart.
	Topics map[uint8]TopicTotals `json:"topics,omitempty" cbor:"21,keyasint,omitempty"`
	Again  int64                 `json:"again,omitempty" cbor:"22,keyasint,omitempty"` // pages had once more because they may have changed
	// Changed are, of Again, those that had.
	Changed     int64 `json:"changed,omitempty" cbor:"23,keyasint,omitempty"`
	Connections int64 `json:"connections,omitempty" cbor:"24,keyasint,omitempty"` // opened to web servers
}

// TopicTotals are a topic's figures.
type TopicTotals struct {
	Pages   int64 `json:"pages,omitempty" cbor:"1,keyasint,omitempty"`
	Pending int64 `json:"pending,omitempty" cbor:"2,keyasint,omitempty"` // as far as it is in memory
	Bytes   int64 `json:"bytes,omitempty" cbor:"3,keyasint,omitempty"`   // received
}

// Add adds another partition's figures.
func (t *Totals) Add(o *Totals) {
	t.Known += o.Known
	t.Pending += o.Pending
	t.Unexamined += o.Unexamined
	t.Held += o.Held
	t.Hosts += o.Hosts
	t.Pages += o.Pages
	t.Bytes += o.Bytes
	t.Stored += o.Stored
	t.Duplicates += o.Duplicates
	t.DeadMail += o.DeadMail
	t.OutOfScope += o.OutOfScope
	t.WaitMillis += o.WaitMillis
	t.Retries += o.Retries
	t.Robots += o.Robots
	t.Urgent += o.Urgent
	t.Capped += o.Capped
	t.Trapped += o.Trapped
	t.Revisits += o.Revisits
	t.Forwarded += o.Forwarded
	t.Again += o.Again
	t.Changed += o.Changed
	t.Connections += o.Connections
	for k, n := range o.Topics {
		if t.Topics == nil {
			t.Topics = map[uint8]TopicTotals{}
		}
		sum := t.Topics[k]
		t.Topics[k] = TopicTotals{sum.Pages + n.Pages, sum.Pending + n.Pending, sum.Bytes + n.Bytes}
	}
	for k, n := range o.Outcomes {
		if t.Outcomes == nil {
			t.Outcomes = map[string]int64{}
		}
		t.Outcomes[k] += n
	}
}

// Wish is what the operator wants of a running crawl, read by steps at each commit.
type Wish struct {
	Version uint64   `json:"version"`
	Stop    bool     `json:"stop,omitempty"`
	Pause   bool     `json:"pause,omitempty"`
	Why     string   `json:"why,omitempty"`    // the reason of a pause that the coordinator ordered
	Orders  uint64   `json:"orders,omitempty"` // how often Stop or Pause was changed
	Scope   []string `json:"scope,omitempty"`  // hosts added to the scope by redirects of seeds
	// Capped are registrable domains that have reached the cap on known URLs, HalfCapped those that have
	// reached half of it, which is all that URLs from sitemaps may use.
	Capped     []string `json:"capped,omitempty"`
	HalfCapped []string `json:"half_capped,omitempty"`
	// Map is the version of the [MapRecord], as far as it was told.
	Map uint64 `json:"map,omitempty"`
	// Slices are those of topics by number, where they are other than in the settings.
	Slices map[uint8]time.Duration `json:"slices,omitempty"`
	// Threshold is the worth, in the unit of [Change], from which on a settled URL is asked for
	// again; 0 before there is one. It was steered by what Looks says.
	Threshold float64 `json:"threshold,omitempty"`
	Looks     Looks   `json:"looks,omitzero"`
	// HostRanks is the object with the ranks of hosts that were computed last, for the quality "host-rank".
	HostRanks string `json:"host_ranks,omitempty"`
}

// Looks are a crawl's figures when its threshold was steered last.
type Looks struct {
	At    time.Time `json:"at"`
	Again int64     `json:"again,omitempty"` // as in Totals
	Pages int64     `json:"pages,omitempty"`
}

// Grants is the one record that deals out --max-pages: the sum of Granted never
// exceeds Limit, and a partition never stores more pages than it was granted.
type Grants struct {
	Limit   int64                  `json:"limit"`
	Granted map[partition.ID]int64 `json:"granted"`
	// Fences are those of the steps that changed Granted last: a step that has lost its
	// lease cannot change it any more.
	Fences map[partition.ID]uint64 `json:"fences,omitempty"`
}

// Manifest is what makes up a partition as of one commit: enough, with the
// objects it names, to go on. It is a section of the commit object.
type Manifest struct {
	Version   int             `cbor:"1,keyasint"`
	Crawl     string          `cbor:"2,keyasint"`
	Partition partition.ID    `cbor:"3,keyasint"`
	Seq       uint64          `cbor:"4,keyasint"`
	Fence     uint64          `cbor:"5,keyasint"`
	Epoch     partition.Epoch `cbor:"6,keyasint"`
	Time      time.Time       `cbor:"7,keyasint"`
	// Commits are the visible ones before this, oldest first, as ranges of one fence.
	Commits []CommitRange `cbor:"8,keyasint,omitempty"`
	// Runs are the runs of state, this commit's own included, oldest first.
	Runs    []RunRef `cbor:"9,keyasint,omitempty"`
	Dropped []string `cbor:"10,keyasint,omitempty"` // run objects this commit no longer names
	// Unsent are the commits whose outbox may not have been published.
	Unsent []uint64 `cbor:"11,keyasint,omitempty"`
	// HeldFrom is, by receiver, the first commit with links that are in no mail yet.
	HeldFrom map[partition.ID]uint64 `cbor:"12,keyasint,omitempty"`
	Sent     map[partition.ID]uint64 `cbor:"13,keyasint,omitempty"` // last mail number, by receiver
	Applied  map[partition.ID]Marks  `cbor:"14,keyasint,omitempty"` // mail applied, by sender
	Totals   Totals                  `cbor:"15,keyasint"`
	Slots    []SlotSummary           `cbor:"16,keyasint,omitempty"` // of slots that hold anything
	Wish     uint64                  `cbor:"17,keyasint,omitempty"`
	Scope    []string                `cbor:"18,keyasint,omitempty"` // hosts added to the scope, as far as obeyed
	NewScope []string                `cbor:"19,keyasint,omitempty"` // hosts found here that the wish should add
	// Suspects names the URL about to be asked for by a careful step, as often as it is
	// under suspicion.
	Suspects []string      `cbor:"20,keyasint,omitempty"`
	WARCs    []string      `cbor:"21,keyasint,omitempty"` // objects put for this commit
	Careful  int           `cbor:"22,keyasint,omitempty"` // requests still to be made one at a time
	Alarms   int           `cbor:"23,keyasint,omitempty"` // how often crashes have made steps careful
	Delay    time.Duration `cbor:"24,keyasint,omitempty"` // the pace that the operator set for hosts
	// Domains counts the known URLs of the registrable domains that have most.
	Domains map[string]int64 `cbor:"25,keyasint,omitempty"`
	// Seeds is how many batches of seeds had their hosts in the scope.
	Seeds int `cbor:"26,keyasint,omitempty"`
	// Moved are the slots that were given away or taken, each with the newest hand-over; see
	// [Holding].
	Moved []Moved `cbor:"27,keyasint,omitempty"`
	// Given are the hand-overs that are not known to be confirmed.
	Given []Handover `cbor:"28,keyasint,omitempty"`
}

// CommitRange names the commits From to To that were made under one fence.
type CommitRange struct {
	Fence uint64 `cbor:"1,keyasint"`
	From  uint64 `cbor:"2,keyasint"`
	To    uint64 `cbor:"3,keyasint"`
}

// Marks are the mail numbers applied from one sender: all up to Low, and Above.
type Marks struct {
	Low   uint64   `cbor:"1,keyasint"`
	Above []uint64 `cbor:"2,keyasint,omitempty"`
}

// SlotSummary is what is known of a part of a slot without loading it.
type SlotSummary struct {
	_          struct{} `cbor:",toarray"`
	Slot       partition.Slot
	Part       Part
	Known      uint32
	Pending    uint32
	Unexamined uint32 // entries appended since the slot was last loaded
	Due        int64  // Unix milliseconds of the first URL that may be asked for; 0 for none
	Urgent     uint32 // of Pending, those asked for on purpose
}

// Part is a piece of a slot's URLs: those whose fingerprints begin with the Depth bits Prefix.
// The zero value is all of it. A part that holds too many is replaced by its two halves
// (extendible hashing: Fagin, Nievergelt, Pippenger, Strong 1979).
type Part struct {
	_      struct{} `cbor:",toarray"`
	Depth  uint8
	Prefix uint32
}

// MaxPartDepth is the most bits that parts of a slot are told apart by.
const MaxPartDepth = 24

// Has reports whether a fingerprint is of the part.
func (p Part) Has(fp uint64) bool { return fp>>(64-p.Depth) == uint64(p.Prefix) }

// First is the least fingerprint of the part: parts of one slot are in the order of it.
func (p Part) First() uint64 { return uint64(p.Prefix) << (64 - p.Depth) }

// Halves are the two parts that p consists of.
func (p Part) Halves() [2]Part {
	return [2]Part{{Depth: p.Depth + 1, Prefix: p.Prefix << 1}, {Depth: p.Depth + 1, Prefix: p.Prefix<<1 | 1}}
}

// WholeSlots joins the summaries of each slot's parts. An error says that the summaries are not
// in order, or that the parts of a slot are not all of it.
func WholeSlots(parts []SlotSummary) ([]SlotSummary, error) {
	var out []SlotSummary
	end := uint64(1) << MaxPartDepth // up to which the parts of the last slot reach
	for _, s := range parts {
		n := len(out)
		same := n > 0 && out[n-1].Slot == s.Slot
		if n > 0 && s.Slot < out[n-1].Slot || s.Part.Depth > MaxPartDepth {
			return nil, fmt.Errorf("the summaries of slots are not in order: slot %d, part %+v", s.Slot, s.Part)
		}
		width := uint64(1) << (MaxPartDepth - s.Part.Depth)
		start := uint64(s.Part.Prefix) * width
		switch {
		case same && start != end, !same && (start != 0 || end != 1<<MaxPartDepth):
			return nil, fmt.Errorf("the parts of slot %d are not all of it, or overlap", s.Slot)
		case !same:
			s.Part = Part{}
			out = append(out, s)
		default:
			w := &out[n-1]
			w.Known, w.Pending, w.Unexamined, w.Urgent = w.Known+s.Known, w.Pending+s.Pending, w.Unexamined+s.Unexamined, w.Urgent+s.Urgent
			if w.Due == 0 || s.Due != 0 && s.Due < w.Due {
				w.Due = s.Due
			}
		}
		end = start + width
	}
	if end != 1<<MaxPartDepth {
		return nil, fmt.Errorf("the parts of slot %d are not all of it", out[len(out)-1].Slot)
	}
	return out, nil
}

// RunRef names a run of state and says what a reader must fetch of it.
type RunRef struct {
	Object  string         `cbor:"1,keyasint"` // a commit object, or a merged run
	Tier    uint8          `cbor:"2,keyasint,omitempty"`
	Offset  int64          `cbor:"3,keyasint"` // of the run's bytes in the object
	Length  int64          `cbor:"4,keyasint"`
	Index   int64          `cbor:"5,keyasint"` // of the index and filter, from Offset; they end the run
	First   partition.Slot `cbor:"6,keyasint"`
	Last    partition.Slot `cbor:"7,keyasint"`
	Entries int64          `cbor:"8,keyasint"`
}

// State is how far a URL is. A higher state wins when runs are merged.
type State uint8

// The states.
const (
	Pending   State = 0 // to be asked for
	Fetched   State = 1 // an answer is kept
	Refused   State = 2 // no answer will be kept; the page record says why
	Forwarded State = 3 // sent on to the slot of its address, which has it now; no page record here
)

// Origin names the commit that holds a page record: with the ranges of the partition's
// manifest, its object. The zero value is none.
type Origin struct {
	Partition partition.ID
	Seq       uint32
}

// Compare orders origins, for joins.
func (o Origin) Compare(p Origin) int {
	return cmp.Or(cmp.Compare(o.Partition, p.Partition), cmp.Compare(o.Seq, p.Seq))
}

// Settled is a settled URL in a run.
type Settled struct {
	Slot        partition.Slot
	Fingerprint uint64
	Generation  uint32
	State       State
	Origin      Origin // of its page record
}

// Queued is a pending URL in a run, or a URL in mail.
type Queued struct {
	Slot       partition.Slot
	Host       string // politeness key of the URL, see [PartitionBy.Key]
	Rank       uint32 // the order within the unit, lower first; 0 for what was asked for on purpose
	URL        string
	Generation uint32
	Depth      uint16
	Attempts   uint8
	Flags      QueuedFlags
	NotBefore  int64  // Unix milliseconds, 0 for at once
	Former     Origin // where the generation before has its page record; not mailed
	Topic      uint8  // number of its topic; 0 for none
	Change     Change // how often its content was seen to change; not mailed
	// Ask is, with FlagAgain, the request from outside that this is part of, where it was sent on:
	// 0 for that of the mail.
	Ask uint64
}

// Change is what is known of how often a URL's content changes: a gamma distribution of the
// rate of changes, with Shape changes seen in Hours. The zero value is nothing known.
type Change struct {
	Shape, Hours float32
}

// Compare orders changes, for joins.
func (c Change) Compare(d Change) int {
	return cmp.Or(cmp.Compare(c.Hours, d.Hours), cmp.Compare(c.Shape, d.Shape))
}

// QueuedFlags mark a pending URL.
type QueuedFlags uint8

// The flags. The upper four bits count hops, see NextHop.
const (
	FlagSeed    QueuedFlags = 1 << iota // a seed, or what a seed redirects to (at most five hops)
	FlagSitemap                         // a sitemap, whatever its media type says
	FlagAgain                           // asked for on purpose, in mail only: the owner gives the generation
	FlagPlaced                          // Host is the address that the URL's name was pinned to, and travels in mail

	// FlagListed, in place of hops, is of a URL that only sitemaps list. It may use half of a cap.
	FlagListed QueuedFlags = 15 << 4
)

// Listed reports whether only sitemaps list the URL.
func (f QueuedFlags) Listed() bool { return f>>4 == FlagListed>>4 }

// HostState is what is remembered of a host between loads, in a run. The higher
// Version wins. Data is the frontier's own encoding.
type HostState struct {
	Slot    partition.Slot
	Host    string
	Version uint64
	Data    []byte
}

// maxHops bounds how far a chain of redirects from a seed widens the scope, and how
// deep sitemaps may be nested.
const maxHops = 5

// Hops is the number of redirects, or of sitemaps, that led to a URL: counted above the
// flag bits, up to 14.
func (f QueuedFlags) Hops() int {
	if f.Listed() {
		return 0
	}
	return int(f >> 4)
}

// Join returns the flags of a URL that was found with either: all marks, and the fewest
// hops of those that have marks to hand on, or of both if neither has. It is commutative,
// associative and idempotent, as joins must be.
func (f QueuedFlags) Join(g QueuedFlags) QueuedFlags {
	const hands = FlagSeed | FlagSitemap
	hops := min(f>>4, g>>4)
	switch {
	case f&hands != 0 && g&hands == 0:
		hops = f >> 4
	case f&hands == 0 && g&hands != 0:
		hops = g >> 4
	}
	return (f|g)&0xf | hops<<4
}

// NextHop returns the flags of what a URL with flags f redirects to, or names as a sitemap
// if it is one: a hop more, and up to five hops a seed or a sitemap as well.
func (f QueuedFlags) NextHop() QueuedFlags {
	hops := min(f.Hops()+1, 14)
	next := QueuedFlags(hops << 4)
	if hops <= maxHops {
		next |= f & (FlagSeed | FlagSitemap)
	}
	return next
}
