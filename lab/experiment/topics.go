package experiment

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/lab/measure"
)

// Properties of the crawls of topics.
const (
	topicHours       = 24
	topicConnections = 4
	topicDelay       = time.Second
	topicLatencyMin  = 2 * time.Second // four connections fetch 115,000 pages a day
	topicLatencyMax  = 4 * time.Second
	topicPageTime    = (topicLatencyMin + topicLatencyMax) / 2
	topicAsks        = 200
)

// topicWeb is the web of one topic.
type topicWeb struct {
	name         string
	zone         string // domain of its hosts, so that topics share no host
	hosts, pages int    // number of hosts, and of pages per host
	links        int    // per page
}

// The topics differ a lot in sizes and numbers of links, but each has more pages than a third of a day's, and enough hosts
// for a third of the connections.
var topicWebs = []topicWeb{
	{"large", "example", 1_500, 100, 30},
	{"middle", "test", 150, 350, 10},
	{"small", "invalid", 15, 3_000, 3},
}

// lateTopic is added late, with a priority.
var lateTopic = topicWeb{"late", "localhost", 20, 100, 8}

// make makes the web, scaled to the number of pages that all webs have together.
func (w topicWeb) make(seed uint64, pages int) (*simweb.Web, error) {
	return simweb.New(simweb.Config{
		Seed: seed, Hosts: w.hosts, Names: true, HostsPerSite: 1, Zone: w.zone,
		Pages: simweb.Pages{Min: max(20, w.pages*pages/allTopicPages())}, PageBytes: 256, LinksPerPage: w.links,
		Connection: simweb.Connection{LatencyMin: topicLatencyMin, LatencyMax: topicLatencyMax, MaxRequests: 1 << 30},
	})
}

// allTopicPages returns the nominal number of pages of all topics.
func allTopicPages() (n int) {
	for _, w := range topicWebs {
		n += w.hosts * w.pages
	}
	return n + lateTopic.hosts*lateTopic.pages
}

// topic returns the crawl's topic, whose scope is the zone.
func (w topicWeb) topic(slice time.Duration) blobschema.Topic {
	return blobschema.Topic{
		Name: w.name, Slice: slice, Scope: blobschema.ScopeAny, Include: []string{`^http://[^/]*\.` + w.zone + `/`}, MaxDepth: -1,
	}
}

// topicTrial is one crawl of several topics.
type topicTrial struct {
	name       string
	topics     []blobschema.Topic // empty: a crawl without topics
	partitions int
	late       time.Duration // time at which the late topic is added; 0: never
	warm       bool          // one step without a limit; otherwise steps live as long as those of functions, and start without memory
	length     time.Duration // duration of the crawl; 0: that of the study
	from       time.Duration // pages count from then on

	hours [][]int          // pages by hour and topic
	first [4]time.Duration // first page of each topic
	had   [4]int           // pages of each topic
	done  [4]time.Duration // last page of each topic
	measure.Measured
}

// topicStudy holds the data that all trials share.
type topicStudy struct {
	seed  uint64
	webs  []*simweb.Web // of topicWebs, then of lateTopic
	pages int           // upper bound of the pages of all webs
	hours int
	asks  []measure.Ask
}

func newTopicStudy(o Options) (*topicStudy, error) {
	s := &topicStudy{seed: o.Seed, hours: topicHours, pages: allTopicPages()}
	asks := topicAsks
	if o.Quick {
		s.hours, s.pages, asks = 1, s.pages/10, 10
	}
	if o.Pages != 0 {
		s.pages = o.Pages
	}
	for i, w := range append(slices.Clone(topicWebs), lateTopic) {
		web, err := w.make(o.Seed+uint64(i), s.pages)
		if err != nil {
			return nil, err
		}
		s.webs = append(s.webs, web)
	}
	r := rand.New(rand.NewPCG(o.Seed, 1))
	span := time.Duration(s.hours) * time.Hour
	for i := range asks { // in the middle, when the crawl is busy and has time to serve them
		web := s.webs[i%len(topicWebs)]
		at := span/20 + time.Duration(r.Int64N(int64(span*9/10)))
		s.asks = append(s.asks, measure.Ask{At: at, URL: web.URL(r.IntN(web.Hosts()), 0)})
	}
	return s, nil
}

