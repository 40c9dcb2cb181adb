package experiment

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simulate"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// Properties of the crawls of topics.
const (
	topicHours       = 24
	topicConnections = 4
	topicDelay       = time.Second
	topicLatencyMin  = time.Second // so slow that a day of four connections is 230,000 pages
	topicLatencyMax  = 2 * time.Second
	topicPageTime    = (topicLatencyMin + topicLatencyMax) / 2
	topicAsks        = 200
)

// topicWeb is what one topic is about.
type topicWeb struct {
	name         string
	zone         string // of its hosts, so that topics share none
	hosts, pages int    // pages of each host
	links        int    // of a page
}

// The topics: of very different sizes, and with as different numbers of links, but each with more
// pages than a third of a day's, and hosts enough for a third of the connections.
var topicWebs = []topicWeb{
	{"large", "example", 1_500, 200, 30},
	{"middle", "test", 150, 700, 10},
	{"small", "invalid", 15, 6_000, 3},
}

// lateTopic is the one that comes late, with a priority.
var lateTopic = topicWeb{"late", "localhost", 20, 100, 8}

func (w topicWeb) make(seed uint64, shrunk int) (*simweb.Web, error) {
	return simweb.New(simweb.Config{
		Seed: seed, Hosts: w.hosts, Names: true, HostsPerSite: 1, Zone: w.zone,
		Pages: simweb.Pages{Min: max(20, w.pages/shrunk)}, PageBytes: 256, LinksPerPage: w.links,
		Connection: simweb.Connection{LatencyMin: topicLatencyMin, LatencyMax: topicLatencyMax, MaxRequests: 1 << 30},
	})
}

// topicTrial is one crawl of several topics.
type topicTrial struct {
	name   string
	topics []blobschema.Topic // none: a crawl without
	late   time.Duration      // when the late topic comes; 0: never
	asks   []simulate.Ask

	hours [][]int // pages by hour and topic
	first time.Duration
	simulate.Measured
}

// topicStudy is what all trials share.
type topicStudy struct {
	seed  uint64
	webs  []*simweb.Web // of topicWebs, then of lateTopic
	hours int
}

func (s *topicStudy) run(t *topicTrial) (err error) {
	lab := simulate.Lab{
		Seed: s.seed, Partitions: 1, Slots: 256, Connections: topicConnections, Delay: topicDelay, Duration: time.Duration(s.hours) * time.Hour,
		Settings: blobschema.Settings{Topics: t.topics}, Asks: t.asks,
	}
	for i, w := range s.webs {
		r := simulate.Region{Web: w}
		if i < len(t.topics) {
			r.Topic = uint8(i + 1)
		}
		if i == len(topicWebs) {
			if r.After = t.late; t.late == 0 {
				continue
			}
		}
		lab.Regions = append(lab.Regions, r)
	}
	lab.Watch = time.Minute
	lab.Look = func(at simulate.Sight) {
		hour := int((at.At - 1) / time.Hour)
		for len(t.hours) <= hour {
			t.hours = append(t.hours, make([]int, len(lab.Regions)))
		}
		for i, n := range at.Regions {
			t.hours[hour][i] += n
		}
	}
	if t.Measured, err = simulate.Measure(lab); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// pages are those of all hours, by topic.
func (t *topicTrial) pages() []int {
	sum := make([]int, len(t.hours[0]))
	for _, h := range t.hours {
		for i, n := range h {
			sum[i] += n
		}
	}
	return sum
}

// starved counts the hours in which a topic had no page.
func (t *topicTrial) starved(topic int) (n int) {
	for _, h := range t.hours {
		if h[topic] == 0 {
			n++
		}
	}
	return n
}

// hourly is the worst share that a topic had of an hour's pages.
func (t *topicTrial) hourly(topic int) float64 {
	least := 1.0
	for _, h := range t.hours {
		total := 0
		for _, n := range h {
			total += n
		}
		least = min(least, float64(h[topic])/float64(max(1, total)))
	}
	return least
}

// times are sorted lengths of time, those that have none left out.
func times(all []time.Duration) []time.Duration {
	all = slices.DeleteFunc(slices.Clone(all), func(d time.Duration) bool { return d == 0 })
	slices.Sort(all)
	return all
}
