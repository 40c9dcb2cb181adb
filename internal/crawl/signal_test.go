package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

// TestDemand checks that a step reports little or no work exactly while it could use mail, and that its progress is right
// at all times.
func TestDemand(t *testing.T) {
	for _, k := range []struct {
		name   string
		hosts  int
		delay  time.Duration
		limit  int64
		pauses bool
		middle Demand // when it has requested half of what it knows
		last   Demand // when it has nothing left to request
	}{
		{"many hosts", 30, time.Second, 0, false, NoDemand, HighDemand},
		{"one host, soon again", 1, time.Second / 2, 0, false, NoDemand, HighDemand},
		{"one host, some seconds between", 1, 5 * time.Second, 0, false, LowDemand, HighDemand},
		{"one host, nothing before the next commit", 1, time.Minute, 0, false, HighDemand, HighDemand},
		{"the limit is reached", 30, time.Second, 60, false, NoDemand, NoDemand},
		{"paused", 30, time.Second, 0, true, NoDemand, NoDemand},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w := newCrawl(1), newWorld(t)
			c.Settings.Delay, c.Settings.MaxPages = k.delay, k.limit
			var seeds []string
			for i := range 3 * k.hosts {
				seeds = append(seeds, fmt.Sprintf("https://h%d.example/%d", i%k.hosts, i))
			}
			web := answers{}
			for _, url := range seeds {
				web[url] = func(*actor.Outcome) {}
			}
			requests := w.serve(web)
			var s *Step
			serve := w.web
			w.web = func(r actor.Request) *actor.Outcome {
				under := w.counts["Fetch"] - len(*requests)
				if p, ok := s.Progress(); !ok || p.Active != under || p.Totals.Pages != s.Pages() || p.Totals.Known != p.Totals.Pending+p.Totals.Pages {
					t.Fatalf("%d requests under way, %d pages; shown are %+v", under, s.Pages(), p)
				}
				o := serve(r)
				if r.Robots { // so that the first page waits for its pace
					o.Page.Outcome, o.Page.Status, o.Body = blobschema.OutcomeOK, 200, fmt.Appendf(nil, "User-agent: *\nCrawl-delay: %g\n", k.delay.Seconds())
				}
				return o
			}
			c = w.begin(c, seeds...)
			s = stepOf(t, StepConfig{Crawl: c, Process: "p"}, nil)
			if _, ok := s.Progress(); ok || s.Pages() != 0 {
				t.Error("it shows figures before it has begun")
			}
			answered, paused, wants := 0, false, map[int]Demand{}
			_, err := w.run(prompted{s, func() Signal {
				if p, _ := s.Progress(); p.Active == 0 || len(*requests) > answered {
					answered = len(*requests)
					wants[answered] = max(wants[answered], s.Demand())
				}
				if k.pauses && !paused && s.Pages() > 40 {
					paused = true
					w.aside(func() { w.order(c.ID, OrderPause) })
					return ReadOrders{}
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if middle, last := wants[k.hosts+(len(seeds)+1)/2], wants[len(*requests)]; middle != k.middle || last != k.last {
				t.Errorf("its demand is %d, and in the end %d: %v", middle, last, wants)
			}
			if p, ok := s.Progress(); ok && p.Active > 0 || s.Pages() != w.head(c.ID, 0).Totals.Pages {
				t.Errorf("in the end it shows %+v", p)
			}
		})
	}
}

// TestFeeds checks that links for a starved partition are sent soon, for a hungry one later, and for others with the
// regular commits; and the later, the older the step is.
func TestFeeds(t *testing.T) {
	mailed := map[Demand][]time.Duration{}
	for _, a := range []Demand{NoDemand, LowDemand, HighDemand} {
		c, w := newCrawl(3), newWorld(t)
		here, there := ofPartition(t, c, 0), ofPartition(t, c, 1)
		w.web = site(t, here, pages, func(i int) []string { return append(all(here), all(there)[i]) })
		c = w.begin(c, all(here)[0])
		began := w.Mono
		w.fault = func(e actor.Effect) (before, after error) {
			if s, ok := e.(actor.Send); ok && s.Queue == naming.MailboxQueue(1) {
				mailed[a] = append(mailed[a], w.Mono-began)
			}
			return nil, nil
		}
		s := stepOf(t, StepConfig{Crawl: c, Process: "p"}, nil)
		if _, err := w.run(prompted{s, func() Signal { return Demands{[]Demand{1: a}} }}); err != nil {
			t.Fatal(err)
		}
	}
	starved, hungry, fed := mailed[HighDemand], mailed[LowDemand], mailed[NoDemand]
	if len(fed) != 2 || len(hungry) <= len(fed) || len(starved) <= len(hungry) || len(starved) > pages*3/4 {
		t.Errorf("mail was sent %d, %d and %d times", len(fed), len(hungry), len(starved))
	}
	if first := fetchTime + 2*time.Second; starved[0] > first || hungry[0] > first || fed[0] < 20*time.Second {
		t.Errorf("first after %v, %v and %v", starved[0], hungry[0], fed[0])
	}
	for i := 2; i < len(hungry)-1; i++ {
		if before, gap := hungry[i-1], hungry[i]-hungry[i-1]; gap < before/3 || gap > before {
			t.Errorf("to one with little to do %v after %v", gap, before)
		}
	}
	if n := len(starved); starved[n-2]-starved[n-3] < 3*time.Second {
		t.Errorf("still sent every %v", starved[n-2]-starved[n-3])
	}
}

// TestPause checks that a pause stops new requests at once if the step gets a signal, otherwise from its next commit on.
// Requests under way are committed.
func TestPause(t *testing.T) {
	for _, o := range []Order{OrderPause, OrderStop} {
		for _, told := range []bool{true, false} {
			c, w := newCrawl(1), newWorld(t)
			c = w.begin(c, all("www.example")...)
			requests := w.serve(nil)
			s, ordered := stepOf(t, StepConfig{Crawl: c, Process: "p", CommitEvery: 10 * time.Second}, nil), false
			if _, err := w.run(prompted{s, func() Signal {
				if !ordered && len(*requests) == 5 {
					ordered = true
					w.aside(func() { w.order(c.ID, o) })
					if told {
						return ReadOrders{}
					}
				}
				return nil
			}}); err != nil {
				t.Fatal(err)
			}
			n, h := len(*requests), w.head(c.ID, 0)
			if told && n > 6 || !told && (n < 10 || n > 13) {
				t.Errorf("%s, reported %v: %d requests", o, told, n)
			}
			if h.Owner != "" || h.Totals.Outcomes["client-error"] != int64(n-1) || h.Totals.Pending != int64(pages-n+1) {
				t.Errorf("%s, reported %v: after %d requests the head is %+v", o, told, n, h)
			}
			w.aside(func() { w.order(c.ID, OrderResume) })
			w.step(StepConfig{Crawl: c, Process: "p"}, s.Warm())
			checkPages(t, w, c.ID, 0, all("www.example"))
		}
	}
}

// TestStopAborts checks that a stopped step aborts its requests, and that the next step makes them.
func TestStopAborts(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	c = w.begin(c, "https://a.example/", "https://b.example/", "https://c.example/")
	w.serve(nil)
	s, stopped := stepOf(t, StepConfig{Crawl: c, Process: "p"}, nil), 0
	counts, err := w.run(prompted{s, func() Signal {
		if p, ok := s.Progress(); ok && p.Active == 3 && stopped < 2 { // a Stop comes twice
			stopped++
			return Stop{}
		}
		return nil
	}})
	if err != nil || counts["CancelFetches"] != 1 || counts["Fetch"] != 3 {
		t.Errorf("%v, %v", err, counts)
	}
}

// TestWithinTheLease checks that no request lasts past the lease's end less the margin (I9). The lease is renewed long
// before that, and extends the requests under way. While the renewal fails, no request begins near the end.
func TestWithinTheLease(t *testing.T) {
	const lease, margin = 9 * time.Second, 2 * time.Second
	for _, k := range []struct {
		name  string
		takes time.Duration // duration of a request
		from  time.Duration // time from which on the head cannot be written
		fails time.Duration // duration of that failure
		err   error
	}{
		{"nothing fails", fetchTime, 0, 0, nil},
		{"requests outlast leases", 3 * lease, 0, 0, nil},
		{"it fails for a while", fetchTime, 10 * time.Second, 6 * time.Second, nil},
		{"it fails for good", fetchTime, 10 * time.Second, time.Hour, errLost},
	} {
		t.Run(k.name, func(t *testing.T) {
			c, w := newCrawl(1), newWorld(t)
			w.serve(nil)
			w.slow = func(actor.Request) time.Duration { return k.takes }
			c = w.begin(c, all("www.example")...)
			began, end, until, writes := w.Mono, time.Time{}, time.Time{}, 0
			w.fault = func(e actor.Effect) (before, after error) {
				switch e := e.(type) {
				case actor.WriteRecord:
					if since := w.Mono - began; since >= k.from && since < k.from+k.fails {
						return errLost, nil
					}
					h, err := actor.Decode[blobschema.Head](actor.Record{Value: e.Value, Found: true}, "head")
					if err != nil {
						t.Fatal(err)
					}
					writes++
					end = h.LeaseUntil
				case actor.ExtendFetches:
					if until = e.Deadline; until.After(end.Add(-margin)) {
						t.Errorf("extended until %v, the lease ends at %v", until, end)
					}
				case actor.Fetch:
					requests, d := virtual.Epoch.Add(w.Mono-k.takes), e.Request.Deadline
					if d.After(end.Add(-margin)) || !d.After(requests) {
						t.Errorf("asked at %v until %v, the lease ends at %v", requests, d, end)
					}
					if now := virtual.Epoch.Add(w.Mono); k.from == 0 && now.After(d) && now.After(until) {
						t.Errorf("asked at %v until %v, extended until %v, answered at %v", requests, d, until, now)
					}
				}
				return nil, nil
			}
			_, err := w.run(stepOf(t, StepConfig{Crawl: c, Process: "p", Lease: lease, Margin: margin, CommitEvery: time.Hour}, nil))
			took := w.Mono - began
			if !errors.Is(err, k.err) {
				t.Fatalf("after %v: %v", took, err)
			}
			if k.err != nil {
				if took > k.from+lease+5*time.Second {
					t.Errorf("it gave up after %v", took)
				}
				return
			}
			checkPages(t, w, c.ID, 0, all("www.example"))
			if each := took / time.Duration(writes); each < 2*time.Second || each > lease/2 {
				t.Errorf("the lease was renewed every %v", each)
			}
		})
	}
}

// TestClockIsSet checks that hosts are requested at their pace, whatever the wall clock is set to. The step continues, and
// the lease ends by whichever clock is first.
func TestClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour, -1500 * time.Millisecond, 1500 * time.Millisecond} {
		c, w := newCrawl(1), newWorld(t)
		requests := w.serve(nil)
		c = w.begin(c, all("www.example")[:20]...)
		serve, began, last := w.web, w.Mono, time.Duration(-1)
		w.web = func(r actor.Request) *actor.Outcome {
			if last >= 0 && !r.Robots && len(*requests) > 1 && w.Mono-last < c.Settings.Delay {
				t.Errorf("by %v: %s is asked after %v", by, r.URL, w.Mono-last)
			}
			last = w.Mono
			return serve(r)
		}
		s := stepOf(t, StepConfig{Crawl: c, Process: "p"}, nil)
		if _, err := w.run(&skewed{Step: s, by: func() time.Duration {
			if len(*requests) > 7 {
				return by
			}
			return 0
		}}); err != nil {
			t.Fatal(err)
		}
		if took := w.Mono - began; len(*requests) != 21 || took > 30*time.Second {
			t.Errorf("by %v: %d requests in %v", by, len(*requests), took)
		}
	}
}

