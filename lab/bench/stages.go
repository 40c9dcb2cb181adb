package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A stage is a part of the work on a page, identified by its code.
type stage struct {
	name string
	code []string // prefixes of the names of its functions
}

const own = "github.com/orbweaver/orbweaver/"

// stages divides the profiles of a crawl. A sample counts for the stage of the innermost function of
// its call that is named here: a copy within a compressor counts for WARC records. A sample
// without a stage counts for the rest.
var stages = []stage{
	{"ask and read", []string{own + "internal/fetch.", "net/http", "net/textproto.", "net.", "crypto/tls.", "context."}},
	{"inflate", []string{own + "internal/extract.(*Decoder)"}},
	{"parse, links", []string{own + "internal/extract.", own + "internal/weburl.", "golang.org/x/net/html"}},
	{"digests", []string{"crypto/sha1."}},
	{"WARC records", []string{own + "blobschema/warc.", own + "internal/fetch.(*Scratch).pack"}},
	{"frontier", []string{own + "internal/frontier.", own + "internal/polite."}},
	{"step, tick, mail", []string{own + "internal/crawl.", own + "internal/actor", own + "internal/engine.", own + "partition."}},
	{"commits, runs", []string{own + "blobschema"}},
	{"queue, table, blobs", []string{own + "platform", own + "internal/drivers", "gocloud.dev/", "go.etcd.io/bbolt"}},
	{"garbage collection", []string{"runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep", "runtime.bgscavenge"}},
	{"goroutines", []string{"runtime.mcall", "runtime.newstack", "runtime.newproc", "runtime.schedule", "runtime.mstart", "runtime.sysmon", "runtime.goready"}},
}

// costs holds the costs of a stage.
type costs struct {
	cpu     int64 // ns
	objects int64 // allocated
	bytes   int64 // of these
}

// stageOf returns the index in stages of a call, its innermost function first; len(stages) for
// the rest. Of two stages, the one with the longer prefix counts.
func stageOf(call []string) int {
	for _, function := range call {
		best, length := len(stages), 0
		for i := range stages {
			for _, code := range stages[i].code {
				if len(code) > length && strings.HasPrefix(function, code) {
					best, length = i, len(code)
				}
			}
		}
		if length > 0 {
			return best
		}
	}
	return len(stages)
}

// profileStages crawls each web once and prints what the stages cost per page.
func profileStages(ctx context.Context, s *settings, dir string, stdout, stderr io.Writer) error {
	s.profiles = dir
	for _, t := range trials(s) {
		t.sides = slices.DeleteFunc(t.sides, func(x side) bool { return x.Role != roleCrawl || len(x.targets) == 0 })
		made, err := takeTurns(ctx, s, []trial{t}, dir, stderr)
		if err != nil {
			return err
		}
		for _, side := range t.sides {
			all := make([]costs, len(stages)+1)
			err := eachCall(ctx, filepath.Join(dir, side.Name+cpuProfile), func(values []int64, call []string) {
				all[stageOf(call)].cpu += values[1]
			})
			if err != nil {
				return err
			}
			err = eachCall(ctx, filepath.Join(dir, side.Name+allocProfile), func(values []int64, call []string) {
				if !slices.ContainsFunc(call, func(f string) bool { return strings.HasPrefix(f, own+"internal/simweb.") }) { // made before
					c := &all[stageOf(call)]
					c.objects, c.bytes = c.objects+values[0], c.bytes+values[1]
				}
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(stdout, "%s: %s\n\n", side.Name, t.about)
			if err := writeStages(stdout, all, int64(made[side.Name][0].Pages)); err != nil {
				return err
			}
			fmt.Fprintln(stdout)
		}
	}
	return nil
}

// writeStages prints a row per stage, the most expensive first, and their sum.
func writeStages(w io.Writer, all []costs, pages int64) error {
	var sum costs
	order := make([]int, len(all))
	for i, c := range all {
		order[i] = i
		sum.cpu, sum.objects, sum.bytes = sum.cpu+c.cpu, sum.objects+c.objects, sum.bytes+c.bytes
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[b].cpu, all[a].cpu) })
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, c costs) {
		fmt.Fprintf(tw, "%s\t%.1f\t%.1f\t%.1f\t%d\t\n", name, float64(c.cpu)/1000/float64(pages), float64(c.cpu)*100/float64(max(sum.cpu, 1)),
			float64(c.objects)/float64(pages), c.bytes/pages)
	}
	fmt.Fprintln(tw, "per page\tCPU µs\t% of it\tobjects\tbytes\t")
	for _, i := range order {
		name := "the rest"
		if i < len(stages) {
			name = stages[i].name
		}
		row(name, all[i])
	}
	row("all", sum)
	return tw.Flush()
}

// eachCall passes the values of each sample in a profile to a function, with the functions of its call,
// the innermost first.
func eachCall(ctx context.Context, file string, take func(values []int64, call []string)) error {
	cmd := exec.CommandContext(ctx, "go", "tool", "pprof", "-raw", "-symbolize=none", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read %s: %w: %s", file, err, &stderr)
	}
	return readCalls(bytes.NewReader(out), take)
}

// readCalls reads a profile as pprof -raw prints it: the samples as values and the numbers of
// places in the code, then the places, each with the functions inlined there before the enclosing one.
func readCalls(r io.Reader, take func(values []int64, call []string)) error {
	type sample struct{ values, places []int64 }
	var samples []sample
	functions := map[int64][]string{} // by place
	section, place := "", int64(0)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		before, after, found := strings.Cut(line, ": ")
		words := strings.Fields(line)
		switch {
		case line == "Samples:" || line == "Locations" || line == "Mappings":
			section = line
		case section == "Samples:" && found:
			s := sample{numbers(before), numbers(after)}
			if len(s.values) < 2 {
				return fmt.Errorf("read profile: sample %q", line)
			}
			samples = append(samples, s)
		case section == "Locations" && found && len(words) > 1 && strings.HasPrefix(words[1], "0x"):
			place = numbers(before)[0]
			if len(words) > 3 { // number, address, mapping
				functions[place] = append(functions[place], words[3])
			}
		case section == "Locations" && len(words) > 0:
			functions[place] = append(functions[place], words[0])
		}
	}
	for _, s := range samples {
		var call []string
		for _, p := range s.places {
			call = append(call, functions[p]...)
		}
		take(s.values, call)
	}
	return lines.Err()
}

// numbers returns the numbers that text begins with.
func numbers(text string) (all []int64) {
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			break
		}
		all = append(all, n)
	}
	return all
}
