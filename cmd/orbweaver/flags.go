package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/service"
)

// settings are flags made from the table [crawlfile.Settings]. They write into a record.
type settings struct {
	record blobschema.Crawl
	given  map[string][]string // the values on the command line or in the crawl file, by setting
}

// register adds the flags of some settings; of all without names.
func (s *settings) register(fs *pflag.FlagSet, names ...string) {
	s.record, s.given = crawlfile.Defaults(service.DefaultAgent), map[string][]string{}
	for i := range crawlfile.Settings {
		if set := &crawlfile.Settings[i]; names == nil || slices.Contains(names, set.Name) {
			flag := fs.VarPF(&settingFlag{set, s}, set.Name, "", set.Usage)
			flag.NoOptDefVal = set.Bare
			if set.Default == "" && set.Name != "user-agent" {
				flag.DefValue = "" // an empty list
			}
		}
	}
}

// apply sets a setting of another record to the values of the flag, which were parsed before.
func (s *settings) apply(c *blobschema.Crawl, name string) error {
	if err := crawlfile.Find(name).Replace(c, s.given[name]); err != nil {
		return usagef("--%s: %w", name, err)
	}
	return nil
}

// settingFlag is the flag of a setting.
type settingFlag struct {
	*crawlfile.Setting
	to *settings
}

func (f *settingFlag) Set(text string) error {
	f.to.given[f.Name] = append(f.to.given[f.Name], text)
	return f.Setting.Set(&f.to.record, text)
}
func (f *settingFlag) String() string { return f.Get(&f.to.record) }
func (f *settingFlag) Type() string   { return f.Kind() }

// runFlags are the flags of every command that crawls. They apply to one run.
type runFlags struct {
	target
	settings
	reportFlags
	connections int
	maxTime     time.Duration
	every       time.Duration // between two reads of the state of a deployment
}

func (f *runFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.target.register(cmd)
	fs.DurationVar(&f.maxTime, "max-time", 0, "stop this run after this time; 0 for never")
	fs.IntVar(&f.connections, "connections", engine.DefaultConnections, "requests under way at once")
	fs.DurationVar(&f.every, "every", 3*time.Second, "in a cloud: time between two updates of the progress")
	f.reportFlags.register(fs)
}

// check refuses values that the flags' parsers accept, and flags that make no sense at the target, except
// some.
func (f *runFlags) check(except ...string) error {
	if err := refuse(f.set, []wrong{
		{f.every <= 0, "every", "longer than 0s"},
		{f.maxTime < 0, "max-time", "longer than 0s, or 0 for no bound"},
		{f.connections < 1, "connections", "1 or more"},
	}); err != nil {
		return err
	}
	return f.checkFlags(except...)
}

// wrong returns an error if the value of a flag is invalid. The error describes valid values.
type wrong struct {
	is   bool
	flag string
	want string
}

// refuse reports the first wrong value.
func refuse(set *pflag.FlagSet, checks []wrong) error {
	for _, c := range checks {
		if c.is {
			return usagef("invalid argument %q for --%s: it must be %s", set.Lookup(c.flag).Value, c.flag, c.want)
		}
	}
	return nil
}

// crawlFlags are the flags of the crawl command.
type crawlFlags struct {
	runFlags
	file      string
	seeds     string
	skipBad   bool // lines of seeds
	another   bool
	detach    bool
	metrics   string // address
	inbound   string // address
	hostRanks string
	ranks     []byte // the content of that file

	described *crawlfile.File // nil without one
	begun     []crawl.Seed    // the seeds of this run; those of the file come first
}

func (f *crawlFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	fs.StringVar(&f.file, "file", "", "crawl file (YAML) that describes the crawl: see 'orbweaver help crawl-file'; flags override it")
	fs.StringVar(&f.seeds, "seeds", "", "file of URLs to begin with, one a line, # comments; - for standard input")
	fs.BoolVar(&f.skipBad, "skip-bad-seeds", false, "list and skip lines of --seeds that are not URLs, instead of stopping there")
	fs.BoolVar(&f.another, "new", false,
		"start a new crawl after the last one finished, hit its limit or was stopped; the old one can still be read: see 'orbweaver crawls'")
	fs.BoolVar(&f.detach, "detach", false, "in a cloud: do not follow the crawl")
	fs.StringVar(&f.metrics, "metrics", "", metricsUsage)
	fs.StringVar(&f.inbound, "inbound", "", inboundUsage)
	f.settings.register(fs)
	fs.StringVar(&f.hostRanks, "host-ranks", "",
		"file with the worth of hosts, one a line: host, tab, number (1 for a host that is not there); implies --quality host-rank")
	f.runFlags.register(cmd)
}

// read reads the files of --file and --host-ranks, and checks all values.
func (f *crawlFlags) read() error {
	if _, cloud := f.location.(deployment); cloud && !f.set.Changed("requisites") {
		f.record.Settings.Requisites = false // many requests, which cost money there
	}
	if err := f.readFile(); err != nil {
		return err
	}
	if err := f.runFlags.check(); err != nil {
		return err
	}
	if f.skipBad && f.seeds == "" {
		return usagef("--skip-bad-seeds applies to the file of --seeds; give that too")
	}
	if most := f.record.Settings.MostPartitions; most > 0 && f.given["partitions"] == nil {
		f.record.Partitions = f.record.Settings.LeastPartitions
	}
	if name, err := crawlfile.Check(&f.record); err != nil {
		return usagef("invalid argument %q for --%s: %w", crawlfile.Find(name).Get(&f.record), name, err)
	}
	return nil
}

