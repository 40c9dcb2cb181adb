package simulate

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/platform/embedded"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// finish ends the run, unless there is something left that comes when a crawl is done. A
// tick that began then has found the crawl at its end.
func (w *world) finish(began time.Duration) {
	switch {
	case w.late != givenAll:
		w.giveRest()
	case len(w.wishes) < w.cfg.Recrawls:
		w.recrawl()
	case w.settledWishes() && w.taken <= began: // else it looked before the last request was taken
		w.done = true
	}
}

// recrawl asks for a random URL of the web once more. Now and then it repeats an
// earlier request, which must change nothing.
func (w *world) recrawl() {
	var wi wish
	if len(w.wishes) > 0 && w.rng.IntN(4) == 0 {
		wi = w.wishes[w.rng.IntN(len(w.wishes))]
	} else {
		urls := w.web.Truth(simweb.Scope{Agent: agent, SkipDigests: true}).Reachable()
		wi = wish{url: urls[w.rng.IntN(len(urls))], id: fmt.Sprint("r", len(w.wishes)), at: w.now}
	}
	w.wishes = append(w.wishes, wi)
	w.note("recrawl", wi.url, wi.id)
	body, err := blobschema.EncodeRequest(blobschema.Request{ID: wi.id, Recrawl: []string{wi.url}})
	if err == nil {
		_, err = w.queues.Send(w.wall(), blobschema.IntakeQueue, body, nil, 0)
	}
	if err != nil {
		w.fail(err)
	}
}

// settledWishes reports whether no request waits in the intake queue.
func (w *world) settledWishes() bool {
	visible, inFlight, delayed, err := w.queues.Depth(w.wall(), blobschema.IntakeQueue)
	if err != nil {
		w.fail(err)
	}
	return visible+inFlight+delayed == 0
}

// pollIntake is the trigger of the intake function.
func (w *world) pollIntake() {
	w.at(w.between(200*time.Millisecond, 2*time.Second), w.pollIntake)
	got, err := w.queues.Receive(w.wall(), blobschema.IntakeQueue, 10)
	if err != nil {
		w.fail(err)
	}
	if len(got) == 0 {
		return
	}
	msgs := make([]crawl.Message, len(got))
	for i, d := range got {
		msgs[i] = crawl.Message{ID: fmt.Sprint(d.ID), Body: d.Body, Receipt: d.Receipt, Receives: d.Receives}
	}
	in := crawl.NewIntake(crawl.IntakeConfig{Crawl: w.crawl.ID}, msgs)
	p := &proc{w: w, actor: in, kind: "intake"}
	p.onEnd = func(err error) {
		switch {
		case p.dead || errors.Is(err, errInjected):
			return // they are delivered again
		case err != nil:
			w.fail(fmt.Errorf("intake: %w", err))
			return
		}
		w.taken = w.now
		for _, m := range msgs {
			if err := w.queues.Ack(w.wall(), blobschema.IntakeQueue, m.Receipt.(embedded.Receipt)); err != nil && !errors.Is(err, embedded.ErrNotYours) {
				w.fail(err)
			}
		}
	}
	p.start()
}

// resolve is what a name resolves to: one of a few addresses that many names share, and
// another one each time it is asked for.
func (w *world) resolve(host string) netip.Addr {
	h := fnv.New32a()
	_, _ = h.Write(append([]byte(host), byte(w.rng.IntN(2)))) // never fails
	return netip.AddrFrom4([4]byte{192, 0, 2, byte(h.Sum32() % 5)})
}

// checkPin fails unless a host is always asked at the same address. What was asked for
// in vain, by a step that crashed or lost its lease, had perhaps another one.
func (w *world) checkPin(host string, addr netip.Addr) {
	if old, ok := w.pinned[host]; ok && old != addr && w.faults() == 0 && w.crashes == 0 {
		w.fail(fmt.Errorf("%s was asked at %s, and now at %s", host, old, addr))
	}
	w.pinned[host] = addr
}

// checkWishes checks that each requested URL that is in scope was asked for, or refused,
// after it was requested, and none more often than it was requested.
func (w *world) checkWishes(got map[string][]blobschema.Page) error {
	requests, last := map[string]map[string]bool{}, map[string]time.Duration{}
	for _, wi := range w.wishes {
		if requests[wi.url] == nil {
			requests[wi.url] = map[string]bool{}
		}
		requests[wi.url][wi.id] = true
		last[wi.url] = max(last[wi.url], wi.at)
	}
	for url, pages := range got {
		latest := blobschema.Page{}
		for _, p := range pages {
			if latest.URL == "" || p.Time.After(latest.Time) {
				latest = p
			}
			if p.Generation > 0 && int(p.Generation) > len(requests[url]) {
				return fmt.Errorf("%s has generation %d after %d requests", url, p.Generation, len(requests[url]))
			}
		}
		if at, ok := last[url]; ok && latest.Time.Before(epoch.Add(at)) {
			return fmt.Errorf("%s was requested at %v, but has no record after %v", url, at, latest.Time.Sub(epoch))
		}
		delete(last, url)
	}
	for url, at := range last {
		return fmt.Errorf("%s was requested at %v, and has no record at all", url, at)
	}
	return nil
}
