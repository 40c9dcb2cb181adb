package blobschema

import (
	"net/netip"
	"slices"
	"time"
)

// Settings are the settings of a crawl. The first two groups are frozen, except Plain and
// the shares of Topics. The others may change when the crawl is resumed.
type Settings struct {
	Scope    Scope    `json:"scope"`
	Include  []string `json:"include,omitempty"` // RE2; if there are any, a link must match one
	Exclude  []string `json:"exclude,omitempty"` // RE2; a link must match none
	MaxDepth int      `json:"max_depth"`         // links from a seed, -1 for no bound
	MaxBody  int64    `json:"max_body"`          // bytes of a body that are kept

	// Keys, order and kinds of URLs.
	PartitionBy PartitionBy `json:"partition_by,omitempty"` // empty: by host
	Policy      string      `json:"policy,omitempty"`       // name of a frontier policy; empty: breadth-first
	Quality     string      `json:"quality,omitempty"`      // name of a page score, for policies that rank by it; empty: depth
	HostRanks   string      `json:"host_ranks,omitempty"`   // object with the scores of hosts, for the quality "host-rank"
	HostsFrom   string      `json:"hosts_from,omitempty"`   // crawl whose measurements of hosts are known: empty for the last one, an id, or "none"
	KnownHosts  string      `json:"known_hosts,omitempty"`  // object with these measurements, see [EncodeKnownHosts]; empty for none
	Topics      []Topic     `json:"topics,omitempty"`       // numbers 1 and up; a crawl without topics has number 0 only
	Sitemaps    bool        `json:"sitemaps,omitempty"`     // follow the sitemaps that robots.txt names
	Requisites  bool        `json:"requisites,omitempty"`   // fetch what pages need to be displayed, also from other hosts
	Plain       bool        `json:"plain,omitempty"`        // do not compress WARC files

	// Caps against traps; 0 is no cap.
	MaxHostURLs   int64 `json:"max_host_urls,omitempty"`   // known URLs of one host
	MaxDomainURLs int64 `json:"max_domain_urls,omitempty"` // known URLs of one registrable domain, approximate
	MaxSegments   int   `json:"max_segments,omitempty"`    // of a path
	MaxRepeats    int   `json:"max_repeats,omitempty"`     // of one segment in a path

	Delay     time.Duration `json:"delay"` // between the starts of two requests to a host
	UserAgent string        `json:"user_agent"`
	Timeout   time.Duration `json:"timeout"` // of one request, unless its body arrives steadily
	MaxPages  int64         `json:"max_pages,omitempty"`

	// The coordinator chooses a number of partitions between these bounds and balances their load.
	// With 0 and 0 only the operator moves slots.
	LeastPartitions int `json:"least_partitions,omitempty"`
	MostPartitions  int `json:"most_partitions,omitempty"`
	// Imbalance is the load of the fullest partition, relative to the mean, above which the coordinator moves slots; 0: 1.25.
	Imbalance float64 `json:"imbalance,omitempty"`

	// Rules for single hosts, and the assignment of the URLs of a host with several connections to queues.
	Hosts   []HostRule `json:"hosts,omitempty"`
	QueueBy QueueBy    `json:"queue_by,omitempty"` // empty: by BKDR hash, to as many queues as there are connections
	Queues  int        `json:"queues,omitempty"`   // of one host, unless by host

	// Index makes the crawl searchable: pages are indexed and ranked during the crawl.
	Index bool `json:"index,omitempty"`

	// RecrawlPerHour is the number of settled URLs to revisit per hour, chosen by how often
	// they change. Such a crawl never finishes. 0: none.
	RecrawlPerHour float64 `json:"recrawl_per_hour,omitempty"`

	// AllowNet are networks that are not public, to which this crawl may connect from the machine of
	// the folder's owner. Functions and workers ignore them: they have a configuration of their own.
	AllowNet []netip.Prefix `json:"allow_net,omitempty"`
}

// QueueBy selects how the URLs of a host are assigned to queues (Zhang, Wang). Each queue has at most one request at a
// time.
type QueueBy string

// The queue assignments.
const (
	QueueByHost QueueBy = "host" // one queue
	QueueBySURT QueueBy = "surt" // one queue for all URLs of a SURT prefix, which ends with the first segment of the path
	QueueByBKDR QueueBy = "bkdr" // by the BKDR hash of the URL
	QueueByELF  QueueBy = "elf"
	QueueBySDBM QueueBy = "sdbm"
)

// HostRule is what the operator of a host allows.
type HostRule struct {
	Host        string         `json:"host"`                  // an authority; the rule applies to its politeness key
	Connections int            `json:"connections,omitempty"` // concurrent requests; 0: 1
	Delay       *time.Duration `json:"delay,omitempty"`       // replaces the crawl's delay; robots.txt may demand more
}

// Topic is a named part of a crawl, with its own scope and share (Fan, Li). Several consecutive
// topics with one name are one topic, whose URLs have priorities of their own: a link
// inherits the priority of its page.
type Topic struct {
	Name     string        `json:"name"`
	Priority int           `json:"priority,omitempty"` // higher goes first, -100 to 100
	Slice    time.Duration `json:"slice,omitempty"`    // length of its turn among topics of its priority; 0: DefaultSlice
	Minimum  int64         `json:"minimum,omitempty"`  // pages to fetch in each Period, after which its slice shrinks. 0: no minimum
	Period   time.Duration `json:"period,omitempty"`   // 0: DefaultPeriod
	Scope    Scope         `json:"scope"`
	Include  []string      `json:"include,omitempty"`
	Exclude  []string      `json:"exclude,omitempty"`
	MaxDepth int           `json:"max_depth"` // -1 for no bound
	// Requisites replaces Settings.Requisites for the pages of the topic.
	Requisites bool     `json:"requisites,omitempty"`
	Words      []string `json:"words,omitempty"` // lower-case; links that contain one in URL or anchor go first
}

// WantsRequisites reports whether the requisites of pages of a topic are fetched.
func (s *Settings) WantsRequisites(topic uint8) bool {
	if i := int(topic) - 1; i >= 0 && i < len(s.Topics) {
		return s.Topics[i].Requisites
	}
	return s.Requisites
}

// AnyRequisites reports whether the requisites of any topic are fetched.
func (s *Settings) AnyRequisites() bool {
	return s.Requisites || slices.ContainsFunc(s.Topics, func(t Topic) bool { return t.Requisites })
}

// Defaults and bounds of topics.
const (
	DefaultSlice  = 10 * time.Second
	DefaultPeriod = 24 * time.Hour
	MaxTopics     = 255
)
