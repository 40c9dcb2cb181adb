package experiment

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fresh"
	"github.com/orbweaver/orbweaver/internal/simulate"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// coreRun is a crawl of a generated web that changes, by the crawler's core.
type coreRun struct {
	*livePages
	copies
	partitions int
	simulate.Measured
}

// runCore crawls for so many hours, with perPage hours for a look at each page by the budget.
func runCore(s freshScale, pages, partitions int, perPage float64, rounds int) (*coreRun, error) {
	hosts := max(10, pages/40)
	web, err := simweb.New(simweb.Config{
		Seed: s.seed, Hosts: hosts, Names: true, Pages: simweb.Pages{Min: 3, Max: pages / 8, Zipf: sizeZipf}, PageBytes: 1500, LinksPerPage: 6,
		Connection: simweb.Connection{LatencyMin: 50 * time.Millisecond, LatencyMax: 500 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	sizes := make([]int, hosts)
	for h := range sizes {
		sizes[h] = web.Host(h).Pages
	}
	p := drawLivePages(s.seed, sizes, 0)
	hours := perPage * float64(rounds)
	c := &coreRun{livePages: p, copies: newCopies(p.pages, hours, perPage), partitions: partitions}
	number := make(map[string]int, len(p.pages))
	r := rand.New(rand.NewPCG(s.seed, 3))
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
	c.Measured, err = simulate.Measure(simulate.Lab{
		Seed: s.seed, Web: web, Partitions: partitions, Slots: 256, Connections: 16, Delay: time.Second,
		Duration: time.Duration(hours * float64(time.Hour)), Asked: asked,
		Settings: blobschema.Settings{RecrawlPerHour: float64(len(p.pages)) / perPage},
	})
	if err != nil {
		return nil, fmt.Errorf("crawl of %d pages: %w", len(p.pages), err)
	}
	c.finish(hours)
	return c, nil
}

var _ = fresh.Optimum