// readFile reads the crawl file, and the file of --host-ranks, which the crawl file may name.
func (f *crawlFlags) readFile() error {
	problems := crawlfile.Problems{}
	if f.file != "" {
		data, err := os.ReadFile(f.file)
		if err != nil {
			return usagef("read --file: %w", err)
		}
		open := func(name string) (io.ReadCloser, error) { return os.Open(f.beside(name)) }
		f.described, err = crawlfile.Parse(f.file, data, &f.record, f.set.Changed, open)
		errors.As(err, &problems)
		for name, values := range f.described.Values {
			if f.inFile(name) {
				f.given[name] = values
			}
		}
		if f.inFile("host-ranks") {
			f.hostRanks = f.beside(f.described.HostRanks)
		}
	}
	switch err := f.readRanks(); {
	case err != nil && f.inFile("host-ranks"):
		problems = append(problems, f.described.Problem("host-ranks", err.Error()))
	case err != nil && len(problems) == 0:
		return usagef("%w", err)
	}
	if err := problems.Err(); err != nil {
		return fail(exitUsage, err)
	}
	return nil
}

// beside returns the path of a file that the crawl file names.
func (f *crawlFlags) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.file), name)
}

// inFile reports whether the crawl file gives a setting, and no flag overrides it.
func (f *crawlFlags) inFile(setting string) bool {
	return f.described != nil && f.described.Values[setting] != nil && !f.set.Changed(setting)
}

// readRanks reads the file of --host-ranks.
func (f *crawlFlags) readRanks() error {
	set := &f.record.Settings
	if f.hostRanks == "" {
		return nil
	}
	data, err := os.ReadFile(f.hostRanks)
	if err != nil {
		return fmt.Errorf("--host-ranks: %w", err)
	}
	if _, err := schedule.ParseHostRanks(data); err != nil {
		return fmt.Errorf("--host-ranks %s: %w", f.hostRanks, err)
	}
	if f.given["quality"] != nil && set.Quality != "host-rank" {
		return fmt.Errorf("--host-ranks contradicts --quality %s", set.Quality)
	}
	f.ranks, set.Quality = data, "host-rank"
	return nil
}

// describe returns the record of a new crawl, without its identity, and its seeds: those of the file, then more.
func (f *crawlFlags) describe(more []crawl.Seed) (blobschema.Crawl, []crawl.Seed) {
	c := f.record
	f.begun = more
	if f.described != nil {
		topics, seeds, _ := f.described.Join(&c.Settings) // Parse has reported the problems
		c.Settings.Topics, f.begun = topics, append(seeds, more...)
	}
	return c, f.begun
}

// resume is the record of a crawl that is resumed: as it was, with the given settings that may
// change. It refuses settings that contradict the crawl.
func (f *crawlFlags) resume(stored blobschema.Crawl) (blobschema.Crawl, error) {
	var problems crawlfile.Problems // of the file
	for i := range crawlfile.Settings {
		s := &crawlfile.Settings[i]
		was, now := s.Get(&stored), s.Get(&f.record)
		switch {
		case f.given[s.Name] == nil || s.Fixed && was == now:
		case !s.Fixed:
			if err := f.apply(&stored, s.Name); err != nil {
				return stored, err
			}
		case f.inFile(s.Name):
			problems = append(problems, f.described.Problem(s.Name,
				fmt.Sprintf("%s %s contradicts the crawl in %s, which was created with %s and keeps it", s.Name, now, &f.target, was)))
		default:
			return stored, f.contradiction(s.Name, spelt(s, now), spelt(s, was), now)
		}
	}
	if f.hostRanks != "" && stored.Settings.HostRanks != naming.Ranks(stored.ID, f.ranks) {
		return stored, f.contradiction("host-ranks", "--host-ranks "+f.hostRanks, "--host-ranks another file, or none", "")
	}
	if f.given["elastic"] != nil && stored.Settings.MostPartitions > stored.Slots {
		return stored, usagef("--elastic %s is too many: the crawl in %s has a fixed number of %s",
			crawlfile.Find("elastic").Get(&stored), &f.target, plural(stored.Slots, "slot"))
	}
	if f.described != nil {
		topics, seeds, wrong := f.described.Join(&stored.Settings)
		if problems = append(problems, wrong...); problems == nil {
			stored.Settings.Topics = topics
			if f.described.Hosts != nil && f.given["host-rule"] == nil {
				stored.Settings.Hosts = f.described.Hosts
			}
			for i := range seeds {
				f.begun[i].Topic = seeds[i].Topic
			}
		}
	}
	if problems != nil {
		return stored, fail(exitUsage, problems.Err())
	}
	return stored, nil
}

// contradiction refuses a flag that contradicts the crawl.
func (f *crawlFlags) contradiction(name, now, was, value string) error {
	if name == "partitions" {
		return usagef("the crawl in %s was created with %s; '%s' changes that, also while the crawl runs.\n"+
			"Leave --partitions out to resume it", &f.target, was, f.command("partitions scale", value))
	}
	return usagef("%s contradicts the crawl in %s, which was created with %s and keeps it.\n"+
		"Leave --%s out to resume that crawl, or start another one with --new once that one is finished or stopped",
		now, &f.target, was, name)
}

// spelt writes a setting as on a command line.
func spelt(s *crawlfile.Setting, value string) string {
	if s.Bare != "" { // --flag alone would be a value too
		return "--" + s.Name + "=" + value
	}
	return "--" + s.Name + " " + value
}