// skewed is a step on a machine whose wall clock is set.
type skewed struct {
	*Step
	by     func() time.Duration
	before time.Duration // start of the requests under way
}

func (s *skewed) Handle(now actor.Now, r actor.Reply) []actor.Issue {
	by := s.by()
	now.Wall = now.Wall.Add(by)
	if o, ok := r.Value.(*actor.Outcome); ok {
		o.Started, o.Ended = o.Started.Add(s.before), o.Ended.Add(by)
	}
	s.before = by
	return s.Step.Handle(now, r)
}

// TestFetchFails checks that a request that the executor could not make is repeated at the host's pace.
func TestFetchFails(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	c = w.begin(c, all("www.example")[:3]...)
	requests := w.serve(nil)
	var times []time.Duration
	w.fault = func(e actor.Effect) (before, after error) {
		if f, ok := e.(actor.Fetch); ok && !f.Request.Robots {
			if times = append(times, w.Mono); len(times) == 2 || len(times) == 3 {
				return errLost, nil
			}
		}
		return nil, nil
	}
	w.step(StepConfig{Crawl: c, Process: "p"}, nil)
	checkPages(t, w, c.ID, 0, all("www.example")[:3])
	for i := 1; i < len(times); i++ {
		if gap := times[i] - times[i-1]; gap < c.Settings.Delay {
			t.Errorf("request %d after %v", i, gap)
		}
	}
	if len(*requests) != 1+3 || len(times) != 5 || w.head(c.ID, 0).Totals.Retries != 0 {
		t.Errorf("%d requests, %d answers", len(times), len(*requests))
	}
}