// lab returns a crawl without topics and web.
func (s *topicStudy) lab(partitions int) *measure.Lab {
	return &measure.Lab{
		Seed: s.seed, Partitions: partitions, Slots: 256, Connections: topicConnections / partitions, Delay: topicDelay,
		Duration: time.Duration(s.hours) * time.Hour, Asks: s.asks,
	}
}

func (s *topicStudy) run(t *topicTrial) (err error) {
	lab := s.lab(t.partitions)
	lab.Settings.Topics = t.topics
	if !t.warm {
		lab.Life = stepLife
	}
	if t.length > 0 {
		lab.Duration, lab.Asks = t.length, nil
	}
	for i, w := range s.webs {
		r := measure.Region{Web: w}
		if len(t.topics) > 0 {
			r.Topic = uint8(i + 1)
		}
		if i == len(topicWebs) {
			if r.After = t.late; t.late == 0 {
				continue
			}
		}
		lab.Regions = append(lab.Regions, r)
	}
	lab.Watch = time.Second
	lab.OnSight = func(at measure.Sight) {
		hour := int((at.At - 1) / time.Hour)
		for len(t.hours) <= hour {
			t.hours = append(t.hours, make([]int, len(lab.Regions)))
		}
		for i, n := range at.Regions {
			if n == 0 || at.At <= t.from {
				continue
			}
			if t.had[i] == 0 {
				t.first[i] = at.At
			}
			t.hours[hour][i] += n
			t.had[i] += n
			t.done[i] = at.At
		}
	}
	if t.Measured, err = measure.Measure(*lab); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// main returns the pages of the three topics of every trial.
func (t *topicTrial) main() []int { return t.had[:len(topicWebs)] }

// evenness returns the coefficient of variation of pages, and the smallest number relative to the largest.
func evenness(pages []int) (variation, fewest float64) {
	return spreadOf(pages).deviation, float64(slices.Min(pages)) / float64(max(1, slices.Max(pages)))
}

// shares returns the smallest share of an hour's pages that a topic had, and the number of hours without a page.
func (t *topicTrial) shares(topic int) (least float64, none int) {
	least = 1
	for _, h := range t.hours {
		total := 0
		for _, n := range h {
			total += n
		}
		least = min(least, float64(h[topic])/float64(max(1, total)))
		if h[topic] == 0 {
			none++
		}
	}
	return least, none
}

// equal returns the topics with equal slices.
func equal() []blobschema.Topic { return sliced(10*time.Second, 10*time.Second, 10*time.Second) }

// sliced returns the topics with the given slices.
func sliced(slices ...time.Duration) (out []blobschema.Topic) {
	for i, s := range slices {
		out = append(out, topicWebs[i].topic(s))
	}
	return out
}

// with returns changed copies of topics.
func with(topics []blobschema.Topic, change func(i int, t *blobschema.Topic)) []blobschema.Topic {
	for i := range topics {
		change(i, &topics[i])
	}
	return topics
}

// topics measures how topics share a crawl.
func topics(o Options) (*Report, error) {
	log := o.logger()
	s, err := newTopicStudy(o)
	if err != nil {
		return nil, err
	}
	day := time.Duration(s.hours) * time.Hour
	capacity := float64(topicConnections) / topicPageTime.Seconds() // pages a second
	unequal := func() []blobschema.Topic { return sliced(30*time.Second, 10*time.Second, 5*time.Second) }
	late := append(equal(), lateTopic.topic(0))
	late[len(topicWebs)].Priority = 10
	without := &topicTrial{name: "without topics", partitions: 1}
	even := &topicTrial{name: "turns of 10 s", topics: equal(), partitions: 1}
	warm := &topicTrial{name: "the same, steps without a limit", topics: equal(), partitions: 1, warm: true}
	divided := &topicTrial{name: "turns of 10 s, four partitions", topics: equal(), partitions: topicConnections}
	tilted := &topicTrial{name: "turns of 30, 10 and 5 s", topics: unequal(), partitions: 1}
	least := int64(minimumPart * capacity * (day / 4).Seconds() / float64(len(topicWebs)))
	levelled := &topicTrial{name: "four partitions, with a minimum", partitions: topicConnections, topics: with(equal(), func(_ int, t *blobschema.Topic) {
		t.Minimum, t.Period = least, day/4
	})}
	watched := &topicTrial{name: "30, 10 and 5 s, with a minimum", partitions: 1, topics: with(unequal(), func(_ int, t *blobschema.Topic) {
		t.Minimum, t.Period = least, day/4
	})}
	first := &topicTrial{name: "the large one first", partitions: 1, topics: with(equal(), func(i int, t *blobschema.Topic) {
		if i == 0 {
			t.Priority = 1
		}
	})}
	coming := &topicTrial{name: "a late topic of a higher priority", topics: late, partitions: 1, late: day / 2}
	queued := &topicTrial{name: "the same without topics", partitions: 1, late: day / 2}
	trials := []*topicTrial{without, even, warm, divided, levelled, tilted, watched, first, coming, queued}
	cold := coldTrials(o.Quick)
	var jobs []func() error
	for _, t := range append(slices.Clone(trials), cold...) {
		jobs = append(jobs, func() error {
			err := s.run(t)
			log("%s: %s pages", t.name, grouped(t.Pages))
			return err
		})
	}
	if err := parallel(jobs); err != nil {
		return nil, err
	}
	hashing, err := bucketSection(o.Seed, 4*s.pages)
	if err != nil {
		return nil, err
	}
	return &Report{
		Name: "topics", Title: "One crawl of several topics", Seed: o.Seed, Pages: s.pages, Quick: o.Quick,
		Intro: fmt.Sprintf(topicsIntro, s.hours, topicConnections, topicLatencyMin, topicLatencyMax, capacity, topicDelay, stepLife),
		Sections: []Section{
			s.evenSection(trials, without, even, divided, levelled), s.minimumSection(tilted, watched, least, day/4),
			s.lateSection(coming, queued), s.askSection(without, even, warm), s.coldSection(cold), hashing,
		},
	}, nil
}

// Properties of the steps of functions, and of the crawls of some rounds.
const (
	stepLife   = 4*time.Minute + 30*time.Second
	coldRounds = 10
	coldStart  = 30 * time.Second // in which the crawl begins; a round of the shortest slices
	coldShare  = 0.1              // largest deviation of a topic's share from that of its slice
)

// coldTrials returns crawls with slices of several lengths.
func coldTrials(quick bool) (trials []*topicTrial) {
	lengths := []time.Duration{10 * time.Second, 3 * time.Minute, 5 * time.Minute, time.Hour}
	if quick {
		lengths = lengths[1:2]
	}
	for _, l := range lengths {
		trials = append(trials, &topicTrial{
			name: fmt.Sprintf("slices of %v", l), topics: sliced(l, l, l), partitions: 1, length: coldStart + coldRounds*3*l, from: coldStart,
		})
	}
	return trials
}

// coldSection reports on how the length of a slice and the life of a step go together.
func (s *topicStudy) coldSection(trials []*topicTrial) Section {
	sec := Section{Title: "Steps without memory", Breaks: "the first topic that has URLs always comes first (`turn` in `internal/schedule/topics.go`).", Text: fmt.Sprintf(coldText, stepLife, coldRounds, coldStart)}
	tab := Table{Name: "cold", Caption: fmt.Sprintf("Pages in %d rounds, by steps of %v", coldRounds, stepLife), Columns: []string{"crawl", "steps", "large", "middle", "small", "farthest from a third"}}
	for _, t := range trials {
		third, far := float64(t.had[0]+t.had[1]+t.had[2])/3, 0.0
		for _, n := range t.main() {
			far = max(far, math.Abs(float64(n)-third)/max(1, third))
		}
		tab.Rows = append(tab.Rows, []any{t.name, t.Steps, t.had[0], t.had[1], t.had[2], far})
		sec.Checks = append(sec.Checks, Check{What: fmt.Sprintf("%s: shares within %g%%", t.name, 100*coldShare), OK: far <= coldShare})
	}
	sec.Tables = []Table{tab}
	return sec
}

// minimumPart is the minimum of a topic, relative to a third of the crawl's pages in a period.
const minimumPart = 0.75

// evenSection reports on the paper's own measurement.
func (s *topicStudy) evenSection(trials []*topicTrial, without, even, divided, levelled *topicTrial) Section {
	sec := Section{Title: "Pages of each topic", Text: fmt.Sprintf(evenText, s.describe(), s.dealt(), 100*minimumPart)}
	tab := Table{
		Name: "pages", Caption: fmt.Sprintf("Pages in %d hours", s.hours),
		Columns: []string{"crawl", "large", "middle", "small", "variation", "fewest by most", "least share of an hour", "hours without a page"},
	}
	for _, t := range trials[:8] {
		v, f := evenness(t.main())
		least, none := 1.0, 0
		for i := range topicWebs {
			l, n := t.shares(i)
			least, none = min(least, l), none+n
		}
		tab.Rows = append(tab.Rows, []any{t.name, t.had[0], t.had[1], t.had[2], v, f, least, none})
	}
	found := Table{
		Name: "urls", Caption: "Different URLs of each topic that were found, and of these downloaded",
		Columns: []string{"crawl", "large found", "downloaded", "middle found", "downloaded", "small found", "downloaded"},
	}
	known := true
	for _, t := range trials[:8] {
		row := []any{t.name}
		for i, n := range t.main() {
			row = append(row, t.Found[i], n)
			known = known && t.Found[i] >= n
		}
		found.Rows = append(found.Rows, row)
	}
	sec.Tables = []Table{tab, found}
	sec.Breaks = "the first topic that has URLs always comes first (`turn` in `internal/schedule/topics.go`)."
	v, f := evenness(even.main())
	sec.Checks = []Check{{
		What: fmt.Sprintf("%s: coefficient of variation at most %g, fewest by most at least %g", even.name, evenVariation, evenFewest),
		OK:   v <= evenVariation && f >= evenFewest,
	}}
	sec.Checks = append(sec.Checks, Check{What: "no topic has more pages than URLs that were found", OK: known})
	for _, t := range []*topicTrial{even, divided, levelled} {
		none := 0
		for i := range topicWebs {
			_, n := t.shares(i)
			none += n
		}
		sec.Checks = append(sec.Checks, Check{What: t.name + ": no hour in which a topic has no page", OK: none == 0})
	}
	sec.Plots = []Plot{
		s.hourPlot("without", "Pages an hour, without topics", without),
		s.hourPlot("turns", "Pages an hour, in turns of 10 s", even),
	}
	return sec
}

// Limits of an even distribution.
const (
	evenVariation = 0.05
	evenFewest    = 0.9
)

// describe returns a description of the topics.
func (s *topicStudy) describe() string {
	var parts []string
	for i, w := range topicWebs {
		parts = append(parts, fmt.Sprintf("*%s*: %s hosts, %s pages, %d links on each", w.name, grouped(s.webs[i].Hosts()), grouped(s.webs[i].Pages()), w.links))
	}
	return strings.Join(parts, "; ")
}

// dealt returns a text with the numbers of hosts of the small topic in four partitions.
func (s *topicStudy) dealt() string {
	h, err := s.lab(topicConnections).Hash()
	if err != nil {
		panic("experiment: " + err.Error()) // unreachable: this package chooses the number of slots
	}
	m := resized(nil, h.Slots(), topicConnections, true)
	counts := make([]int, topicConnections)
	web := s.webs[len(topicWebs)-1]
	for i := range web.Hosts() {
		counts[m.Owner(h.Slot(web.Host(i).Authority))]++
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(counts), " ", ", "), "[]")
}

