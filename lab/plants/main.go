// Plants checks that the simulation finds bugs. It plants one bug at a time into the real core, and counts the simulated
// crawls that find it:
//
//	make plants SEEDS=200
//	make plants ARGS=-markdown    # the table of docs/proof.md
//
// The sources stay unchanged and need no switches: a bug is a text of the core and its replacement. `go build -overlay`
// builds this program with the replacement, and the program runs itself. A test fails if the text of a bug no longer
// occurs in the core. The first line is the unchanged core, in which nothing may be found.
//
// The exit status is 0 if each bug is found, except those that are known to escape, and nothing in the unchanged core;
// otherwise 1.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	simulation "github.com/orbweaver/orbweaver/internal/simulate"
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "plants:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	seeds  int
	first  uint64
	most   time.Duration
	only   string
	json   bool
	mark   bool
	inside bool
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	var o options
	flags := flag.NewFlagSet("plants", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.IntVar(&o.seeds, "seeds", 200, "crawls for each bug")
	flags.Uint64Var(&o.first, "first", 1, "the first seed")
	flags.DurationVar(&o.most, "time", 5*time.Minute, "time limit for the crawls of one bug; findings until then count")
	flags.StringVar(&o.only, "only", "", "plant only bugs whose names match this regular expression")
	flags.BoolVar(&o.json, "json", false, "write JSON, for a program")
	flags.BoolVar(&o.mark, "markdown", false, "write a table for a document")
	flags.BoolVar(&o.inside, "inside", false, "simulate with this program as it is, and write JSON: what it calls itself with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.inside {
		return inside(ctx, o, out)
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	root, err := module(ctx)
	if err != nil {
		return err
	}
	chosen := []plant{{Name: control, Bug: "the unchanged core"}, {Name: control + ", merges", Bug: "the unchanged core, merging runs two at a time", Rare: true}}
	for _, p := range plants {
		if only.MatchString(p.Name) {
			chosen = append(chosen, p)
		}
	}
	for i := range chosen { // build all of them first, because the crawls take most of an hour
		if err := chosen[i].build(ctx, root, "internal/simulate", os.DevNull); err != nil {
			return fmt.Errorf("%s: %w", chosen[i].Name, err)
		}
	}
	var found []finding
	switch {
	case o.mark:
		fmt.Fprint(out, "| bug | breaks | found in | by |\n|---|---|---|---|\n")
	case !o.json:
		fmt.Fprintf(out, row, "bug", "breaks", "found in", "first", "seconds", "by")
	}
	for i := range chosen {
		f, err := simulate(ctx, root, &chosen[i], o)
		if err != nil {
			return fmt.Errorf("%s: %w", chosen[i].Name, err)
		}
		found = append(found, f)
		switch {
		case o.mark:
			fmt.Fprintf(out, "%s %d of %d | %s |\n", chosen[i].cells(), f.Found, f.Seeds, f.by())
		case !o.json:
			fmt.Fprintf(out, row, f.Name, f.Promise, fmt.Sprintf("%d of %d", f.Found, f.Seeds), f.firstSeed(), fmt.Sprintf("%.0f", f.Seconds), f.by())
		}
	}
	if o.json {
		b, err := json.MarshalIndent(found, "", "  ")
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n", b)
	}
	return verdict(found)
}

// control begins the names of plants without a bug.
const control = "none"

// cells returns the first cells of a plant's row in a document.
func (p *plant) cells() string { return fmt.Sprintf("| %s | %s |", p.Bug, p.Promise) }

const row = "%-26s%-12s%12s%7s%9s  %s\n"

// finding is the result of the simulation of one bug.
type finding struct {
	Name    string         `json:"bug,omitempty"`
	Bug     string         `json:"what,omitempty"`
	Promise string         `json:"breaks,omitempty"`
	Escapes string         `json:"escapes,omitempty"` // why it may not be found
	Found   int            `json:"found"`             // number of seeds that found it
	Seeds   int            `json:"seeds"`             // that were simulated within the time
	First   uint64         `json:"first,omitempty"`
	Checks  map[string]int `json:"by"` // number of seeds by the check that found it
	Example string         `json:"example,omitempty"`
	Seconds float64        `json:"seconds"`
}

func (f *finding) firstSeed() string {
	if f.Found == 0 {
		return "-"
	}
	return strconv.FormatUint(f.First, 10)
}

// by returns the checks and their counts, the most frequent first.
func (f *finding) by() string {
	if f.Found == 0 {
		return f.Escapes
	}
	var names []string
	for name := range f.Checks {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(f.Checks[b], f.Checks[a]), cmp.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, f.Checks[name])
	}
	return strings.Join(names, ", ")
}

// verdict returns an error if a bug was missed that must be found, or if the unchanged core failed.
func verdict(found []finding) error {
	var missed []string
	for _, f := range found {
		switch {
		case strings.HasPrefix(f.Name, control) && f.Found > 0:
			return fmt.Errorf("the unchanged core fails in %d of %d seeds: %s", f.Found, f.Seeds, f.Example)
		case !strings.HasPrefix(f.Name, control) && f.Found == 0 && f.Escapes == "":
			missed = append(missed, f.Name)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("not found: %s", strings.Join(missed, ", "))
	}
	return nil
}

// module returns the folder of the module.
func module(ctx context.Context) (string, error) {
	b, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	name := strings.TrimSpace(string(b))
	if filepath.Base(name) != "go.mod" {
		return "", errors.New("run it in the folder of the sources")
	}
	return filepath.Dir(name), nil
}

// simulate builds this program with a bug, and runs it to simulate crawls.
func simulate(ctx context.Context, root string, p *plant, o options) (f finding, err error) {
	f = finding{Name: p.Name, Bug: p.Bug, Promise: p.Promise, Escapes: p.Escapes, Checks: map[string]int{}}
	folder, err := os.MkdirTemp("", "orbweaver-plants-")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	program := filepath.Join(folder, "plants")
	if err := p.build(ctx, root, "lab/plants", program); err != nil {
		return f, err
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.most+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-inside", "-seeds", strconv.Itoa(o.seeds), "-first", strconv.FormatUint(o.first, 10), "-time", o.most.String())
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, err
	}
	f.Seconds = time.Since(begun).Seconds()
	return f, nil
}

// grace is the time in which the last crawls must end after the limit. A crawl without an end is given up after some
// millions of events.
const grace = 5 * time.Minute

// inside runs in the program with the bug: it simulates crawls and writes the finding.
func inside(ctx context.Context, o options, out io.Writer) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small and short-lived
	ctx, cancel := context.WithTimeout(ctx, o.most)
	defer cancel()
	t := simulation.Sweep(ctx, simulation.Sweeping{First: o.first, Seeds: o.seeds})
	f := finding{Seeds: t.Seeds, Found: len(t.Failures), Checks: map[string]int{}}
	for _, failure := range t.Failures {
		f.Checks[checkOf(failure.Err)]++
	}
	if f.Found > 0 {
		f.First, f.Example = t.Failures[0].Seed, firstLines(t.Failures[0].Err.Error())
	}
	return json.NewEncoder(out).Encode(f)
}

// checkOf returns the check that an error belongs to: the broken promise, otherwise its first words.
func checkOf(err error) string {
	if b := (*simulation.Broken)(nil); errors.As(err, &b) {
		return b.Promise
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	text, _, _ = strings.Cut(text, ":")
	return text
}

// firstLines shortens an error.
func firstLines(text string) string {
	lines := strings.SplitN(text, "\n", 4)
	return strings.Join(lines[:min(len(lines), 3)], "\n")
}
