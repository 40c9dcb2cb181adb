package crawl

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/partition"
)

// dies is what a process dies of.
type dies struct{}

// live carries an actor to its end, or to its death: it reports which. Then nothing of it is left but
// what it has done, its lease expires, and what it has received and not acknowledged comes back.
func (w *world) live(a interface {
	actor.Actor
	Drop()
}) (alive bool) {
	w.t.Helper()
	defer func() {
		if r := recover(); r == (dies{}) {
			a.Drop()
			w.now += 3 * time.Minute
			w.redeliver()
		} else if r != nil {
			panic(r)
		}
	}()
	if _, err := w.run(a); err != nil {
		w.t.Fatal(err)
	}
	return true
}

// redeliver puts mail back into its mailbox that was received and not acknowledged.
func (w *world) redeliver() {
	for r := 1; r <= w.receipts; r++ {
		m, err := blobschema.DecodeMail(w.mail[r])
		if err != nil { // acknowledged, or a wake
			continue
		}
		q := naming.MailboxQueue(m.To)
		if !slices.ContainsFunc(w.queues[q], func(m actor.Message) bool { return m.Receipt == r }) {
			w.queues[q] = append(w.queues[q], actor.Message{Body: w.mail[r], Receipt: r, Receives: 2})
		}
	}
}

// crashing crawls two sites that link to each other, in two partitions. The process dies before
// effect number at, or right after it, and others go on. Effects are counted from one; it
// returns how many there were.
func crashing(t *testing.T, at int, after bool) (effects int) {
	t.Helper()
	const n = 3
	w, c := newWorld(t), newCrawl(2)
	hosts := []string{ofPartition(t, c, 0), ofPartition(t, c, 1)}
	last := map[string]time.Duration{}
	w.web = func(r page.Request) *page.Outcome {
		host := string(r.URL.Host())
		if began := w.now - fetchTime; r.URL.Path() != "/robots.txt" {
			if before, ok := last[host]; ok && began-before < c.Settings.Delay {
				t.Errorf("I9: %s is asked %v after the page before", r.URL, began-before)
			}
			last[host] = began
		}
		return site(t, host, n, func(i int) []string {
			return []string{fmt.Sprintf("https://%s/%d", host, i+1), fmt.Sprintf("https://%s/%d", hosts[0], i), fmt.Sprintf("https://%s/%d", hosts[1], i)}
		})(r)
	}
	c = w.begin(c, "https://"+hosts[0]+"/0")
	w.fault = func(e actor.Effect) (error, error) {
		if effects++; effects != at {
			return nil, nil
		}
		if after {
			if _, err := w.apply(e); err != nil {
				t.Error(err)
			}
		}
		panic(dies{})
	}
	for round := 0; ; round++ {
		if round == 30 {
			t.Fatalf("it has no end: %+v and %+v", w.head(c.ID, 0), w.head(c.ID, 1))
		}
		k := NewTick(TickConfig{Crawl: c.ID, ResendAfter: time.Minute}, &w.memory)
		if !w.live(k) {
			w.memory = TickMemory{}
			continue
		}
		if k.Report().Finished {
			break
		}
		for p := range partition.ID(2) {
			s, err := NewStep(StepConfig{
				Crawl: c, Partition: p, Process: fmt.Sprint("p", round), Deadline: 4 * time.Second, CommitEvery: 2 * time.Second, MailEvery: 3 * time.Second,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			w.live(s)
		}
		w.now += 20 * time.Second
	}
	for p, host := range hosts {
		want := make([]string, n+1) // the last is not found
		for i := range want {
			want[i] = fmt.Sprintf("https://%s/%d", host, i)
		}
		checkPages(t, w, c.ID, partition.ID(p), want)
	}
	return effects
}

// TestCrashAnywhere: wherever a process dies, before an effect or right after it, others end
// the crawl with all pages, each once (I7, I8), and no host is asked faster than its pace (I9).
func TestCrashAnywhere(t *testing.T) {
	effects := crashing(t, 0, false)
	if effects < 60 {
		t.Errorf("only %d effects", effects)
	}
	for at := range effects {
		for _, after := range []bool{false, true} {
			if crashing(t, at+1, after); t.Failed() {
				t.Fatalf("it died at effect %d of %d, after it: %v", at+1, effects, after)
			}
		}
	}
}
