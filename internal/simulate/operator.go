package simulate

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// giveRest adds the seeds and the limit that were held back at the start. It retries until that succeeds.
func (w *world) giveRest() {
	if w.late != toGive {
		return
	}
	w.late = giving
	w.count(LateSeeds)
	seeds, err := w.seedURLs()
	if err != nil {
		w.fail(err)
		return
	}
	b := crawl.NewBegin(blobschema.Crawl{}, w.cfg.dealt(seeds), func(c *blobschema.Crawl) error {
		c.Settings.MaxPages = w.cfg.MaxPages
		return nil
	})
	p := w.newProc("give", 0)
	p.Actor = b
	p.onEnd = func(err error) {
		if err != nil || p.dead {
			w.late = toGive
			w.After(p.between(0, time.Minute), w.giveRest)
			return
		}
		w.late, w.taken = givenAll, w.Mono
		w.crawl, _, _ = b.Crawl()
	}
	p.start()
}

// command is the operator, who halts the crawl and resumes it some minutes later, now and then once more.
func (w *world) command() {
	r := &w.operator
	w.count(Halt)
	w.resumeAt = w.Mono + r.between(time.Second, 30*time.Minute)
	w.order([]crawl.Order{crawl.OrderPause, crawl.OrderStop}[r.rng.IntN(2)])
	w.After(w.resumeAt-w.Mono, func() { w.order(crawl.OrderResume) })
	if r.rng.IntN(2) == 0 {
		w.After(r.between(30*time.Minute, 2*time.Hour), w.command)
	}
}

// resume resumes a crawl that should run, but was halted by an order that arrived late.
func (w *world) resume() {
	if w.closing || w.Mono < w.resumeAt+10*time.Minute {
		return
	}
	r := w.Table[naming.DesiredKey(w.crawl.ID)]
	if recrawl, err := decodeJSON[blobschema.DesiredState](r.Value); err == nil && (recrawl.Stop || recrawl.Pause) {
		w.order(crawl.OrderResume)
	}
}

// order gives an order. It repeats a resume until that succeeds.
func (w *world) order(o crawl.Order) {
	p := w.newProc(string(o), 0)
	p.Actor = crawl.NewCommand(w.crawl.ID, o)
	p.onEnd = func(err error) {
		if o == crawl.OrderResume && (err != nil || p.dead) {
			w.After(p.between(0, time.Minute), func() { w.order(o) })
		}
	}
	p.start()
}

// finish ends the run, unless something must still come after the end of the crawl. began is the time when the coordinator
// run began. A crawl with revisits never ends by itself: it is stopped, and then index and ranks catch up.
func (w *world) finish(began time.Duration, rep *crawl.Report) {
	switch {
	case w.late != givenAll:
		w.giveRest()
	case w.repartitionAtEnd():
	case len(w.recrawls) < w.cfg.Recrawls:
		w.recrawl()
	case !w.recrawlsTaken() || !w.settledMap() || w.taken > began: // the run read the crawl before the last request was taken
	case !rep.Following():
		w.done = true
	default:
		if w.closing = true; !rep.Desired.Stop {
			w.order(crawl.OrderStop)
		}
	}
}

// newsAfter is the time without a request for something new after which there is nothing new left: longer than any pause.
const newsAfter = 3 * time.Hour

// onlyRevisits reports whether only revisits are left to do, and some were made. It stays true once the crawl is stopped,
// although links that were found again may be left then.
func (w *world) onlyRevisits(rep *crawl.Report) bool {
	t := &rep.Totals
	return w.closing || w.cfg.PerHour > 0 && t.Unexamined+t.Urgent == 0 && w.Mono > max(w.news, w.taken)+newsAfter && t.Again > t.Pages
}

// recrawl is a request from outside for one URL.
type recrawl struct {
	url string
	id  string
	at  time.Duration // time of the first request
}

// recrawl requests a random URL of the web again. Now and then it repeats an earlier request, which must change nothing.
func (w *world) recrawl() {
	id := newIdentity(w.cfg.Seed, fmt.Sprint("recrawl ", len(w.recrawls)))
	var wi recrawl
	if len(w.recrawls) > 0 && id.rng.IntN(4) == 0 {
		wi = w.recrawls[id.rng.IntN(len(w.recrawls))]
	} else {
		urls := w.reachable()
		wi = recrawl{url: urls[id.rng.IntN(len(urls))], id: fmt.Sprint("r", len(w.recrawls)), at: w.Mono}
	}
	w.recrawls = append(w.recrawls, wi)
	w.count(Recrawl)
	w.note("recrawl", wi.url, wi.id)
	if w.odds[HostChanged] > 0 && id.rng.IntN(2) == 0 { // otherwise few of the pages that change are requested again
		w.count(HostChanged)
		w.touch(wi.url)
	}
	body, err := blobschema.EncodeRequest(blobschema.Request{ID: wi.id, Recrawl: []string{wi.url}})
	if err == nil {
		_, err = w.queues.Send(w.Wall(), naming.IntakeQueue, body, nil, 0)
	}
	if err == nil && w.fault(&id, RequestJunk) {
		_, err = w.queues.Send(w.Wall(), naming.IntakeQueue, junk(id.detail(RequestJunk), body), nil, 0)
	}
	if err != nil {
		w.fail(err)
	}
}

// junk returns a request that cannot be read.
func junk(r *rand.Rand, request []byte) []byte {
	return [][]byte{
		nil, []byte("{"), request[:len(request)/2], []byte(`{"crawl":"another","recrawl":["http://a.example/"]}`),
		[]byte(`{"recrawl":["no URL","ftp://a.example/"]}`), make([]byte, 200<<10),
	}[r.IntN(6)]
}

// reachable returns all URLs that a crawl of the whole web finds, in order.
func (w *world) reachable() []string {
	if w.urls == nil {
		w.urls = w.web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Reachable()
	}
	return w.urls
}

// recrawlsTaken reports whether no request waits in the intake queue.
func (w *world) recrawlsTaken() bool {
	visible, inFlight, delayed, err := w.queues.Depth(w.Wall(), naming.IntakeQueue)
	if err != nil {
		w.fail(err)
	}
	return visible+inFlight+delayed == 0
}
