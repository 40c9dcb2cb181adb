package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// Defaults of the crawl command that are not those of other packages.
const (
	// defaultPartitions is what the benchmark found best on two cores: as fast as one, and
	// cheaper than more (go run ./internal/bench -partitions 1,2,4,8).
	defaultPartitions = 2
	defaultAgent      = "orbweaver/" + version + " (+https://github.com/orbweaver/orbweaver)"
	// maxMaxBody leaves room for the HTTP header in a WARC record.
	maxMaxBody = blobschema.MaxWARCBlock - 1<<20
)

// crawlFlags is what the crawl command can be told.
type crawlFlags struct {
	data  string
	seeds string

	scope      scopeValue
	include    patternsValue
	exclude    patternsValue
	maxDepth   boundValue
	maxBody    sizeValue
	slots      int
	partitions int

	delay    time.Duration
	agent    agentValue
	timeout  time.Duration
	maxPages boundValue

	connections int
	allowNet    netsValue
	maxTime     time.Duration

	json  bool
	quiet bool

	set *pflag.FlagSet // tells which were given
}

func (f *crawlFlags) register(cmd *cobra.Command) {
	*f = crawlFlags{
		scope: scopeValue(blobschema.ScopeHost), maxDepth: boundValue{n: -1}, maxBody: 16 << 20,
		agent: defaultAgent, maxPages: boundValue{n: -1, least: 1}, set: cmd.Flags(),
	}
	fs := f.set
	fs.SortFlags = false
	fs.StringVar(&f.data, "data", defaultData, "folder that holds the crawl")
	fs.StringVar(&f.seeds, "seeds", "", "file of URLs to begin with, one a line, # comments; - for standard input")
	fs.Var(&f.scope, "scope", "which links are followed: to the hosts of the seeds and of what these redirect to, to their registrable domains, or any")
	fs.Var(&f.include, "include", "follow only links that match this expression (RE2), or another --include")
	fs.Var(&f.exclude, "exclude", "follow no links that match this expression (RE2); wins over --include")
	fs.Var(&f.maxPages, "max-pages", "stop after so many pages (answers with status 2xx); -1 for no bound")
	fs.Var(&f.maxDepth, "max-depth", "follow links up to so many steps from a seed; -1 for no bound")
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop this run after so long; 0 for never")
	fs.DurationVar(&f.delay, "delay", time.Second, "least time between two requests to a host; robots.txt may ask for more")
	fs.IntVar(&f.partitions, "partitions", defaultPartitions, "parts that the crawl is divided into")
	fs.IntVar(&f.slots, "slots", partition.DefaultSlots, "slots that hosts are dealt to")
	fs.IntVar(&f.connections, "connections", 256, "requests under way at once")
	fs.Var(&f.agent, "user-agent", "how the crawler names itself; its product is what robots.txt is obeyed for")
	fs.Var(&f.allowNet, "allow-net", "network that may be asked although it is not public; repeatable")
	fs.Var(&f.maxBody, "max-body", "bytes of an answer's body that are kept, such as 16MiB; at most "+formatSize(maxMaxBody))
	fs.DurationVar(&f.timeout, "timeout", time.Minute, "time that one request may take")
	fs.BoolVar(&f.json, "json", false, "tell what happens as JSON, one object a line")
	fs.BoolVar(&f.quiet, "quiet", false, "say nothing but warnings and errors")
}

// check refuses what no single flag's parser can.
func (f *crawlFlags) check() error {
	for _, c := range []struct {
		wrong bool
		flag  string
		want  string
	}{
		{f.delay < 0, "delay", "0s or longer"},
		{f.timeout <= 0, "timeout", "longer than 0s"},
		{f.maxTime < 0, "max-time", "longer than 0s, or 0 for no bound"},
		{f.connections < 1, "connections", "1 or more"},
		{f.slots < 1 || f.slots > partition.MaxSlots, "slots", fmt.Sprintf("1 to %d", partition.MaxSlots)},
		{f.partitions < 1 || f.partitions > min(partition.MaxPartitions, f.slots), "partitions",
			fmt.Sprintf("1 to %d, and not more than --slots", partition.MaxPartitions)},
		{f.maxBody < 1 || f.maxBody > maxMaxBody, "max-body", "1 to " + formatSize(maxMaxBody)},
		{f.maxDepth.n >= 1<<16, "max-depth", "0 to 65535, or -1 for no bound"},
	} {
		if c.wrong {
			return usagef("invalid argument %q for --%s: it must be %s", f.set.Lookup(c.flag).Value, c.flag, c.want)
		}
	}
	return nil
}

// limit is --max-pages as the record has it: 0 for none.
func (f *crawlFlags) limit() int64 { return max(f.maxPages.n, 0) }

// fresh is the record of a new crawl, its identity apart.
func (f *crawlFlags) fresh() blobschema.Crawl {
	return blobschema.Crawl{
		Slots: f.slots, Partitions: f.partitions,
		Settings: blobschema.Settings{
			Scope: blobschema.Scope(f.scope), Include: f.include, Exclude: f.exclude,
			MaxDepth: int(f.maxDepth.n), MaxBody: int64(f.maxBody),
			Delay: f.delay, UserAgent: string(f.agent), Timeout: f.timeout, MaxPages: f.limit(),
		},
	}
}

// resume is the record of a crawl that goes on: as it was, but for the flags given that
// may change. Flags given that contradict what the crawl froze are refused.
func (f *crawlFlags) resume(stored blobschema.Crawl) (blobschema.Crawl, error) {
	was, now := &stored, f.fresh()
	for _, c := range []struct {
		flag string
		same bool
		was  string
	}{
		{"scope", was.Settings.Scope == now.Settings.Scope, string(was.Settings.Scope)},
		{"include", slices.Equal(was.Settings.Include, now.Settings.Include), quoted(was.Settings.Include)},
		{"exclude", slices.Equal(was.Settings.Exclude, now.Settings.Exclude), quoted(was.Settings.Exclude)},
		{"max-depth", was.Settings.MaxDepth == now.Settings.MaxDepth, strconv.Itoa(was.Settings.MaxDepth)},
		{"max-body", was.Settings.MaxBody == now.Settings.MaxBody, formatSize(was.Settings.MaxBody)},
		{"slots", was.Slots == now.Slots, strconv.Itoa(was.Slots)},
		{"partitions", was.Partitions == now.Partitions, strconv.Itoa(was.Partitions)},
	} {
		if f.set.Changed(c.flag) && !c.same {
			return blobschema.Crawl{}, usagef("--%[1]s %[2]s contradicts the crawl in %[3]s, which was begun with --%[1]s %[4]s and keeps it.\n"+
				"Leave --%[1]s out to go on with that crawl, or begin another one in another folder (--data)",
				c.flag, f.set.Lookup(c.flag).Value, f.data, c.was)
		}
	}
	for flag, take := range map[string]func(){
		"delay":      func() { was.Settings.Delay = now.Settings.Delay },
		"user-agent": func() { was.Settings.UserAgent = now.Settings.UserAgent },
		"timeout":    func() { was.Settings.Timeout = now.Settings.Timeout },
		"max-pages":  func() { was.Settings.MaxPages = now.Settings.MaxPages },
	} {
		if f.set.Changed(flag) {
			take()
		}
	}
	return stored, nil
}

// quoted lists patterns for a message.
func quoted(patterns []string) string {
	if len(patterns) == 0 {
		return "(none)"
	}
	return strings.Join(patterns, " ")
}