func (s *topicStudy) hourPlot(name, title string, t *topicTrial) Plot {
	p := Plot{Name: name, Title: title, X: "hour", Y: "pages"}
	for i := range t.hours[0] {
		series := Series{Name: append(topicWebs, lateTopic)[i].name, Color: i}
		for h, pages := range t.hours {
			series.X, series.Y = append(series.X, float64(h+1)), append(series.Y, float64(pages[i]))
		}
		p.Series = append(p.Series, series)
	}
	return p
}

// minimumSection reports on minimum shares.
func (s *topicStudy) minimumSection(tilted, watched *topicTrial, least int64, period time.Duration) Section {
	sec := Section{Title: "A minimum, and slices that shrink", Breaks: "the watcher never shortens a slice (`internal/crawl/slices.go`).", Text: fmt.Sprintf(minimumText, grouped(int(least)), period, 100*minimumPart)}
	tab := Table{Name: "minimum", Caption: "Pages of each period", Columns: []string{"crawl", "period", "large", "middle", "small", "fewest by the minimum"}}
	hours := max(1, s.hours/4)
	met := true
	for _, t := range []*topicTrial{tilted, watched} {
		for p := 0; p*hours < len(t.hours); p++ {
			sum := make([]int, len(topicWebs))
			for _, h := range t.hours[p*hours : min(len(t.hours), (p+1)*hours)] {
				for i := range sum {
					sum[i] += h[i]
				}
			}
			f := float64(slices.Min(sum)) / float64(least)
			tab.Rows = append(tab.Rows, []any{t.name, p + 1, sum[0], sum[1], sum[2], f})
			if t == watched && s.hours >= 4 {
				met = met && f >= 1
			}
		}
	}
	sec.Tables = []Table{tab}
	sec.Plots = []Plot{
		s.hourPlot("unequal", "Pages an hour, in turns of 30, 10 and 5 s", tilted),
		s.hourPlot("minimum", "Pages an hour, the same with a minimum", watched),
	}
	sec.Checks = []Check{{What: "with a minimum every topic has it in every period", OK: met}}
	return sec
}

