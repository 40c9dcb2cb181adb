// Plants shows that the simulation bites. One after another it plants bugs into the real
// core, and counts the simulated crawls in which each is found:
//
//	make plants SEEDS=200
//	make plants ARGS=-markdown    # the table of docs/proof.md
//
// The sources are not touched, and have no switches for it: a bug is a text of the core
// and what stands there instead, which `go build -overlay` puts in its place: this program
// is built with it, and run. A test says when the code has moved under one. The first line
// is the unchanged core, in which nothing may be found.
//
// The exit status is 0 if each bug is found, except for those that are known to escape, and
// nothing in the unchanged core; else 1.
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
	flags.DurationVar(&o.most, "time", 5*time.Minute, "how long the crawls of one bug may take; what is found by then counts")
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
	for i := range chosen { // all of them first, because the crawls take most of an hour
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

// control begins the names of what has no bug.
const control = "none"

// cells begin the row of a plant in a document.
func (p *plant) cells() string { return fmt.Sprintf("| %s | %s |", p.Bug, p.Promise) }

const row = "%-26s%-12s%12s%7s%9s  %s\n"

// finding is what the simulation found of one bug.
type finding struct {
	Name    string         `json:"bug,omitempty"`
	Bug     string         `json:"what,omitempty"`
	Promise string         `json:"breaks,omitempty"`
	Escapes string         `json:"escapes,omitempty"` // why it may not be found
	Found   int            `json:"found"`             // seeds
	Seeds   int            `json:"seeds"`             // that were simulated within the time
	First   uint64         `json:"first,omitempty"`
	Checks  map[string]int `json:"by"` // seeds, by what found it
	Example string         `json:"example,omitempty"`
	Seconds float64        `json:"seconds"`
}

func (f *finding) firstSeed() string {
	if f.Found == 0 {
		return "-"
	}
	return strconv.FormatUint(f.First, 10)
}

// by names the checks, the one that found most first.
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

// verdict is an error if a bug was not found that should be, or one where none is.
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

// module is the folder of the module's sources.
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

// simulate builds this program with a bug, and has it simulate crawls.
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

// grace is how long the last crawls may go on when time is up: one that does not end is
// given up after some millions of events.
const grace = 5 * time.Minute

// inside is what the program with the bug does: it writes what it has found.
func inside(ctx context.Context, o options, out io.Writer) error {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // small worlds that come and go
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

// checkOf names the check that an error is of: the promise that was broken, or else its
// first words.
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
