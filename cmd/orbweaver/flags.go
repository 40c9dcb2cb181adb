package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/partition"
)

// Defaults of the crawl command that are not those of other packages.
const (
	// defaultPartitions is what the benchmark found best on two cores: as fast as one, and
	// cheaper than more (go run ./internal/bench -partitions 1,2,4,8).
	defaultPartitions = 2
	defaultAgent      = "orbweaver/" + version + " (+https://github.com/orbweaver/orbweaver)"
	defaultPolicy     = "breadth-first"
	defaultQuality    = "depth"
	// maxMaxBody leaves room for the HTTP header in a WARC record.
	maxMaxBody = warc.MaxBlock - 1<<20
)

// runFlags are those of every command that crawls: of one run only.
type runFlags struct {
	place

	connections int
	allowNet    netsValue
	maxTime     time.Duration

	every time.Duration // how often to look, in the cloud

	costs bool

	json  bool
	quiet bool
}

// Flags that only make sense where the crawl runs in this process, with what decides in a
// cloud instead; and the other way round.
var (
	folderFlags = map[string]string{
		"connections": "how many requests a function has under way is a matter of its memory: see the variables of 'make deploy'",
		"allow-net":   "which networks functions may ask is a matter of their environment: see the variables of 'make deploy'",
		"max-time":    "the crawl runs by itself there: 'orbweaver stop' ends it, --max-pages bounds it",
	}
	cloudFlags = map[string]string{
		"every":  "a crawl in a folder runs in this process",
		"detach": "a crawl in a folder runs in this process, and ends with it",
	}
)

// refuseOthers tells the first flag given that makes no sense at the place, but for some.
func (f *runFlags) refuseOthers(but ...string) error {
	flags, where := cloudFlags, "a folder"
	if f.inCloud() {
		flags, where = folderFlags, "a cloud"
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if f.set.Changed(name) && !slices.Contains(but, name) {
			return usagef("--%s makes no sense in %s: %s", name, where, flags[name])
		}
	}
	return nil
}

func (f *runFlags) register(fs *pflag.FlagSet) {
	fs.SortFlags = false
	f.place.register(fs)
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop this run after so long; 0 for never")
	fs.IntVar(&f.connections, "connections", 256, "requests under way at once")
	fs.Var(&f.allowNet, "allow-net", "private network that the crawl may connect to; repeatable; kept with the crawl; 'none' removes the kept ones")
	fs.DurationVar(&f.every, "every", 3*time.Second, "in a cloud: how often to look how far it is")
	fs.BoolVar(&f.costs, "costs", false, "in a folder: add to the summary how many calls this run made, and what they would cost in a cloud")
	fs.BoolVar(&f.json, "json", false, "tell what happens as JSON, one object a line")
	fs.BoolVar(&f.quiet, "quiet", false, "say nothing but warnings and errors")
}

// check refuses what no single flag's parser can.
func (f *runFlags) check() error {
	if err := f.settle(); err != nil {
		return err
	}
	return f.refuse([]wrong{
		{f.every <= 0, "every", "longer than 0s"},
		{f.maxTime < 0, "max-time", "longer than 0s, or 0 for no bound"},
		{f.connections < 1, "connections", "1 or more"},
	})
}

// wrong says whether the value of a flag is wrong, and what it must be.
type wrong struct {
	is   bool
	flag string
	want string
}

// refuse tells the first of the values that are wrong.
func (f *runFlags) refuse(checks []wrong) error {
	for _, c := range checks {
		if c.is {
			return usagef("invalid argument %q for --%s: it must be %s", f.set.Lookup(c.flag).Value, c.flag, c.want)
		}
	}
	return nil
}

// perRun lists the flags of this run only that going on needs again.
func (f *runFlags) perRun() []string {
	var args []string
	if f.set.Changed("connections") {
		args = append(args, "--connections="+strconv.Itoa(f.connections))
	}
	return args
}

// crawlFlags is what the crawl command can be told.
type crawlFlags struct {
	runFlags
	file    string
	seeds   string
	skipBad bool // lines of seeds
	another bool
	detach  bool

	scope       scopeValue
	include     patternsValue
	exclude     patternsValue
	maxDepth    boundValue
	maxBody     sizeValue
	slots       int
	partitions  int
	elastic     elasticValue
	partitionBy partitionByValue
	policy      policyValue
	quality     qualityValue
	hostRanks   string
	ranks       []byte // what is in that file
	sitemaps    bool
	srcset      bool
	index       bool

	delay    time.Duration
	agent    agentValue
	timeout  time.Duration
	maxPages boundValue
	compress compressValue

	maxHostURLs, maxDomainURLs, maxSegments, maxRepeats boundValue

	hosts   hostRulesValue
	queues  queuesValue
	recrawl rateValue

	described *described   // by the file; nil without one
	begun     []crawl.Seed // what it is begun with, or given more
}

