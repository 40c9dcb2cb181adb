package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
)

//go:embed crawl-file.yaml
var exampleFile string

// newCrawlFile is a help topic that is a crawl file itself.
func newCrawlFile() *cobra.Command {
	cmd := &cobra.Command{Use: "crawl-file", Short: "What a crawl file says: an example to begin with", Long: exampleFile}
	cmd.SetHelpTemplate("{{.Long}}")
	return cmd
}

// described is what a crawl file says, once read.
type described struct {
	*crawlfile.File
	given map[string]bool // flags on the command line, which win
}

// has reports whether the value of a flag comes from the file.
func (d *described) has(flag string) bool {
	return d != nil && d.Line(flag) > 0 && !d.given[flag]
}

// readFile reads the file of --file, and sets the flags that it has and the command line has not.
func (f *crawlFlags) readFile() error {
	if f.file == "" {
		return nil
	}
	in, err := os.Open(f.file)
	if err != nil {
		return usagef("read --file: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, crawlfile.MaxBytes+1))
	if err != nil {
		return usagef("read --file: %w", err)
	}
	o := &fileOptions{flags: f, given: map[string]bool{}, file: map[string]bool{}}
	f.set.Visit(func(flag *pflag.Flag) { o.given[flag.Name] = true })
	o.alone.register(&cobra.Command{})
	read, err := crawlfile.Parse(f.file, data, o, func(name string) (io.ReadCloser, error) { return os.Open(f.beside(name)) })
	if err != nil {
		return fail(exitUsage, err)
	}
	f.described = &described{read, o.given}
	return nil
}

// beside is the path of a file that the crawl file names.
func (f *crawlFlags) beside(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(f.file), name)
}

// fileOptions takes keys of a crawl file as flags of the crawl command.
type fileOptions struct {
	flags *crawlFlags // of the command line
	alone crawlFlags  // what the file says, flags or not
	given map[string]bool
	file  map[string]bool // what the file has set
}

// inFileOtherwise are flags whose meaning files have other keys for, or none.
var inFileOtherwise = []string{"file", "help", "host-rule", "seeds"}

func (o *fileOptions) Names() (names []string) {
	o.alone.set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(inFileOtherwise, f.Name) {
			names = append(names, f.Name)
		}
	})
	slices.Sort(names)
	return names
}

func (o *fileOptions) Set(name string, values []string) error {
	flag := o.alone.set.Lookup(name)
	if !o.alone.ofCrawl(flag) {
		return fmt.Errorf("it is no key of a crawl file: give it as --%s", name)
	}
	_, list := flag.Value.(*patternsValue)
	if !list && len(values) > 1 {
		return errors.New("it takes one value")
	}
	for _, v := range values {
		if err := setValue(flag, v); err != nil {
			return err
		}
		if o.given[name] {
			continue
		}
		if name == "host-ranks" {
			v = o.flags.beside(v)
		}
		if err := o.flags.set.Set(name, v); err != nil {
			return err
		}
	}
	o.file[name] = !o.given[name]
	return nil
}

// ofCrawl reports whether a flag is about the crawl, not about one run.
func (f *crawlFlags) ofCrawl(flag *pflag.Flag) bool {
	run := pflag.NewFlagSet("", pflag.ContinueOnError)
	var r runFlags
	r.register(run)
	return run.Lookup(flag.Name) == nil && !slices.Contains([]string{"new", "detach", "skip-bad-seeds"}, flag.Name)
}

// setValue sets a flag, and says in words what its value must be.
func setValue(flag *pflag.Flag, text string) error {
	err := flag.Value.Set(text)
	switch flag.Value.Type() {
	case "bool":
		if text != "true" && text != "false" {
			return errors.New("it must be true or false")
		}
	case "duration":
		if err != nil {
			return errors.New("it must be a time such as 500ms, 1s or 2m")
		}
	case "int":
		if err != nil {
			return errors.New("it must be a whole number")
		}
	}
	return err
}

func (o *fileOptions) Done() (blobschema.Settings, map[string]error) {
	wrong := map[string]error{}
	for _, w := range o.flags.wrongs() {
		if w.is && o.file[w.flag] {
			wrong[w.flag] = errors.New("it must be " + w.want)
		}
	}
	if err := o.flags.readRanks(); err != nil {
		for _, name := range []string{"host-ranks", "quality"} {
			if o.file[name] {
				wrong[name] = err
				break
			}
		}
	}
	return o.flags.fresh().Settings, wrong
}

