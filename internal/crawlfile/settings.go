package crawlfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// Setting is one setting of a crawl. It is a flag of 'orbweaver crawl', a field of the crawl's record
// and, unless NoKey is set, a key of crawl files.
type Setting struct {
	Name    string
	Usage   string
	Default string
	Bare    string // the value of the flag without one
	Fixed   bool   // the crawl keeps the value that it was created with
	NoKey   bool
	field   func(c *record) value
}

// record is the record of a crawl, which holds the settings.
type record = blobschema.Crawl

// Settings is the table of all settings. Flags, keys, records and docs/crawl-file.md derive from it.
var Settings = []Setting{
	{Name: "scope", Default: "host", Fixed: true,
		Usage: "which links to follow: to the hosts of the seeds and of their redirects, to their registrable domains, or any",
		field: func(c *record) value {
			return named(&c.Settings.Scope, blobschema.ScopeHost, blobschema.ScopeDomain, blobschema.ScopeAny)
		}},
	{Name: "include", Fixed: true, Usage: "follow only links that match this expression (RE2), or another --include",
		field: func(c *record) value { return patterns(&c.Settings.Include) }},
	{Name: "exclude", Fixed: true, Usage: "follow no links that match this expression (RE2); wins over --include",
		field: func(c *record) value { return patterns(&c.Settings.Exclude) }},
	{Name: "max-depth", Default: "-1", Fixed: true, Usage: "follow links up to this many steps from a seed; -1 for no bound",
		field: func(c *record) value { return limit(&c.Settings.MaxDepth, 0, math.MaxUint16, -1) }},
	{Name: "sitemaps", Default: "true", Bare: "true", Fixed: true, Usage: "follow the sitemaps that robots.txt names",
		field: func(c *record) value { return boolean(&c.Settings.Sitemaps) }},
	{Name: "requisites", Default: "true", Bare: "true", Fixed: true,
		Usage: "fetch what pages need to be displayed, from any host: style sheets, scripts, images, fonts, media; with --platform only if given",
		field: func(c *record) value { return boolean(&c.Settings.Requisites) }},
	{Name: "policy", Default: "breadth-first", Fixed: true,
		Usage: "which URL comes first: nearest to the seeds, most pages per second of connection time, best, or most quality per second",
		field: func(c *record) value { return named(&c.Settings.Policy, schedule.PolicyNames()...) }},
	{Name: "quality", Default: "depth", Fixed: true,
		Usage: "score of a page for the last two policies: nearness to a seed, links to it, their worth, its host's worth, or chance",
		field: func(c *record) value { return named(&c.Settings.Quality, schedule.QualityNames()...) }},
	{Name: "hosts-from", Default: "last", Fixed: true,
		Usage: "crawl whose times of hosts a new crawl begins with, if its policy is performance or capability: the last one, an id, or none",
		field: func(c *record) value {
			return scalar(&c.Settings.HostsFrom, "last|ID|none", parseHostsFrom, func(s string) string { return cmp.Or(s, "last") })
		}},
	{Name: "partition-by", Default: "host", Fixed: true, Usage: "what --delay applies to: a host, its registrable domain, or its IP address",
		field: func(c *record) value {
			return named(&c.Settings.PartitionBy, blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP)
		}},
	{Name: "elastic", Default: "off", field: elastic,
		Usage: "let the crawl choose its number of partitions between these by its load, and balance it; off for a fixed number"},
	{Name: "imbalance", Default: "1.25",
		Usage: "with elastic: move hosts when the busiest partition has this many times the mean of the remaining work, from 1.01",
		field: func(c *record) value {
			return scalar(&c.Settings.Imbalance, "number", parseImbalance, func(f float64) string { return strconv.FormatFloat(cmp.Or(f, 1.25), 'g', -1, 64) })
		}},
	{Name: "slots", Default: strconv.Itoa(partition.DefaultSlots), Fixed: true, Usage: "number of slots that hosts are hashed to",
		field: func(c *record) value { return number(&c.Slots, partition.MaxSlots) }},
	{Name: "partitions", Default: "2", Fixed: true, Usage: "number of partitions of a new crawl; 'orbweaver partitions' changes it",
		field: func(c *record) value { return number(&c.Partitions, partition.MaxPartitions) }},
	{Name: "max-body", Default: "16MiB", Fixed: true,
		Usage: "bytes of a response body to keep, such as 16MiB; at most " + formatSize(maxMaxBody),
		field: func(c *record) value { return scalar(&c.Settings.MaxBody, "size", parseSize, formatSize) }},
	{Name: "max-pages", Default: "-1", Usage: "stop after this many pages (answers with status 2xx); -1 for no bound",
		field: func(c *record) value { return limit(&c.Settings.MaxPages, 1, math.MaxInt64, 0) }},
	{Name: "delay", Default: "1s", Usage: "least time between two requests to a host; robots.txt may ask for more",
		field: func(c *record) value { return duration(&c.Settings.Delay, 0, "0s or longer") }},
	{Name: "host-rule", NoKey: true, field: hostRules,
		Usage: "what the operator of a host allows: parallel connections, another --delay, or both, as in example.org=8,100ms; repeatable"},
	{Name: "queues", Default: "auto", field: queues, Usage: "how to deal the URLs of a host with several connections to queues: auto " +
		"(as many as connections), host (one), or a hash (surt, bkdr, elf, sdbm) and a number, as in bkdr:8"},
	{Name: "recrawl", Default: "off", Bare: "500/h",
		Usage: "revisit this many pages per hour or day, where copies gain most freshness; the crawl then runs until stopped; off for none",
		field: func(c *record) value { return scalar(&c.Settings.RecrawlPerHour, "N/h|N/d", ParseRate, FormatRate) }},
	{Name: "index", Default: "false", Bare: "true", Usage: "make pages searchable as the crawl goes: an index, and ranks of pages and hosts",
		field: func(c *record) value { return boolean(&c.Settings.Index) }},
	{Name: "timeout", Default: "1m0s", Usage: "time limit of one request; a body that arrives at 1 kB/s or faster gets four times as long",
		field: func(c *record) value { return duration(&c.Settings.Timeout, 1, "longer than 0s") }},
	{Name: "user-agent", Usage: "name of the crawler; robots.txt is obeyed for its product",
		field: func(c *record) value {
			return scalar(&c.Settings.UserAgent, "text", parseAgent, func(s string) string { return s })
		}},
	{Name: "compress", Default: "gzip", Usage: "compression of WARC files",
		field: func(c *record) value { return choice(&c.Settings.Plain, []string{"gzip", "none"}, []bool{false, true}) }},
	{Name: "max-host-urls", Default: "1000000",
		Usage: "limit of known URLs per host, of which sitemaps fill at most half; 0 or -1 for none, here and below",
		field: func(c *record) value { return limit(&c.Settings.MaxHostURLs, 0, math.MaxInt64, 0) }},
	{Name: "max-domain-urls", Default: "5000000", Usage: "approximate limit of known URLs per registrable domain, likewise",
		field: func(c *record) value { return limit(&c.Settings.MaxDomainURLs, 0, math.MaxInt64, 0) }},
	{Name: "max-path-segments", Default: "32", Usage: "follow no links whose path has more segments",
		field: func(c *record) value { return limit(&c.Settings.MaxSegments, 0, math.MaxInt32, 0) }},
	{Name: "max-repeats", Default: "5", Usage: "follow no links whose path repeats a segment more often",
		field: func(c *record) value { return limit(&c.Settings.MaxRepeats, 0, math.MaxInt32, 0) }},
	{Name: "allow-net", NoKey: true, field: networks,
		Usage: "private network that the crawl may connect to; repeatable; kept with the crawl; 'none' removes the kept ones"},
}