func (f *crawlFlags) register(cmd *cobra.Command) {
	*f = crawlFlags{
		scope: scopeValue(blobschema.ScopeHost), maxDepth: boundValue{n: -1}, maxBody: 16 << 20,
		agent: defaultAgent, maxPages: boundValue{n: -1, least: 1},
		partitionBy: partitionByValue(blobschema.ByHost), policy: defaultPolicy, quality: defaultQuality,
		maxHostURLs: boundValue{n: 1_000_000}, maxDomainURLs: boundValue{n: 5_000_000},
		maxSegments: boundValue{n: 32}, maxRepeats: boundValue{n: 5},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.file, "file", "", "crawl file (YAML) that describes the crawl: see 'orbweaver help crawl-file'; flags beside it win")
	fs.StringVar(&f.seeds, "seeds", "", "file of URLs to begin with, one a line, # comments; - for standard input")
	fs.BoolVar(&f.skipBad, "skip-bad-seeds", false, "skip, list and count lines of --seeds that are no URL, instead of stopping there")
	fs.BoolVar(&f.another, "new", false, "begin another crawl where the last one is finished, at its limit or stopped; only 'export' made before leads to the pages of that")
	fs.BoolVar(&f.detach, "detach", false, "in a cloud: do not follow the crawl")
	fs.Var(&f.scope, "scope", "which links are followed: to the hosts of the seeds and of what these redirect to, to their registrable domains, or any")
	fs.Var(&f.include, "include", "follow only links that match this expression (RE2), or another --include")
	fs.Var(&f.exclude, "exclude", "follow no links that match this expression (RE2); wins over --include")
	fs.Var(&f.maxDepth, "max-depth", "follow links up to so many steps from a seed; -1 for no bound")
	fs.BoolVar(&f.sitemaps, "sitemaps", true, "follow the sitemaps that robots.txt names")
	fs.BoolVar(&f.srcset, "srcset", false, "follow the images of img and source elements too")
	fs.Var(&f.policy, "policy", "what is asked for first: what is nearest to the seeds, most pages in a second of connection time, the best pages, or most quality in a second")
	fs.StringVar(&f.hostRanks, "host-ranks", "", "file of what hosts are worth, one a line: host, tab, a number (1 is as much as one that is not there); for --quality host-rank, which it stands for")
	fs.Var(&f.quality, "quality", "what makes a page good, for the last two: how near it is to a seed, how many links lead to it, how much these are worth, what its host is worth, or chance")
	fs.Var(&f.partitionBy, "partition-by", "what --delay is between two requests to: a host, its registrable domain, or its IP address")
	fs.IntVar(&f.partitions, "partitions", defaultPartitions, "parts that the crawl is divided into when it begins; 'orbweaver partitions' changes that")
	fs.Var(&f.elastic, "elastic", "let the crawl choose its partitions between these, by what there is to do, and even it out; off for as many as it is told")
	fs.IntVar(&f.slots, "slots", partition.DefaultSlots, "slots that hosts are dealt to")
	fs.Var(&f.maxBody, "max-body", "bytes of an answer's body that are kept, such as 16MiB; at most "+formatSize(maxMaxBody))
	fs.Var(&f.maxPages, "max-pages", "stop after so many pages (answers with status 2xx); -1 for no bound")
	fs.DurationVar(&f.delay, "delay", time.Second, "least time between two requests to a host; robots.txt may ask for more")
	fs.Var(&f.hosts, "host-rule", "what the operator of a host allows: connections at once, another --delay, or both, as in example.org=8,100ms; repeatable")
	fs.Var(&f.queues, "queues", "how the URLs of a host with several connections are dealt to queues, of each of which one request is made at a time: auto (to as many as connections), host (to one), or surt, bkdr, elf or sdbm and how many, as in bkdr:8")
	fs.Var(&f.recrawl, "recrawl", "ask again for so many pages in an hour or a day, those first that are likely to have changed, of those that are answered from now on; such a crawl does not end; off for none")
	fs.Lookup("recrawl").NoOptDefVal = defaultRate
	fs.BoolVar(&f.index, "index", false, "make what is crawled searchable as the crawl goes: an index, and ranks of pages and hosts")
	fs.DurationVar(&f.timeout, "timeout", time.Minute, "time that one request may take; a body that arrives at 1 kB/s or faster has four times as long")
	fs.Var(&f.agent, "user-agent", "how the crawler names itself; its product is what robots.txt is obeyed for")
	fs.Var(&f.compress, "compress", "how WARC files are compressed")
	fs.Var(&f.maxHostURLs, "max-host-urls", "limit of known URLs per host, of which sitemaps fill at most half; 0 or -1 for none, here and below")
	fs.Var(&f.maxDomainURLs, "max-domain-urls", "approximate limit of known URLs per registrable domain, likewise")
	fs.Var(&f.maxSegments, "max-path-segments", "follow no links whose path has more segments")
	fs.Var(&f.maxRepeats, "max-repeats", "follow no links whose path has one segment more often")
	f.runFlags.register(fs)
}

