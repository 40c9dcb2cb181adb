package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// trial is the measurements on one web, and a table of the report.
type trial struct {
	name  string // in -web
	about string
	web   simweb.Config
	sides []side
}

// side is a measurement, and its targets beside another one of the same trial.
type side struct {
	job
	base    int // index of that one
	targets []target
	before  string // name of the same crawl by the program of -against; "" for none
}

// target is a bound of a figure. The figure is the median over the rounds. Field of
// computes it from a measurement and its base in the same round: two runs next to each other in time.
type target struct {
	name  string
	of    func(f, base *figures) float64
	bound bound
	value float64
}

// bound is the side of a target on which a figure must be; "" is a figure without a target.
type bound string

const (
	atLeast bound = "at least"
	atMost  bound = "at most"
)

// The targets.
const (
	targetW1     = 0.7 // pages per second of a crawl, relative to the loader's, as are the next
	targetW1G    = 0.7
	targetPlain  = 0.5
	targetW1T    = 1.0
	targetOracle = 0.92
	targetMany   = 0.85 // pages per second with 128 partitions, relative to 2
	targetCPU    = 0.3  // CPU milliseconds per page

	targetQueue    = 0.005 // per page, as are the next
	targetPuts     = 0.003
	targetKVWrites = 0.005

	targetConnections = 1.1 // per host
	targetRequisites  = 0.9
	targetSteadiness  = 0.95
	targetMemory      = 500 << 20 // bytes
	targetFsck        = 30        // seconds
	// targetLeast is a target of the oracle; below it, W2 measures processors.
	targetLeast = 0.9
)

// webNames lists the names of all trials, in the order of measuring. The million takes minutes and is measured alone.
var webNames = []string{"W1", "W1G", "plain", "W2", "W1T", "W1P", "W1R", million}

const million = "million"

// trials returns the trials of the selected webs, with a crawl for each number of partitions.
func trials(s *settings) []trial {
	all := []trial{
		trialW1(s),
		againstLoader(s, "W1G", "the pages of W1, sent in gzip", job{Web: s.cut(webW1G())}, targetW1G),
		againstLoader(s, "plain", "W1 again, WARCs without compression", job{Web: s.cut(webW1()), Compression: warc.None}, targetPlain),
		trialW2(s), trialW1T(s), trialMany(s), trialRequisites(s), trialMillion(s),
	}
	all = slices.DeleteFunc(all, func(t trial) bool { return !slices.Contains(s.webs, t.name) })
	if s.against != "" {
		for i := range all {
			all[i].beside(s.against)
		}
	}
	return all
}

// beside adds the crawls of another program, each right before ours.
func (t *trial) beside(program string) {
	var sides []side
	moved := make([]int, len(t.sides)) // new index of each side
	for i, now := range t.sides {
		if now.Role == roleCrawl {
			before := now
			before.Name, before.program, before.targets = strings.Replace(now.Name, "-crawl@", "-before@", 1), program, nil
			now.before = before.Name
			sides = append(sides, before)
		}
		moved[i] = len(sides)
		sides = append(sides, now)
	}
	for i := range sides {
		sides[i].base = moved[sides[i].base]
	}
	t.sides = sides
}

// sinceBefore lists the figures of a crawl relative to that of the other program.
var sinceBefore = []target{
	{name: "pages/s, of before's", of: func(f, base *figures) float64 { return f.PagesPerSecond / base.PagesPerSecond }},
	{name: "CPU per page, of before's", of: func(f, base *figures) float64 { return f.CPUSeconds / base.CPUSeconds }},
	{name: "peak RSS, of before's", of: func(f, base *figures) float64 { return float64(f.PeakBytes) / float64(base.PeakBytes) }},
}

// againstLoader compares the loader with crawls on one web.
func againstLoader(s *settings, name, about string, j job, bound float64) trial {
	t := trial{name: name, about: about, web: j.Web}
	loader := j
	loader.Name, loader.Role = name+"-loader", roleLoader
	t.sides = []side{{job: loader}}
	for _, crawl := range crawls(s, name, j.Web) {
		crawl.Compression = j.Compression
		t.sides = append(t.sides, side{job: crawl, targets: []target{speed("the loader's", bound)}})
	}
	return t
}

func trialW1(s *settings) trial {
	t := againstLoader(s, "W1", "the pages at once, WARCs in gzip", job{Web: s.cut(webW1())}, targetW1)
	for i := range t.sides[1:] {
		side := &t.sides[i+1]
		side.targets = append(side.targets,
			target{"CPU ms per page", func(f, _ *figures) float64 { return f.CPUPer1000 }, atMost, targetCPU},
			perPage("queue requests per page", func(f *figures) int64 { return f.Calls.QueueRequests }, targetQueue),
			perPage("blob puts per page", func(f *figures) int64 { return f.Calls.BlobPuts }, targetPuts),
			perPage("KV write units per page", func(f *figures) int64 { return f.Calls.KVWriteUnits }, targetKVWrites))
	}
	return t
}