// TestCommits checks that a commit comes after a number of pages or a time, whichever is first, and that nothing new means
// no commit.
func TestCommits(t *testing.T) {
	for _, k := range []struct {
		name  string
		cfg   StepConfig
		sizes []int // pages of each commit, robots.txt included
	}{
		{"by pages", StepConfig{CommitPages: 20, CommitEvery: time.Hour}, []int{20, 20, 11}},
		{"by time", StepConfig{CommitPages: 100, CommitEvery: 20 * time.Second}, []int{21, 20, 10}},
		{"both", StepConfig{CommitPages: 15, CommitEvery: 20 * time.Second}, []int{15, 15, 15, 6}},
	} {
		c, w := newCrawl(1), newWorld(t)
		c = w.begin(c, all("www.example")...)
		w.serve(nil)
		k.cfg.Crawl, k.cfg.Process = c, "p"
		w.step(k.cfg, nil)
		var sizes []int
		for _, commit := range w.commits(c.ID, 0) {
			list, err := commit.Pages()
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, len(list))
		}
		if d := cmp.Diff(k.sizes, sizes); d != "" {
			t.Errorf("%s: pages of commits (-want +got):\n%s", k.name, d)
		}
	}
}

// TestObjectsFail checks that an object that cannot be put is retried for a while, and that its dependants wait. If it
// always fails the step ends, and nothing of it is visible.
func TestObjectsFail(t *testing.T) {
	for _, kind := range []string{"/warc/", "/p00000/c"} {
		for _, fails := range []int{3, 1000} {
			c, w := newCrawl(1), newWorld(t)
			c = w.begin(c, all("www.example")[:5]...)
			w.serve(nil)
			tries, began := 0, time.Duration(0)
			w.fault = func(e actor.Effect) (before, after error) {
				if put, ok := e.(actor.PutObject); ok && strings.Contains(put.Name, kind) {
					if tries++; tries == 1 {
						began = w.Mono
					}
					if tries <= fails {
						return errLost, nil
					}
				}
				return nil, nil
			}
			_, err := w.run(stepOf(t, StepConfig{Crawl: c, Process: "p", CommitEvery: 3 * time.Second}, nil))
			took, h := w.Mono-began, w.head(c.ID, 0)
			if fails == 3 {
				checkPages(t, w, c.ID, 0, all("www.example")[:5])
				if err != nil || took < 3*time.Second {
					t.Errorf("%s: %v after %v", kind, err, took)
				}
				continue
			}
			if !errors.Is(err, errLost) || took < 5*time.Second || took > 30*time.Second || h.Commit != "" {
				t.Errorf("%s: %v after %v, %d tries; %+v", kind, err, took, tries, h)
			}
			if tries > maxTries {
				t.Errorf("%s: %d tries", kind, tries)
			}
		}
	}
}

