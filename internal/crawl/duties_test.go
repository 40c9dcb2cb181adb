package crawl

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

// workingStep returns a step that has loaded its state and waits, and the time.
func workingStep(t *testing.T) (*Step, actor.Now) {
	t.Helper()
	w := newWorld(t)
	w.web = site(t, "www.example", 1, func(int) []string { return nil })
	c := w.begin(newCrawl(1), "https://www.example/0")
	s := stepOf(t, StepConfig{Crawl: c, Process: "p", Linger: time.Hour, Lease: 24 * time.Hour}, nil)
	w.process(s).Start()
	for s.lease.phase != working || !s.idle() || s.st.dirty() || s.doing != nil {
		if !w.Next() {
			t.Fatal("the step stands still")
		}
	}
	return s, w.Now()
}

// sleeps returns the times at which a step asked to be called.
func sleeps(now actor.Now, issues []actor.Issue) (at []time.Duration) {
	for _, is := range issues {
		if e, ok := is.Effect.(actor.Sleep); ok {
			at = append(at, e.For)
		}
	}
	return at
}

// TestTimerFollowsDuties checks that the timer follows the list of duties, and that the main task does the duty that is due
// next. While the main task is busy, only the duties of every event set the timer.
func TestTimerFollowsDuties(t *testing.T) {
	s, now := workingStep(t)
	s.timer = time.Time{}
	at := s.Clock().Add(7 * time.Minute)
	invented := duty{"invented", func(s *Step, _ time.Time) time.Time { return onlyIf(s.hungry, at) }, func(*Step, *actor.Task) error { return nil }}
	list := append(slices.Clone(duties), invented)
	ring := func(want ...time.Duration) {
		t.Helper()
		s.timer = time.Time{}
		s.setTimer(list)
		if got := sleeps(now, s.Flush()); !slices.Equal(got, want) {
			t.Errorf("the timer is set for %v, want %v", got, want)
		}
	}
	s.hungry = false
	ring(s.lease.left() - s.cfg.Lease*2/3) // it would renew its lease
	if s.hungry = true; s.due(list) != nil {
		t.Errorf("%q is due", s.due(list).name)
	}
	ring(7 * time.Minute)
	s.doing = &duties[0]
	ring()
	list[len(list)-1].do = nil
	ring(7 * time.Minute)
	s.doing, list[len(list)-1].do = nil, invented.do
	now.Mono += 7 * time.Minute
	now.Wall = now.Wall.Add(7 * time.Minute)
	s.Advance(now)
	if d := s.due(list); d == nil || d.name != "invented" {
		t.Errorf("when it is due, %+v is", d)
	}
	for _, d := range duties {
		if d.name == "" || d.at == nil {
			t.Errorf("a duty is %+v", d)
		}
	}
}

// TestPartThatIsDueSoon checks that a step waits for a part that is not in memory as it does for a host, and loads it on
// time.
func TestPartThatIsDueSoon(t *testing.T) {
	c, host := newCrawl(1), "www.example"
	c.Settings.Delay = 10 * time.Second
	w := newWorld(t)
	w.web = site(t, host, 3, func(int) []string { return nil })
	c = w.begin(c, all(host)[:3]...)
	first := StepConfig{Crawl: c, Process: "p", SleepMax: 2 * time.Second}
	w.step(first, nil)
	head := w.head(c.ID, 0)
	if head.Totals.Pending == 0 || head.Due.IsZero() {
		t.Fatalf("nothing waits: %+v", head)
	}
	for _, k := range []struct {
		early time.Duration
		asked int
	}{{5 * time.Second, 0}, {1500 * time.Millisecond, 1}} {
		v := w.clone()
		v.Mono = head.Due.Add(-k.early).Sub(virtual.Epoch)
		var requests []string
		v.web = func(r actor.Request) *actor.Outcome {
			requests = append(requests, r.URL.String())
			return w.web(r)
		}
		v.step(first, nil) // cold: no part is in memory
		if pages := slices.DeleteFunc(requests, func(u string) bool { return strings.HasSuffix(u, "robots.txt") }); len(pages) != k.asked {
			t.Errorf("a step that begins %v before the part is due requests %v", k.early, pages)
		}
	}
}
