package experiment

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// coreRun is a crawl of a changing generated web by the crawler's core.
type coreRun struct {
	*livePages
	copies
	partitions int
	measure.Measured
}

// runCore crawls a web of about that many pages. The budget allows a revisit of each page every perPage hours, and the crawl
// lasts for rounds of them. All pages have the same weight.
func runCore(seed uint64, pages, partitions int, perPage float64, rounds int) (*coreRun, error) {
	hosts := max(10, pages/40)
	web, err := simweb.New(simweb.Config{
		Seed: seed, Hosts: hosts, Names: true, Pages: simweb.Pages{Min: 3, Max: pages / 8, Zipf: sizeZipf}, PageBytes: 1500, LinksPerPage: 6,
		Connection: simweb.Connection{LatencyMin: 50 * time.Millisecond, LatencyMax: 500 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]int, hosts)
	for h := range sizes {
		sizes[h] = web.Host(h).Pages
	}
	p := drawLivePages(seed, sizes, 0)
	hours := perPage * float64(rounds)
	c := &coreRun{livePages: p, copies: newCopies(p.pages, hours, perPage), partitions: partitions}
	number := make(map[string]int, len(p.pages))
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range p.pages {
		h := p.host[i]
		number[web.URL(h, i-p.first[h])] = i
		c.changed[i] = r.ExpFloat64() / p.pages[i].Rate
	}
	asked := func(url string, at time.Duration) {
		i, ok := number[url]
		if !ok {
			return
		}
		now := at.Hours()
		c.tally(i, now)
		if c.last[i] >= 0 {
			c.had[min(len(c.had)-1, int(now/c.bin))]++
		}
		if c.changed[i] < now {
			web.Touch(url)
			c.changed[i] = now + r.ExpFloat64()/p.pages[i].Rate
		}
		c.last[i] = now
	}
	c.Measured, err = measure.Measure(measure.Lab{
		Seed: seed, Web: web, Partitions: partitions, Slots: 256, Connections: 16, Delay: time.Second,
		Duration: time.Duration(hours * float64(time.Hour)), Asked: asked,
		Settings: blobschema.Settings{RecrawlPerHour: float64(len(p.pages)) / perPage},
	})
	if err != nil {
		return nil, fmt.Errorf("crawl of %d pages by %d partitions: %w", len(p.pages), partitions, err)
	}
	c.finish(hours)
	return c, nil
}

// coreSection repeats the measurement with the crawler's core.
func coreSection(s freshScale, log func(string, ...any)) (Section, error) {
	hours := s.budgets[0]
	runs := make([]*coreRun, 2)
	var jobs []func() error
	for i, n := range []int{1, 4} {
		jobs = append(jobs, func() (err error) {
			if runs[i], err = runCore(s.seed, s.corePages, n, hours, s.coreRounds); err == nil {
				log("the core, %d partitions: freshness %.3f", n, runs[i].learnt())
			}
			return err
		})
	}
	if err := parallel(jobs); err != nil {
		return Section{}, err
	}
	pages := runs[0].livePages.pages
	_, best := optimum(pages, float64(len(pages))/hours)
	_, fixed := fixedOptimum(pages, float64(len(pages))/hours)
	sec := Section{Title: "The crawler itself", Text: fmt.Sprintf(coreText, hours, grouped(len(pages)), grouped(runs[0].hosts), s.coreRounds*int(hours)/24)}
	sec.Breaks = "the threshold stays as it begins (`schedule.SteerThreshold`)."
	tab := Table{
		Name: "core", Caption: "Freshness of a crawl",
		Columns: []string{"partitions", "first tenth", "learnt", "of the optimum", "of fixed intervals", "of the budget", "revisits", "steps a revisit", "reads a revisit", "puts a revisit"},
	}
	plot := Plot{Name: "core", Title: "Freshness of a crawl", X: "revisits of each page, by the budget", Y: "freshness"}
	for color, c := range runs {
		looks := float64(c.Twice)
		spent := c.perHour() * hours / float64(len(pages))
		tab.Rows = append(tab.Rows, []any{
			c.partitions, mean(c.freshness[:max(1, s.coreRounds/10)]), c.learnt(), c.learnt() / best, c.learnt() / fixed, spent,
			c.Twice, float64(c.Steps) / looks, float64(c.Calls.BlobGets) / looks, float64(c.Calls.BlobPuts) / looks,
		})
		plot.Series = append(plot.Series, c.curve(fmt.Sprintf("%d partitions", c.partitions), color))
		sec.Checks = append(sec.Checks,
			Check{fmt.Sprintf("%d partitions: at least %g of the optimum at known rates", c.partitions, enough), c.learnt() >= enough*best},
			Check{fmt.Sprintf("%d partitions: within 3%% of the budget", c.partitions), spent > 0.97 && spent < 1.03},
		)
	}
	plot.Series = append(plot.Series, level("optimum, random", 6, s.coreRounds, best), level("optimum, fixed", 5, s.coreRounds, fixed))
	sec.Tables, sec.Plots = []Table{tab}, []Plot{plot}
	return sec, nil
}

const coreText = `The same with the crawler's own core (steps, coordinator runs, frontier, commits) on a virtual clock, as in the experiment webgather. It finds and fetches
the pages, then revisits them with a budget of one revisit per page in %g hours. Coordinator runs steer the threshold by the partitions' heads. The web is generated, %s pages on %s hosts,
and changes as in the model; all pages have the same weight. A host gets at most one request per second. The crawl lasts %d days. A partition's revisits are due at whole minutes, so that a step has several;
a step waits for at most three seconds, as in a cloud. Reads are reads of objects; previous answers that the process of a partition still remembers need none.`