// TestHeadInDoubt checks that a step recognises each head that was written despite an error. If the head cannot be read
// after that, the step ends.
func TestHeadInDoubt(t *testing.T) {
	for _, with := range []error{errLost, actor.ErrConflict} {
		for at := 1; at <= 4; at++ { // the lease, two commits, the end of the lease
			for _, read := range []bool{true, false} {
				c, w := newCrawl(1), newWorld(t)
				c = w.begin(c, all("www.example")[:5]...)
				w.serve(nil)
				key, writes, doubt := naming.HeadKey(c.ID, 0), 0, false
				w.fault = func(e actor.Effect) (before, after error) {
					switch e := e.(type) {
					case actor.WriteRecord:
						if e.Key == key && !doubt {
							if writes++; writes == at {
								doubt = true
								return nil, with
							}
						}
					case actor.ReadRecords:
						if doubt && !read && slices.Contains(e.Keys, key) {
							return errLost, nil
						}
					}
					return nil, nil
				}
				_, err := w.run(stepOf(t, StepConfig{Crawl: c, Process: "p", CommitEvery: 3 * time.Second}, nil))
				if !read {
					if !errors.Is(err, errLost) {
						t.Errorf("write %d: %v", at, err)
					}
					continue
				}
				if h := w.head(c.ID, 0); err != nil || h.Owner != "" || h.Seq != 2 {
					t.Errorf("write %d, %v: %v, %+v", at, with, err, h)
				}
				checkPages(t, w, c.ID, 0, all("www.example")[:5])
			}
		}
	}
}