// maxMaxBody leaves room for the HTTP header in a WARC record.
const maxMaxBody = warc.MaxBlock - 1<<20

// Find returns the setting with a name, or nil.
func Find(name string) *Setting {
	if i := slices.IndexFunc(Settings, func(s Setting) bool { return s.Name == name }); i >= 0 {
		return &Settings[i]
	}
	return nil
}

// Defaults returns a record with the default of each setting.
func Defaults(userAgent string) blobschema.Crawl {
	c := blobschema.Crawl{Settings: blobschema.Settings{UserAgent: userAgent}}
	for i := range Settings {
		if s := &Settings[i]; s.Default != "" {
			if err := s.Set(&c, s.Default); err != nil {
				panic("crawlfile: " + s.Name + ": " + err.Error()) // a wrong table: unreachable
			}
		}
	}
	return c
}

// Get is the value in a record, as text.
func (s *Setting) Get(c *record) string { return s.field(c).get() }

// Kind names the values in a usage text, as in "host|domain|any".
func (s *Setting) Kind() string { return s.field(&blobschema.Crawl{}).kind }

// Set parses a value into a record, or adds it to a list.
func (s *Setting) Set(c *record, text string) error { return s.field(c).set(text) }

// Replace sets a record to values: one, or those of a list in their order.
func (s *Setting) Replace(c *record, texts []string) error {
	v := s.field(c)
	if v.clear != nil {
		v.clear()
	} else if len(texts) > 1 {
		return errors.New("it takes one value")
	}
	for _, t := range texts {
		if err := v.set(t); err != nil {
			return err
		}
	}
	return nil
}

// Check finds the first setting that contradicts another one.
func Check(c *record) (name string, err error) {
	switch {
	case c.Partitions > c.Slots:
		return "partitions", errors.New("it must not be more than --slots")
	case c.Settings.MostPartitions > c.Slots:
		return "elastic", errors.New("it must not be more than --slots")
	}
	return "", nil
}

// value reads and writes one setting of one record. The error of set describes valid values.
type value struct {
	kind  string
	get   func() string
	set   func(string) error
	clear func() // prepares a list for other values: empties it, if these do not add to it
}