// lateSection reports on a topic that is added late.
func (s *topicStudy) lateSection(coming, queued *topicTrial) Section {
	web := s.webs[len(topicWebs)]
	alone := time.Duration(web.Pages()/web.Hosts()) * topicPageTime // each host one request at a time
	sec := Section{Title: "A topic that comes late", Text: fmt.Sprintf(lateText, grouped(web.Hosts()), grouped(web.Pages()), coming.late)}
	tab := Table{Name: "late", Caption: "The late topic", Columns: []string{"crawl", "first page after, s", "pages", "of", "last page after, min", "bound by connections, min", "bound by hosts, min"}}
	i := len(topicWebs)
	byLinks := time.Duration(float64(web.Pages()) / (topicConnections / topicPageTime.Seconds()) * float64(time.Second))
	for _, t := range []*topicTrial{coming, queued} {
		row := []any{t.name, nil, t.had[i], web.Pages(), nil, byLinks.Minutes(), alone.Minutes()}
		if t.had[i] > 0 {
			row[1], row[4] = (t.first[i] - t.late).Seconds(), (t.done[i] - t.late).Minutes()
		}
		tab.Rows = append(tab.Rows, row)
	}
	sec.Tables = []Table{tab}
	sec.Plots = []Plot{s.hourPlot("late", "Pages an hour, with a late topic of a higher priority", coming)}
	sec.Breaks = "priorities are ignored (`top` in `internal/schedule/topics.go`)."
	sec.Checks = []Check{
		{What: fmt.Sprintf("the late topic has its first page within %v", soon), OK: coming.had[i] > 0 && coming.first[i]-coming.late <= soon},
		{What: "it is done", OK: coming.had[i] >= web.Pages()},
	}
	return sec
}