// TestStopsThoughNothingWorks checks that a stopped step gives up soon if its head cannot be written.
func TestStopsThoughNothingWorks(t *testing.T) {
	c, w := newCrawl(1), newWorld(t)
	c = w.begin(c, all("www.example")...)
	w.serve(nil)
	began := w.Mono
	w.fault = func(e actor.Effect) (before, after error) {
		if _, ok := e.(actor.WriteRecord); ok && w.Mono-began > 5*time.Second {
			return errLost, nil
		}
		return nil, nil
	}
	_, err := w.run(stepOf(t, StepConfig{Crawl: c, Process: "p", Deadline: 10 * time.Second}, nil))
	if took := w.Mono - began; !errors.Is(err, errLost) || took < 10*time.Second || took > 15*time.Second {
		t.Errorf("%v after %v", err, took)
	}
}

// TestIdleCommits checks that an idle step commits new mail at once if all partitions starve, and otherwise the later, the
// older it is. In a folder it waits longer to record mail that brought nothing.
func TestIdleCommits(t *testing.T) {
	var commits [3][]time.Duration
	for i, others := range []Demand{HighDemand, NoDemand, NoDemand} {
		c, w := newCrawl(2), newWorld(t)
		w.serve(nil)
		c = w.begin(c, "https://"+ofPartition(t, c, 0)+"/")
		number, began := uint64(0), w.Mono
		w.fault = func(e actor.Effect) (before, after error) {
			if _, ok := e.(actor.PutObject); ok {
				commits[i] = append(commits[i], w.Mono-began)
			}
			return nil, nil
		}
		s := stepOf(t, StepConfig{Crawl: c, Process: "p", Exclusive: i == 2}, nil)
		if _, err := w.run(prompted{s, func() Signal {
			if w.Mono-began < 5*time.Second && len(w.queues[naming.MailboxQueue(0)]) == 0 {
				number++
				w.post(blobschema.Mail{Crawl: c.ID, From: 1, To: 0, Number: number, Epoch: 1})
			}
			return Demands{[]Demand{1: others}}
		}}); err != nil {
			t.Fatal(err)
		}
		if h := w.head(c.ID, 0); h.Applied != number+1 || number < 100 {
			t.Errorf("%d mails of %d are applied", h.Applied, number+1)
		}
	}
	starved, fed, folder := commits[0], commits[1], commits[2]
	if len(starved) < 40 || len(fed) > len(starved)/2 || fed[len(fed)-2]-fed[len(fed)-3] < 300*time.Millisecond {
		t.Errorf("%d commits of partitions without work, otherwise at %v", len(starved), fed)
	}
	if len(folder) > len(fed)*3/4 {
		t.Errorf("in a folder, commits at %v", folder)
	}
}