// scalar is a value of one field.
func scalar[T any](at *T, kind string, parse func(string) (T, error), format func(T) string) value {
	return value{
		kind: kind,
		get:  func() string { return format(*at) },
		set: func(s string) error {
			v, err := parse(s)
			if err == nil {
				*at = v
			}
			return err
		},
	}
}

// list is a value of a slice. Each call of set adds an item.
func list[T any](at *[]T, kind string, parse func(string) (T, error), format func(T) string) value {
	return value{
		kind: kind,
		get: func() string {
			var texts []string
			for _, v := range *at {
				texts = append(texts, format(v))
			}
			return cmp.Or(strings.Join(texts, " "), "(none)")
		},
		set: func(s string) error {
			v, err := parse(s)
			if err == nil {
				*at = append(*at, v)
			}
			return err
		},
		clear: func() { *at = nil },
	}
}

// choice is a value of a few words. A record with another value counts as having the first one.
func choice[T comparable](at *T, words []string, values []T) value {
	last := len(words) - 1
	return scalar(at, strings.Join(words, "|"), func(s string) (v T, err error) {
		i := slices.Index(words, s)
		if i < 0 {
			return v, fmt.Errorf("it must be %s or %s", strings.Join(words[:last], ", "), words[last])
		}
		return values[i], nil
	}, func(v T) string { return words[max(slices.Index(values, v), 0)] })
}

// named is a choice whose values are their own names.
func named[T ~string](at *T, values ...T) value {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	return choice(at, words, values)
}

func boolean(at *bool) value {
	v := choice(at, []string{"true", "false"}, []bool{true, false})
	v.kind = "bool"
	return v
}

func number(at *int, most int) value {
	return scalar(at, "int", func(s string) (int, error) { return parseCount(s, most) }, strconv.Itoa)
}

// limit is a bound, or -1 for no bound, which records store as none.
func limit[T int | int64](at *T, least, most int64, none T) value {
	want := fmt.Sprintf("%d to %d", least, most)
	if most == math.MaxInt64 {
		want = fmt.Sprintf("%d or more", least)
	}
	return scalar(at, "n", func(s string) (T, error) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err == nil && n == -1 {
			return none, nil
		}
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("it must be %s, or -1 for no bound", want)
		}
		return T(n), nil
	}, func(n T) string {
		if n == none {
			return "-1"
		}
		return strconv.FormatInt(int64(n), 10)
	})
}

func duration(at *time.Duration, least time.Duration, want string) value {
	return scalar(at, "duration", func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			err = errors.New("it must be a time such as 500ms, 1s or 2m")
		case d < least:
			err = errors.New("it must be " + want)
		}
		return d, err
	}, time.Duration.String)
}

func patterns(at *[]string) value {
	return list(at, "regexp", func(s string) (string, error) {
		_, err := regexp.Compile(s)
		if err != nil {
			err = fmt.Errorf("it must be a regular expression (RE2): %w", err)
		}
		return s, err
	}, func(s string) string {
		if strings.Contains(s, " ") {
			return strconv.Quote(s) // else two patterns would look like one
		}
		return s
	})
}

func hostRules(c *record) value {
	s := &c.Settings
	return list(&s.Hosts, "HOST=N,DELAY", func(text string) (blobschema.HostRule, error) {
		r, err := ParseHostRule(text)
		if err == nil && slices.ContainsFunc(s.Hosts, func(o blobschema.HostRule) bool { return o.Host == r.Host }) {
			err = fmt.Errorf("host %s has a rule already", r.Host)
		}
		return r, err
	}, FormatHostRule)
}

// networks adds to the networks that a crawl has; "none" removes those.
func networks(c *record) value {
	s := &c.Settings
	v := list(&s.AllowNet, "CIDR", parseNetwork, netip.Prefix.String)
	add := v.set
	v.set = func(text string) error {
		if text == "none" {
			s.AllowNet = nil
			return nil
		}
		if p, err := parseNetwork(text); err == nil && slices.Contains(s.AllowNet, p) {
			return nil
		}
		return add(text)
	}
	v.clear = func() {}
	return v
}

// parseHostsFrom parses the id of a crawl, "last" or "none".
func parseHostsFrom(s string) (string, error) {
	if s == "last" {
		return "", nil
	}
	if naming.CheckCrawlID(s) != nil {
		return "", errors.New("it must be last, none or the id of a crawl, as 'orbweaver crawls' lists them")
	}
	return s, nil
}

func elastic(c *record) value {
	s := &c.Settings
	get := func() string { return formatElastic(s.LeastPartitions, s.MostPartitions) }
	return value{kind: "LEAST..MOST", get: get, set: func(text string) (err error) {
		s.LeastPartitions, s.MostPartitions, err = parseElastic(text)
		return err
	}}
}

func queues(c *record) value {
	s := &c.Settings
	return value{kind: "WAY:N", get: func() string { return FormatQueues(s.QueueBy, s.Queues) }, set: func(text string) (err error) {
		s.QueueBy, s.Queues, err = ParseQueues(text)
		return err
	}}
}
