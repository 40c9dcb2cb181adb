// Package experiment repeats measurements of published crawlers with this one. Each experiment is a function that returns a
// [Report] of tables, plots and checks, beside the published figures. Crawls run on a virtual clock in package measure, so
// the same options give the same report, byte for byte. Sections that say so measure this machine instead, and differ a
// little each time.
package experiment

import (
	"fmt"
	"sync"
)

// Options set the size of an experiment.
type Options struct {
	Seed  uint64
	Pages int  // size of the generated web; 0: the experiment's default
	Quick bool // so small that it takes seconds: a test, not a measurement
	// Log receives the progress, one line per call. It may be nil, and is never called concurrently.
	Log func(line string)
}

// Bounds of Options.Pages.
const (
	LeastPages = 1_000
	MostPages  = 4_000_000
)

// Experiment is one experiment.
type Experiment struct {
	Name  string // name in the command
	Short string // description in one line
	Run   func(Options) (*Report, error)
}

// All lists the experiments.
func All() []Experiment {
	return []Experiment{
		{"freshness", "revisits by estimated change rates: freshness beside the optimum (Azar et al.)", freshness},
		{"webgather", "a crawl divided by a two-level map: balance, speed-up, traffic, moves (Yan et al.)", webgather},
		{"policies", "which server and URL comes first: breadth, performance, quality, capability (Cao et al.)", policies},
		{"capability", "connections, HTTP versions and processor time of the fetcher (Cao et al.)", capability},
		{"queue-assignment", "one large host in several queues: by host, SURT prefix or string hash (Zhang, Wang)", queueAssignment},
		{"redis-engine", "crawl, index, ranks and search made of queues and functions (Li, Ai, Wang)", redisEngine},
		{"topics", "several topics in one crawl: turns, priorities, minima (Fan, Li)", topics},
	}
}

// Report is the result of an experiment.
type Report struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	Seed     uint64    `json:"seed"`
	Pages    int       `json:"pages"`
	Quick    bool      `json:"quick"`
	Intro    string    `json:"intro"` // Markdown
	Sections []Section `json:"sections"`
}

// Section is one question and its answer.
type Section struct {
	Title  string  `json:"title"`
	Text   string  `json:"text"` // Markdown
	Tables []Table `json:"tables"`
	Plots  []Plot  `json:"-"` // of the tables' figures
	Checks []Check `json:"checks"`
	// Breaks names changes to the code that make checks fail, as sentences. Each was tried.
	Breaks string `json:"breaks,omitempty"`
}

// Check is an expectation of a section.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
}

// Failed returns the checks that do not hold.
func (r *Report) Failed() (out []string) {
	for _, s := range r.Sections {
		for _, c := range s.Checks {
			if !c.OK {
				out = append(out, s.Title+": "+c.What)
			}
		}
	}
	return out
}

// logger returns Log, made safe for concurrent use.
func (o Options) logger() func(format string, args ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		if o.Log == nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		o.Log(fmt.Sprintf(format, args...))
	}
}