// allSeeds are the seeds of the file, and those given beside it.
func (f *crawlFlags) allSeeds(more []crawl.Seed) []crawl.Seed {
	if f.described == nil {
		f.begun = more
		return more
	}
	set := f.fresh().Settings
	set.Topics = nil
	_, seeds, _ := f.described.Join(&set) // Parse has told what is wrong
	f.begun = append(seeds, more...)
	return f.begun
}

// resumeFile gives a stored crawl the topics and hosts of the file, and its seeds their
// numbers there. It returns what contradicts the crawl.
func (f *crawlFlags) resumeFile(was *blobschema.Settings) crawlfile.Problems {
	if f.described == nil {
		return nil
	}
	topics, seeds, problems := f.described.Join(was)
	if problems != nil {
		return problems
	}
	was.Topics = topics
	if f.described.Hosts != nil && !f.set.Changed("host-rule") {
		was.Hosts = f.described.Hosts
	}
	for i := range seeds { // they come first
		f.begun[i].Topic = seeds[i].Topic
	}
	return nil
}

// rateValue is --recrawl.
type rateValue float64

// defaultRate is what --recrawl alone stands for.
const defaultRate = "500/h"

func (v *rateValue) Set(s string) error {
	rate, err := crawlfile.ParseRate(s)
	if err == nil {
		*v = rateValue(rate)
	}
	return err
}

func (v *rateValue) String() string { return crawlfile.FormatRate(float64(*v)) }
func (v *rateValue) Type() string   { return "N/h|N/d" }

// queuesValue is --queues.
type queuesValue struct {
	by blobschema.QueueBy
	n  int
}

func (v *queuesValue) Set(s string) error {
	by, n, err := crawlfile.ParseQueues(s)
	if err == nil {
		*v = queuesValue{by, n}
	}
	return err
}

func (v *queuesValue) String() string { return crawlfile.FormatQueues(v.by, v.n) }
func (v *queuesValue) Type() string   { return "WAY:N" }

// hostRulesValue is --host-rule, given one at a time.
type hostRulesValue []blobschema.HostRule

func (v *hostRulesValue) Set(s string) error {
	r, err := crawlfile.ParseHostRule(s)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(*v, func(o blobschema.HostRule) bool { return o.Host == r.Host }) {
		return fmt.Errorf("host %s has a rule already", r.Host)
	}
	*v = append(*v, r)
	return nil
}

func (v *hostRulesValue) String() string {
	s := ""
	for i := range *v {
		if i > 0 {
			s += " "
		}
		s += crawlfile.FormatHostRule(&(*v)[i])
	}
	return s
}
func (v *hostRulesValue) Type() string { return "HOST=N,DELAY" }

// priorityValue, sliceValue and minimumValue are flags of 'topics set'.
type priorityValue int

func (v *priorityValue) Set(s string) error {
	n, err := crawlfile.ParsePriority(s)
	if err == nil {
		*v = priorityValue(n)
	}
	return err
}

func (v *priorityValue) String() string { return strconv.Itoa(int(*v)) }
func (v *priorityValue) Type() string   { return "n" }

type sliceValue time.Duration

func (v *sliceValue) Set(s string) error {
	d, err := crawlfile.ParseSlice(s)
	if err == nil {
		*v = sliceValue(d)
	}
	return err
}

func (v *sliceValue) String() string { return time.Duration(*v).String() }
func (v *sliceValue) Type() string   { return "duration" }

type minimumValue struct {
	pages  int64
	period time.Duration
}

func (v *minimumValue) Set(s string) error {
	if s == "off" {
		*v = minimumValue{}
		return nil
	}
	pages, period, err := crawlfile.ParseMinimum(s)
	if err != nil {
		return fmt.Errorf("%w, or off", err)
	}
	*v = minimumValue{pages, period}
	return nil
}

func (v *minimumValue) String() string {
	if v.pages == 0 {
		return "off"
	}
	return crawlfile.FormatMinimum(v.pages, v.period)
}
func (v *minimumValue) Type() string { return "N/h|N/d" }
