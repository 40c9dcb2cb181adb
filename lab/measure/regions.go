package measure

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Region is a part of a [Lab]'s web. It shares no host with other regions.
type Region struct {
	Web   *simweb.Web
	Seeds int           // number of hosts whose roots are seeds; 0: all
	Topic uint8         // of the seeds; 0: none
	After time.Duration // time at which the seeds are added; 0: at the start
}

// Ask is a request from outside to fetch a page again.
type Ask struct {
	At  time.Duration // since the start of the crawl
	URL string
}

// seeds returns the seeds that are added to the crawl after a time.
func (l *lab) seeds(after time.Duration) (out []crawl.Seed, err error) {
	if after == 0 && len(l.cfg.Known) > 0 {
		return crawl.Seeds(l.cfg.Known), nil
	}
	for _, r := range l.cfg.Regions {
		if r.After != after {
			continue
		}
		n := r.Web.Hosts()
		if r.Seeds > 0 {
			n = min(n, r.Seeds)
		}
		for h := range n {
			u, err := weburl.Parse(r.Web.URL(h, 0))
			if err != nil {
				return nil, err
			}
			l.find(u)
			out = append(out, crawl.Seed{URL: u, Topic: r.Topic})
		}
	}
	return out, nil
}

// region returns the index of the region of a URL.
func (l *lab) region(u weburl.URL) int {
	return max(0, slices.IndexFunc(l.cfg.Regions, func(r Region) bool {
		_, ok := r.Web.HostOf(string(u.Host()))
		return ok
	}))
}

// find counts a URL.
func (l *lab) find(u weburl.URL) {
	if len(l.cfg.Regions) < 2 {
		return
	}
	if _, ok := l.found[u.String()]; !ok {
		l.found[u.String()] = struct{}{}
		l.result.Found[l.region(u)]++
	}
}

func (l *lab) regionOf(u weburl.URL) *Region { return &l.cfg.Regions[l.region(u)] }

// nothing returns a sight without pages.
func (l *lab) nothing() Sight {
	return Sight{Pages: make([]int, l.cfg.Most), Regions: make([]int, len(l.cfg.Regions))}
}

// schedule schedules later seeds and requests.
func (l *lab) schedule() {
	var times []time.Duration
	for _, r := range l.cfg.Regions {
		if r.After > 0 {
			times = append(times, r.After)
		}
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		l.After(t, func() { l.give(t) })
	}
	for i := range l.cfg.Asks {
		l.After(l.cfg.Asks[i].At, func() { l.ask(i) })
	}
}

// allGiven reports whether all later seeds and requests have been given.
func (l *lab) allGiven() bool {
	since := l.Mono - l.began
	return !slices.ContainsFunc(l.cfg.Regions, func(r Region) bool { return r.After >= since }) &&
		!slices.ContainsFunc(l.cfg.Asks, func(r Ask) bool { return r.At >= since })
}

// give adds seeds to the crawl.
func (l *lab) give(after time.Duration) {
	seeds, err := l.seeds(after)
	if err != nil {
		l.fail(err)
		return
	}
	l.start(crawl.NewBegin(blobschema.Crawl{}, seeds, nil), 0, func(err error) {
		if err != nil {
			l.fail(fmt.Errorf("seeds after %v: %w", after, err))
			return
		}
		l.tickNow() // like a command that adds seeds
	})
}

// ask sends a request. The intake takes it once its function has started.
func (l *lab) ask(i int) {
	url := l.cfg.Asks[i].URL
	body, err := blobschema.EncodeRequest(blobschema.Request{ID: fmt.Sprint(i), Recrawl: []string{url}})
	if err == nil {
		_, err = l.queues.Send(l.Wall(), naming.IntakeQueue, body, nil, 0)
	}
	if err != nil {
		l.fail(err)
		return
	}
	l.asked[url] = append(l.asked[url], i)
	l.After(queueTime+startTime, l.intake)
}

// intake runs the intake function.
func (l *lab) intake() {
	got, err := l.queues.Receive(l.Wall(), naming.IntakeQueue, 10)
	if err != nil || len(got) == 0 {
		l.failIf(err)
		return
	}
	msgs := make([]actor.Message, len(got))
	for i, d := range got {
		msgs[i] = actor.Message{ID: fmt.Sprint(d.ID), Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	l.start(crawl.NewIntake(crawl.IntakeConfig{Crawl: l.crawl.ID}, msgs), 0, func(err error) {
		for _, d := range got {
			err = errors.Join(err, l.queues.Ack(l.Wall(), naming.IntakeQueue, d.Receipt))
		}
		l.failIf(err)
	})
}

func (l *lab) failIf(err error) {
	if err != nil {
		l.fail(err)
	}
}

// served records the time of a page that an Ask waits for.
func (l *lab) served(url string) {
	for _, i := range l.asked[url] {
		l.result.Served[i] = l.Mono - l.began - l.cfg.Asks[i].At
	}
	delete(l.asked, url)
}
