// Package experiment makes measurements of published crawlers again, with this one: each
// experiment is a function that returns a [Report] of tables, plots and checks beside the
// published figures. The same options give the same report, byte for byte: crawls are those
// of package simulate, on a virtual clock. Where a section says so, it measures this machine
// instead, and differs a little each time.
package experiment

import (
	"fmt"
	"sync"
)

// Options say how large an experiment is.
type Options struct {
	Seed  uint64
	Pages int  // of the generated web; 0: the experiment's own number
	Quick bool // so small that it takes seconds: to see that it works, not to measure
	// Log receives the progress, one line per call. It may be nil, and is never called concurrently.
	Log func(line string)
}

// Bounds of Options.Pages.
const (
	LeastPages = 1_000
	MostPages  = 4_000_000
)

// Experiment is one of them.
type Experiment struct {
	Name  string // as in the command
	Short string // what is measured, in one line
	Run   func(Options) (*Report, error)
}

// All lists the experiments.
func All() []Experiment {
	return []Experiment{
		{"freshness", "revisits by estimated change rates: freshness beside the optimum (Azar et al.)", freshness},
		{"webgather", "a crawl divided by a two-level map: balance, speed-up, traffic, moves (Yan et al.)", webgather},
		{"policies", "which server and URL comes first: breadth, performance, quality, capability (Cao et al.)", policies},
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

// Section is one question, and its answer.
type Section struct {
	Title  string  `json:"title"`
	Text   string  `json:"text"` // Markdown
	Tables []Table `json:"tables"`
	Plots  []Plot  `json:"-"` // of what is in the tables
	Checks []Check `json:"checks"`
}

// Check is what a section was to show.
type Check struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`
}

// Failed are the checks that do not hold.
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

// logger makes Log fit for goroutines.
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