// soon bounds the wait of a topic with a higher priority for its first page: a tick, which mails its seeds, a robots.txt and
// the requests under way, which are not aborted.
const soon = 15 * time.Second

// askSection reports on requests from outside.
func (s *topicStudy) askSection(trials ...*topicTrial) Section {
	sec := Section{
		Title: "Requests under full load", Text: fmt.Sprintf(askText, len(s.asks)),
		Breaks: "a busy step does not load the hosts of requested URLs (`internal/crawl/fetch.go`); requested URLs have no class of their own (`top` in `internal/schedule/topics.go`).",
	}
	tab := Table{Name: "requests", Caption: "Seconds from the request until the page was fetched", Columns: []string{"crawl", "requests", "served", "median", "90%", "longest"}}
	for _, t := range trials {
		d := times(t.Served)
		row := []any{t.name, len(s.asks), len(d), nil, nil, nil}
		if len(d) > 0 {
			row[3], row[4], row[5] = d[len(d)/2].Seconds(), d[len(d)*9/10].Seconds(), d[len(d)-1].Seconds()
		}
		tab.Rows = append(tab.Rows, row)
		if len(t.topics) > 0 {
			sec.Checks = append(sec.Checks, Check{What: fmt.Sprintf("%s: all are served, within %v", t.name, soon), OK: len(d) == len(s.asks) && d[len(d)-1] <= soon})
		}
	}
	sec.Tables = []Table{tab}
	return sec
}

