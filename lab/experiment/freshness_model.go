package experiment

import (
	"container/heap"
	"math"
	"math/rand/v2"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// livePages is a population of pages that change at known rates.
type livePages struct {
	pages []changing
	host  []int // host of each page; the pages of a host are consecutive
	first []int // first page of each host, and the number of pages
	hosts int
}

// Distribution of the rates: their logarithms are normal, with one mean per host.
const (
	medianHours = 300.0 // between two changes
	hostSigma   = 1.2
	pageSigma   = 1.6
	sizeZipf    = 0.8 // exponent of the hosts' sizes
	weightZipf  = 0.3 // exponent of the pages' weights within a host
)

// newLivePages returns a random population of about that many pages.
func newLivePages(seed uint64, pages, hosts int) *livePages {
	sizes := make([]int, hosts)
	total := 0.0
	for h := range sizes {
		total += math.Pow(float64(h+1), -sizeZipf)
	}
	for h := range sizes {
		sizes[h] = max(1, int(math.Round(float64(pages)*math.Pow(float64(h+1), -sizeZipf)/total)))
	}
	return drawLivePages(seed, sizes, weightZipf)
}

// drawLivePages returns random pages of hosts of the given sizes. Rates are at most one change in half an hour; a page that
// changes faster is different at each request.
func drawLivePages(seed uint64, sizes []int, weightZipf float64) *livePages {
	r := rand.New(rand.NewPCG(seed, 1))
	p := &livePages{hosts: len(sizes)}
	for h, n := range sizes {
		mean := hostSigma * r.NormFloat64()
		p.first = append(p.first, len(p.pages))
		for i := range n {
			rate := math.Exp(mean+pageSigma*r.NormFloat64()) / medianHours
			p.pages = append(p.pages, changing{Rate: min(rate, 2), Weight: math.Pow(float64(i+1), -weightZipf)})
			p.host = append(p.host, h)
		}
	}
	p.first = append(p.first, len(p.pages))
	return p
}

// sitemaps describes how reliable the hosts' sitemaps are.
type sitemaps struct {
	every  float64 // hours between two fetches of a sitemap, which count as revisits
	recall func(host int) float64
	alarms func(host int) float64 // false announcements per change
}

// rule determines when the pages of a model are revisited.
type rule struct {
	name     string
	interval func(i int) float64 // fixed interval in hours; nil: by worth
	known    bool                // with worth: the rates are known from the start
	sitemaps *sitemaps
	pace     float64 // hours between two revisits of a host
}

// modelRun is a simulation of the revisits of a population.
type modelRun struct {
	*livePages
	rule
	r         *rand.Rand
	now       float64
	budget    float64 // revisits per hour
	threshold float64
	revisits  int // since the last change of the threshold
	copies
	state     []modelPage
	hostState []modelHost
	due       dueHeap
}

// copies are the stored copies of pages, and the time in which they were fresh.
type copies struct {
	of        []changing
	bin       float64   // hours
	last      []float64 // last revisit of each page, in hours; below 0: none
	changed   []float64 // first change of each page after its last revisit
	freshness []float64 // by bin: time in which copies were fresh, by weight; after finish: its share
	had       []float64 // revisits by bin
}

func newCopies(of []changing, hours, bin float64) copies {
	c := copies{of: of, bin: bin, last: make([]float64, len(of)), changed: make([]float64, len(of)), freshness: make([]float64, int(math.Ceil(hours/bin)))}
	c.had = make([]float64, len(c.freshness))
	for i := range c.last {
		c.last[i] = -1
	}
	return c
}

// tally adds the time in which the copy of a page was fresh since the last revisit.
func (c *copies) tally(i int, now float64) {
	from, to := c.last[i], min(c.changed[i], now)
	if from < 0 {
		return
	}
	for b := int(from / c.bin); b < len(c.freshness) && float64(b)*c.bin < to; b++ {
		c.freshness[b] += c.of[i].Weight * (min(to, float64(b+1)*c.bin) - max(from, float64(b)*c.bin))
	}
}

func (c *copies) finish(now float64) {
	weight := 0.0
	for i := range c.of {
		c.tally(i, now)
		weight += c.of[i].Weight
	}
	for b := range c.freshness {
		c.freshness[b] /= weight * c.bin
	}
}

// learnt returns the freshness in the second half.
func (c *copies) learnt() float64 { return mean(c.freshness[len(c.freshness)/2:]) }

// perHour returns the revisits per hour in the second half.
func (c *copies) perHour() float64 { return mean(c.had[len(c.had)/2:]) / c.bin }

type modelPage struct {
	belief   blobschema.Change
	turn     int     // number of its valid entry in due
	late     bool    // it waits for its host
	said     float64 // time at which a change, real or not, is announced; +Inf: never
	hinted   bool
	silentOK bool // a sitemap was read since the last revisit
}

type modelHost struct {
	next  float64
	trust schedule.Trust
	seen  blobschema.Change // sum over its pages
}

// run revisits the pages for a number of hours, perHour times per hour.
func (p *livePages) run(seed uint64, ru rule, perHour, hours, bin float64) *modelRun {
	m := &modelRun{
		livePages: p, rule: ru, r: rand.New(rand.NewPCG(seed, 2)), budget: perHour,
		copies: newCopies(p.pages, hours, bin), state: make([]modelPage, len(p.pages)), hostState: make([]modelHost, p.hosts),
	}
	n := float64(len(p.pages))
	m.threshold = schedule.FirstThreshold(n, perHour)
	for i := range m.state {
		if ru.known {
			const sure = 1 << 11
			m.state[i].belief = blobschema.Change{Shape: sure, Hours: float32(sure / p.pages[i].Rate)}
		}
		m.revisited(i)
		// Start within the interval, because otherwise all revisits would come at once.
		m.enqueue(i, m.wait(i)*m.r.Float64())
	}
	if ru.sitemaps != nil {
		for h := range p.hosts {
			heap.Push(&m.due, due{at: ru.sitemaps.every * m.r.Float64(), page: -1 - h})
		}
	}
	nextTick := 1.0
	for len(m.due) > 0 {
		d := heap.Pop(&m.due).(due)
		for ; nextTick <= min(d.at, hours); nextTick++ {
			m.tick()
		}
		if d.at >= hours {
			break
		}
		m.now = d.at
		if d.page < 0 {
			m.readSitemap(-1 - d.page)
		} else if m.state[d.page].turn == d.turn {
			m.revisit(d.page)
		}
	}
	m.finish(hours)
	return m
}

// tick adjusts the threshold once an hour.
func (m *modelRun) tick() {
	m.threshold = schedule.SteerThreshold(m.threshold, float64(len(m.pages)), float64(m.revisits)-m.budget)
	m.revisits = 0
}

// wait returns the time between two revisits of a page.
func (m *modelRun) wait(i int) float64 {
	if m.interval != nil {
		return m.interval(i)
	}
	return schedule.Interval(m.state[i].belief, m.threshold/m.pages[i].Weight).Hours()
}

func (m *modelRun) enqueue(i int, after float64) {
	st := &m.state[i]
	st.turn++
	heap.Push(&m.due, due{at: m.now + after, page: i, turn: st.turn})
}

// revisit fetches a page as soon as the pace of its host allows.
func (m *modelRun) revisit(i int) {
	st, h := &m.state[i], &m.hostState[m.host[i]]
	if h.next > m.now {
		st.late = true
		m.enqueue(i, h.next-m.now)
		return
	}
	h.next = m.now + m.pace
	m.count()
	changed := m.changed[i] < m.now
	l := schedule.Revisit{Hours: m.now - m.last[i], Changed: changed, Hinted: st.hinted}
	if !m.known && m.interval == nil {
		if st.belief == (blobschema.Change{}) {
			st.belief = schedule.PriorChange(h.seen)
		}
		st.belief = schedule.LearnChange(st.belief, l)
		h.seen = schedule.LearnChange(h.seen, l)
	}
	if st.hinted || st.silentOK {
		h.trust = h.trust.Learn(st.hinted, changed)
	}
	m.tally(i, m.now)
	m.revisited(i)
	m.enqueue(i, m.wait(i))
}

func (m *modelRun) count() {
	m.revisits++
	m.had[int(m.now/m.bin)]++
}

// revisited draws the future of a page after a revisit.
func (m *modelRun) revisited(i int) {
	st := &m.state[i]
	rate := m.pages[i].Rate
	st.hinted, st.late, st.silentOK = false, false, false
	m.last[i], m.changed[i], st.said = m.now, m.now+m.r.ExpFloat64()/rate, math.Inf(1)
	if s := m.sitemaps; s != nil {
		if recall := s.recall(m.host[i]); m.r.Float64() < recall {
			st.said = m.changed[i]
		} else if recall > 0 { // the first later change that is announced
			st.said = m.changed[i] + m.r.ExpFloat64()/(rate*recall)
		}
		if a := s.alarms(m.host[i]); a > 0 {
			st.said = min(st.said, m.now+m.r.ExpFloat64()/(rate*a))
		}
	}
}

// readSitemap reads the announcements of a host.
func (m *modelRun) readSitemap(host int) {
	m.count()
	heap.Push(&m.due, due{at: m.now + m.sitemaps.every, page: -1 - host})
	h := &m.hostState[host]
	for i := m.first[host]; i < m.first[host+1]; i++ {
		st := &m.state[i]
		if st.late || st.hinted {
			continue
		}
		st.silentOK = true
		st.hinted = st.said < m.now
		belief := st.belief
		if belief == (blobschema.Change{}) {
			belief = schedule.PriorChange(h.seen)
		}
		m.enqueue(i, h.trust.Next(belief, m.now-m.last[i], st.hinted, m.threshold/m.pages[i].Weight).Hours())
	}
}

func mean(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// due is the time of a revisit; a page below 0 means the sitemap of host -1-page.
type due struct {
	at   float64
	page int
	turn int
}

type dueHeap []due

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h dueHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *dueHeap) Push(x any)        { *h = append(*h, x.(due)) }
func (h *dueHeap) Pop() any {
	old := *h
	d := old[len(old)-1]
	*h = old[:len(old)-1]
	return d
}