// trialW1T has a loader that uses net/http.
func trialW1T(s *settings) trial {
	t := againstLoader(s, "W1T", "the pages of W1 over TLS 1.3", job{Web: s.cut(webW1T())}, targetW1T)
	for i := range t.sides[1:] {
		side, hosts := &t.sides[i+1], float64(t.web.Hosts)
		side.targets = append(side.targets, target{"connections per host", func(f, _ *figures) float64 { return float64(f.Connections) / hosts }, atMost, targetConnections})
	}
	return t
}

// trialMany compares crawls in many partitions and in two.
func trialMany(s *settings) trial {
	t := trial{name: "W1P", about: "the pages of W1, in many partitions", web: s.cut(webW1())}
	for _, n := range []int{2, 128} {
		t.sides = append(t.sides, side{job: job{Name: fmt.Sprintf("W1P-crawl@%d", n), Role: roleCrawl, Web: t.web, Partitions: n}})
	}
	t.sides[1].targets = []target{speed("two partitions'", targetMany)}
	return t
}

// trialRequisites compares crawls of one web with and without requisites. There are few further URLs, so the difference is what it
// takes to find, send and look up requisites.
func trialRequisites(s *settings) trial {
	t := trial{name: "W1R", about: "the pages of W1 and their requisites", web: s.cut(webW1R())}
	for _, j := range crawls(s, "W1R", t.web) {
		pages := j
		j.Name, j.Requisites = strings.Replace(j.Name, "-crawl@", "+requisites-crawl@", 1), true
		t.sides = append(t.sides, side{job: pages, base: len(t.sides)}, side{job: j, base: len(t.sides), targets: []target{speed("pages alone", targetRequisites)}})
	}
	return t
}

// trialMillion is a crawl beside its own beginning.
func trialMillion(s *settings) trial {
	t := trial{name: million, about: "a million small pages in one folder", web: s.cut(webMillion())}
	for _, j := range crawls(s, million, t.web) {
		j.Fsck = true
		t.sides = append(t.sides, side{job: j, base: len(t.sides), targets: []target{
			{"rate of the last tenth, of the first's", func(f, _ *figures) float64 { return f.Steadiness }, atLeast, targetSteadiness},
			{"peak RSS, bytes", func(f, _ *figures) float64 { return float64(f.PeakBytes) }, atMost, targetMemory},
			{"seconds of fsck", func(f, _ *figures) float64 { return f.FsckSeconds }, atMost, targetFsck},
		}})
	}
	return t
}

// trialW2 has the loader as its oracle: its work between an answer and the next request
// to the host takes less than a hundredth of the latency.
func trialW2(s *settings) trial {
	t := trial{name: "W2", about: "small pages of slow hosts", web: s.cut(webW2())}
	least := leastTime(t.web)
	t.sides = []side{{job: job{Name: "W2-oracle", Role: roleLoader, Web: t.web}, targets: []target{
		{"least time by latency, of its time", func(f, _ *figures) float64 { return least.Seconds() / f.Seconds }, atLeast, targetLeast},
	}}}
	for _, j := range crawls(s, "W2", t.web) {
		t.sides = append(t.sides, side{job: j, targets: []target{speed("the oracle's", targetOracle)}})
	}
	return t
}

func crawls(s *settings, name string, web simweb.Config) []job {
	var jobs []job
	for _, n := range s.partitions {
		jobs = append(jobs, job{Name: fmt.Sprintf("%s-crawl@%d", name, n), Role: roleCrawl, Web: web, Partitions: n})
	}
	return jobs
}

// cut reduces a web for a quick run.
func (s *settings) cut(c simweb.Config) simweb.Config {
	if !s.quick {
		return c
	}
	c.Hosts, c.Pages.Min, c.PageBytes = 16, min(c.Pages.Min, 100), min(c.PageBytes, 8<<10)
	c.Connection.LatencyMin /= 20
	c.Connection.LatencyMax /= 20
	return c
}

// leastTime returns the time that a client with one connection per host waits for its
// slowest host. It is 0 for an invalid configuration.
func leastTime(c simweb.Config) time.Duration {
	web, err := simweb.New(c)
	if err != nil {
		return 0
	}
	var least time.Duration
	for h := range web.Hosts() {
		f := web.Host(h)
		least = max(least, time.Duration(f.Pages)*f.Latency)
	}
	return least
}

func speed(whose string, bound float64) target {
	of := func(f, base *figures) float64 { return f.PagesPerSecond / base.PagesPerSecond }
	return target{"pages/s, of " + whose, of, atLeast, bound}
}

func perPage(name string, calls func(*figures) int64, bound float64) target {
	of := func(f, _ *figures) float64 { return float64(calls(f)) / float64(f.Pages) }
	return target{name, of, atMost, bound}
}