// check refuses what no single flag's parser can.
func (f *crawlFlags) check() error {
	if err := f.runFlags.check(); err != nil {
		return err
	}
	if f.skipBad && f.seeds == "" {
		return usagef("--skip-bad-seeds applies to the file of --seeds; give that too")
	}
	if f.elastic.most > 0 && !f.set.Changed("partitions") {
		f.partitions = f.elastic.least
	}
	return f.refuse(f.wrongs())
}

// wrongs are values that no single flag's parser can refuse.
func (f *crawlFlags) wrongs() []wrong {
	return []wrong{
		{f.delay < 0, "delay", "0s or longer"},
		{f.timeout <= 0, "timeout", "longer than 0s"},
		{f.slots < 1 || f.slots > partition.MaxSlots, "slots", fmt.Sprintf("1 to %d", partition.MaxSlots)},
		{f.partitions < 1 || f.partitions > min(partition.MaxPartitions, f.slots), "partitions",
			fmt.Sprintf("1 to %d, and not more than --slots", partition.MaxPartitions)},
		{f.elastic.most > f.slots, "elastic", "not more than --slots"},
		{f.maxBody < 1 || f.maxBody > maxMaxBody, "max-body", "1 to " + formatSize(maxMaxBody)},
		{f.maxDepth.n >= 1<<16, "max-depth", "0 to 65535, or -1 for no bound"},
		{f.maxSegments.n >= 1<<31, "max-path-segments", "less than 2147483648"},
		{f.maxRepeats.n >= 1<<31, "max-repeats", "less than 2147483648"},
	}
}

// fresh is the record of a new crawl, its identity apart.
func (f *crawlFlags) fresh() blobschema.Crawl {
	c := blobschema.Crawl{
		Slots: f.slots, Partitions: f.partitions,
		Settings: blobschema.Settings{
			Scope: blobschema.Scope(f.scope), Include: f.include, Exclude: f.exclude,
			MaxDepth: int(f.maxDepth.n), MaxBody: int64(f.maxBody),
			PartitionBy: blobschema.PartitionBy(f.partitionBy), Policy: string(f.policy), Quality: string(f.quality),
			Sitemaps: f.sitemaps, Srcset: f.srcset, Plain: bool(f.compress),
			MaxHostURLs: f.maxHostURLs.orNone(), MaxDomainURLs: f.maxDomainURLs.orNone(),
			MaxSegments: int(f.maxSegments.orNone()), MaxRepeats: int(f.maxRepeats.orNone()),
			Delay: f.delay, UserAgent: string(f.agent), Timeout: f.timeout, MaxPages: f.maxPages.orNone(),
			LeastPartitions: f.elastic.least, MostPartitions: f.elastic.most,
			Hosts: f.hosts, QueueBy: f.queues.by, Queues: f.queues.n, RecrawlPerHour: float64(f.recrawl), Index: f.index,
			AllowNet: f.allowNet.with(nil),
		},
	}
	if d := f.described; d != nil {
		if !d.given["host-rule"] {
			c.Settings.Hosts = d.Hosts
		}
		c.Settings.Topics, _, _ = d.Join(&c.Settings) // Parse has told what is wrong
	}
	return c
}