// times returns the positive durations, sorted.
func times(all []time.Duration) []time.Duration {
	all = slices.DeleteFunc(slices.Clone(all), func(d time.Duration) bool { return d == 0 })
	slices.Sort(all)
	return all
}

const topicsIntro = `**Question.** Fan and Li crawl several topics at once. Topics take turns or go first by priority, and a watcher gives smaller slices to a topic that has met its
minimum. They report that three topics get equal shares over 24 hours, and that no topic is left without pages, which
happened before. Does that hold here, and how soon are urgent requests served?

**How.** The crawler's own core runs on a virtual clock, for %d hours, with %d connections to hosts that answer after %v to %v: at most %.2f
pages per second, which each topic alone could use. A host gets one request every %v. Without topics the same hosts are one crawl. The
first hour counts too, although topics have few URLs at its beginning. Steps run as functions do: each lives for %v, and the next one starts
without memory.`

const evenText = `%s. Without topics, hosts take turns, and each turn sends up to 50 requests over its connection. A topic then gets pages in proportion to its hosts, and a small one
has hours without pages. With topics, a topic has the connections for its slice. What it cannot use, because all its hosts must wait, goes to the
others. The remaining differences come from robots.txt, which the large topic requests more often. Each partition takes its own turns, so a topic is
as even as its hosts are distributed: four partitions have %s of the small topic's hosts, and a partition with few of them fetches all their pages before the
end. The watcher counts over all partitions: with a minimum (here %g%% of a third, in a quarter of the time) the small topic gets more in the others. A topic of
higher priority goes first while it has any URL. If that is the large topic, nothing is left for the others.`

const minimumText = `Slices of unequal length give unequal shares, which may be intended. With a minimum of %s pages in each period of
%v (%.0f%% of a third of what the crawl can fetch), the watcher, a part of the coordinator run, shortens the slices of topics that have met it, until the next
period begins.`

const lateText = `A topic of %s hosts and %s pages starts after %v, when the others have tens of thousands of URLs
waiting. With priority 10 it goes before the others; without topics its hosts take turns with all others. The command that submits
its seeds runs the coordinator at once, which finds them.`

const coldText = `Functions end after some minutes, and the next one starts without memory. The clock decides whose turn it is, so the next function continues with
the topic of the previous one. Here a step lives for %v, and a crawl for %d rounds of three equal slices.
The first %v, in which the crawl begins, do not count.`

const askText = `%d requests for roots of hosts of all topics, at random times, while all connections are busy. A function takes each request and mails it to
the owner of the host, where it goes before all topics. It waits for a free connection and for the pace of its host, which may have had a request just
before. These are the bounds, and not the number of waiting URLs. Steps of functions add to that: they end after some minutes, and
the next one must begin. A host that is not in memory is loaded at once, even if others keep all connections busy.`