// resume is the record of a crawl that goes on: as it was, but for the flags given that
// may change. Flags given that contradict what the crawl froze are refused.
func (f *crawlFlags) resume(stored blobschema.Crawl) (blobschema.Crawl, error) {
	fresh := f.fresh()
	was, now := &stored.Settings, &fresh.Settings
	policy, quality, by := policyOf(was), cmp.Or(was.Quality, defaultQuality), partitionBy(was)
	var problems crawlfile.Problems // of the file
	for _, c := range []struct {
		flag string
		same bool
		was  string
	}{
		{"scope", was.Scope == now.Scope, string(was.Scope)},
		{"include", slices.Equal(was.Include, now.Include), quoted(was.Include)},
		{"exclude", slices.Equal(was.Exclude, now.Exclude), quoted(was.Exclude)},
		{"max-depth", was.MaxDepth == now.MaxDepth, strconv.Itoa(was.MaxDepth)},
		{"max-body", was.MaxBody == now.MaxBody, formatSize(was.MaxBody)},
		{"policy", policy == now.Policy, policy},
		{"host-ranks", f.hostRanks == "" || was.HostRanks == naming.Ranks(stored.ID, f.ranks), "another file, or none"},
		{"quality", quality == now.Quality, quality},
		{"partition-by", by == now.PartitionBy, string(by)},
		{"sitemaps", was.Sitemaps == now.Sitemaps, strconv.FormatBool(was.Sitemaps)},
		{"srcset", was.Srcset == now.Srcset, strconv.FormatBool(was.Srcset)},
		{"slots", stored.Slots == fresh.Slots, strconv.Itoa(stored.Slots)},
		{"partitions", stored.Partitions == fresh.Partitions, strconv.Itoa(stored.Partitions)},
	} {
		if f.set.Changed(c.flag) && !c.same {
			flag := f.set.Lookup(c.flag)
			if f.described.has(c.flag) {
				problems = append(problems, f.described.Problem(c.flag, fmt.Sprintf("%s %s contradicts the crawl in %s, which was begun with %s and keeps it",
					c.flag, flag.Value, f.place.String(), c.was)))
				continue
			}
			if c.flag == "partitions" {
				return blobschema.Crawl{}, usagef("the crawl in %s was begun with %s; how it is divided is changed with '%s', while it runs too.\n"+
					"Leave --partitions out to go on with it", f.place.String(), spelt(flag, c.was), f.command("partitions scale", flag.Value.String()))
			}
			return blobschema.Crawl{}, usagef("%s contradicts the crawl in %s, which was begun with %s and keeps it.\n"+
				"Leave --%s out to go on with that crawl, or begin another one "+f.elsewhere(),
				spelt(flag, flag.Value.String()), f.place.String(), spelt(flag, c.was), c.flag)
		}
	}
	if f.set.Changed("elastic") && f.elastic.most > stored.Slots {
		return blobschema.Crawl{}, usagef("--elastic %s is too many: the crawl in %s has %s, for good", &f.elastic, f.place.String(), plural(int64(stored.Slots), "slot"))
	}
	if problems = append(problems, f.resumeFile(was)...); problems != nil {
		return blobschema.Crawl{}, fail(exitUsage, problems.Err())
	}
	for flag, take := range map[string]func(){
		"delay":             func() { was.Delay = now.Delay },
		"user-agent":        func() { was.UserAgent = now.UserAgent },
		"timeout":           func() { was.Timeout = now.Timeout },
		"max-pages":         func() { was.MaxPages = now.MaxPages },
		"compress":          func() { was.Plain = now.Plain },
		"max-host-urls":     func() { was.MaxHostURLs = now.MaxHostURLs },
		"max-domain-urls":   func() { was.MaxDomainURLs = now.MaxDomainURLs },
		"max-path-segments": func() { was.MaxSegments = now.MaxSegments },
		"max-repeats":       func() { was.MaxRepeats = now.MaxRepeats },
		"host-rule":         func() { was.Hosts = now.Hosts },
		"queues":            func() { was.QueueBy, was.Queues = now.QueueBy, now.Queues },
		"recrawl":           func() { was.RecrawlPerHour = now.RecrawlPerHour },
		"index":             func() { was.Index = now.Index },
		"allow-net":         func() { was.AllowNet = f.allowNet.with(was.AllowNet) },
		"elastic":           func() { was.LeastPartitions, was.MostPartitions = now.LeastPartitions, now.MostPartitions },
	} {
		if f.set.Changed(flag) {
			take()
		}
	}
	return stored, nil
}

// elsewhere says how another crawl can be had beside the one there is.
func (f *crawlFlags) elsewhere() string {
	if f.inCloud() {
		return "with --new once that one is finished or stopped"
	}
	return "in another folder (--data), or with --new once that one is finished or stopped"
}

// policyOf is the name of a crawl's policy.
func policyOf(s *blobschema.Settings) string { return cmp.Or(s.Policy, defaultPolicy) }

// partitionBy is a crawl's unit of pacing.
func partitionBy(s *blobschema.Settings) blobschema.PartitionBy {
	return cmp.Or(s.PartitionBy, blobschema.ByHost)
}

// spelt writes a flag with a value as a command line has it.
func spelt(flag *pflag.Flag, value string) string {
	if flag.NoOptDefVal != "" { // --flag alone would be a value too
		return "--" + flag.Name + "=" + value
	}
	return "--" + flag.Name + " " + value
}

// quoted lists patterns for a message.
func quoted(patterns []string) string {
	if len(patterns) == 0 {
		return "(none)"
	}
	return strings.Join(patterns, " ")
}
