package crawl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// prompted is a step that gets a signal now and then.
type prompted struct {
	*Step
	prompt func() Signal
}

func (p prompted) Handle(now actor.Now, r actor.Reply) []actor.Issue {
	issues := p.Step.Handle(now, r)
	if sig := p.prompt(); sig != nil {
		issues = append(issues, p.Signal(now, sig)...)
	}
	return issues
}

// mailed returns the URLs in a partition's mailbox and how often each is there. A repeated number counts once.
func (w *world) mailed(p partition.ID) map[string]int {
	w.t.Helper()
	out, known := map[string]int{}, map[string]bool{}
	for _, m := range w.queues[naming.MailboxQueue(p)] {
		mail, err := blobschema.DecodeMail(m.Body)
		if err != nil {
			w.t.Fatal(err)
		}
		id := fmt.Sprint(mail.From, "/", mail.Number)
		if known[id] {
			continue
		}
		known[id] = true
		for _, q := range mail.URLs {
			out[q.URL]++
		}
	}
	return out
}

// TestHeldThroughCrashes checks that buffered links are in commits: after any crash the next step mails each of them once,
// with those that it finds itself. Links for a partition with nothing to do do not wait.
func TestHeldThroughCrashes(t *testing.T) {
	c, w := newCrawl(3), newWorld(t)
	here, first, second := ofPartition(t, c, 0), ofPartition(t, c, 1), ofPartition(t, c, 2)
	c = w.begin(c, all(here)[0])
	w.queues = map[string][]actor.Message{naming.MailboxQueue(0): w.queues[naming.MailboxQueue(0)]}
	dieAt := ""
	w.web = func(r actor.Request) *actor.Outcome {
		if url := r.URL.String(); url == dieAt {
			panic(dies{})
		}
		return site(t, here, pages, func(i int) []string { return append(all(here), all(first)[i], all(second)[i]) })(r)
	}
	for round, at := range []int{13, 27, 28, pages + 1} {
		dieAt = fmt.Sprintf("https://%s/%d", here, at)
		s := stepOf(t, StepConfig{Crawl: c, Process: "p", CommitEvery: 10 * time.Second, CommitPages: 5, MailEvery: time.Hour}, nil)
		ended := w.live(prompted{s, func() Signal { return Demands{[]Demand{2: HighDemand}} }})
		if ended != (at > pages) {
			t.Fatalf("round %d: ended well %v", round, ended)
		}
		man := w.manifest(c.ID, 0)
		settled, held := len(w.visible(c.ID, 0)), 0
		for _, commit := range w.commits(c.ID, 0) {
			links, err := commit.Buffered()
			if err != nil {
				t.Fatal(err)
			}
			held += len(links[1])
		}
		if held < settled-2 || !ended && man.Totals.Buffered < int64(settled)-2 || ended && (man.Totals.Buffered > 0 || len(man.BufferedFrom) > 0) {
			t.Errorf("round %d: %d pages, %d links for partition 1 in commits; held %d from %v", round, settled, held, man.Totals.Buffered, man.BufferedFrom)
		}
		if n := len(w.mailed(1)); ended != (n > 0) {
			t.Errorf("round %d: %d links are mailed", round, n)
		}
		if n := len(w.mailed(2)); n < settled-3 {
			t.Errorf("round %d: %d links of %d pages are mailed to whom has nothing to do", round, n, settled)
		}
	}
	for p, host := range map[partition.ID]string{1: first, 2: second} {
		want := map[string]int{}
		for _, url := range all(host) {
			want[url] = 1
		}
		if d := cmp.Diff(want, w.mailed(p)); d != "" {
			t.Errorf("mail for partition %d (-want +got):\n%s", p, d)
		}
	}
}

// TestQueueFails checks that the next step sends mail that could not be sent, or seemed so, with the same numbers and the
// same bytes, and then no more.
func TestQueueFails(t *testing.T) {
	for _, sent := range []bool{false, true} {
		t.Run(fmt.Sprintf("sent all the same %v", sent), func(t *testing.T) {
			c, w := newCrawl(3), newWorld(t)
			here := ofPartition(t, c, 0)
			others := map[partition.ID]string{1: ofPartition(t, c, 1), 2: ofPartition(t, c, 2)}
			long := "?" + strings.Repeat("x", 1500)
			w.web = site(t, here, pages, func(i int) (links []string) {
				for p, host := range others {
					links = append(links, fmt.Sprintf("https://%s/%d", host, i))
					for n := range 400 * int(p-1) * (i / 13 % 2) * (1 - min(1, i%13)) { // to 2, sometimes so many that they make many mails
						links = append(links, fmt.Sprintf("https://%s/%d/%d%s", host, i, n, long))
					}
				}
				return links
			})
			c = w.begin(c, all(here)...)
			w.queues = map[string][]actor.Message{naming.MailboxQueue(0): w.queues[naming.MailboxQueue(0)]}
			fails, bodies := true, map[partition.ID]map[uint64]string{1: {}, 2: {}}
			w.fault = func(e actor.Effect) (before, after error) {
				s, ok := e.(actor.Send)
				if !ok {
					return nil, nil
				}
				for _, b := range s.Bodies {
					m, err := blobschema.DecodeMail(b)
					if err != nil {
						t.Fatal(err)
					}
					if was, ok := bodies[m.To][m.Number]; ok && was != string(b) || s.Queue != naming.MailboxQueue(m.To) || m.From != 0 || len(s.Bodies) > 10 {
						t.Errorf("mail %d from %d to %d, one of %d in queue %s, is another", m.Number, m.From, m.To, len(s.Bodies), s.Queue)
					}
					bodies[m.To][m.Number] = string(b)
				}
				if fails && sent {
					return nil, errLost
				}
				if fails {
					return errLost, nil
				}
				return nil, nil
			}
			cfg := StepConfig{Crawl: c, Process: "p", CommitPages: 10, MailEvery: 15 * time.Second}
			w.step(cfg, nil)
			man, h := w.manifest(c.ID, 0), w.head(c.ID, 0)
			if len(man.Unsent) < 2 || h.Published != man.Unsent[0]-1 || h.Published == 0 {
				t.Fatalf("commit %d: those of %v are not sent, all up to %d are", h.Seq, man.Unsent, h.Published)
			}
			for p := range others {
				if n := h.Sent[p]; n == 0 || n < uint64(len(bodies[p])) {
					t.Errorf("%d mails were tried to %d, %d as the head says", len(bodies[p]), p, n)
				}
			}
			w.queues, fails = map[string][]actor.Message{}, false
			_, counts := w.step(cfg, nil)
			if h = w.head(c.ID, 0); h.Published != h.Seq || counts["PutObject"] > 0 {
				t.Errorf("commit %d, all up to %d are sent: %v", h.Seq, h.Published, counts)
			}
			for p, host := range others {
				got := w.mailed(p)
				for url, n := range got {
					if n != 1 || !strings.Contains(url, host) {
						t.Fatalf("%d times %s for %d", n, url, p)
					}
				}
				if uint64(len(w.queues[naming.MailboxQueue(p)])) != h.Sent[p] {
					t.Errorf("%d mails to %d, %d as the head says", len(w.queues[naming.MailboxQueue(p)]), p, h.Sent[p])
				}
			}
			if _, counts = w.step(cfg, nil); counts["Send"] > 0 {
				t.Errorf("a third step: %v", counts)
			}
		})
	}
}

// TestSeedsThatComeLate checks that after a later seed brings a host into scope, the earlier links to that host are
// followed, whatever commit they are in and whichever partition owns it, unless other bounds exclude them.
func TestSeedsThatComeLate(t *testing.T) {
	for _, when := range []string{"in the batch", "in a commit", "to the next step", "to a step of another process"} {
		for there := range partition.ID(2) {
			t.Run(fmt.Sprintf("%s/%d", when, there), func(t *testing.T) {
				c, w := newCrawl(2), newWorld(t)
				c.Settings.Scope, c.Settings.Exclude = blobschema.ScopeHost, []string{`\.pdf$`}
				here := ofPartition(t, c, 0)
				other := "late." + ofPartition(t, c, there)
				for h := hashOf(t, c); h.Slot(other)%2 != h.Slot(ofPartition(t, c, there))%2; {
					other = "x" + other
				}
				out := "https://" + other + "/found"
				requests := w.serve(answers{
					"https://" + here + "/0": linking(t, actor.LinkAnchor, "https://"+here+"/1", out, "https://"+other+"/x.pdf", "https://third.example/"),
				})
				seeds := []string{"https://" + here + "/0"}
				for i := range 8 {
					seeds = append(seeds, fmt.Sprintf("https://%s/more%d", here, i))
				}
				c = w.begin(c, seeds...)
				give := func() {
					if _, err := w.run(NewBegin(blobschema.Crawl{}, Seeds(urls(t, "https://"+other+"/seed")), nil)); err != nil {
						t.Fatal(err)
					}
				}
				cfg := StepConfig{Crawl: c, Process: "p", CommitEvery: 4 * time.Second}
				given := false
				serve := w.web
				w.web = func(r actor.Request) *actor.Outcome {
					if in := w.head(c.ID, 0).Commit != ""; !given && (when == "in a commit" && in || when == "in the batch" && len(*requests) == 3) {
						given = true
						w.aside(give)
					}
					return serve(r)
				}
				s, _ := w.step(cfg, nil)
				if !given {
					give()
				}
				switch {
				case when == "to the next step":
					w.step(cfg, s.Warm())
				case when == "to a step of another process":
					w.record(naming.CrawlKey(c.ID), &cfg.Crawl)
					w.step(cfg, nil)
				}
				var desired blobschema.DesiredState
				w.record(naming.DesiredKey(c.ID), &desired)
				if h := w.head(c.ID, 0); h.Desired != desired.Version || desired.Version == 0 {
					t.Errorf("the desired state has version %d, %d is obeyed", desired.Version, h.Desired)
				}
				got := depths(*requests)
				if there == 1 {
					got = map[string]int{}
					for url := range w.mailed(1) {
						got[url] = 1
					}
				}
				if _, ok := got[out]; !ok || slices.ContainsFunc(slices.Collect(maps.Keys(got)), func(url string) bool { return strings.Contains(url, "third") || strings.Contains(url, ".pdf") }) {
					t.Errorf("known to its owner: %v", got)
				}
			})
		}
	}
}

// TestManyParts checks that a partition that is much larger than memory, in many runs that are merged meanwhile, requests
// every URL once, in whatever processes its steps run.
func TestManyParts(t *testing.T) {
	const hosts, each = 6, 10
	c, w := newCrawl(1), newWorld(t)
	c.Slots = 4
	c.Settings.Delay = 100 * time.Millisecond
	var want []string
	links := func(i int) (out []string) {
		for h := range hosts {
			for n := range 3 {
				out = append(out, fmt.Sprintf("https://h%d.example/%d", h, (3*i+n)%each))
			}
		}
		return out
	}
	hits := map[string]int{}
	w.web = func(r actor.Request) *actor.Outcome {
		if hits[r.URL.String()]++; !r.Robots && hits[r.URL.String()] > 1 {
			t.Errorf("%s is requested again", r.URL)
		}
		return site(t, string(r.URL.Host()), each, links)(r)
	}
	for h := range hosts {
		for n := range each {
			want = append(want, fmt.Sprintf("https://h%d.example/%d", h, n))
		}
	}
	c = w.begin(c, want[0], want[1])
	var s *Step
	gone, merges := 0, 0
	for round := 0; ; round++ {
		if round > 200 {
			t.Fatalf("it has no end: %+v", w.head(c.ID, 0))
		}
		cfg := StepConfig{
			Crawl: c, Process: "p", MaxResident: 16, MaxPart: 5, MergeFanIn: 2, CommitEvery: 300 * time.Millisecond, CommitMin: time.Millisecond,
			Deadline: 1500 * time.Millisecond, Connections: 4,
		}
		var warm *Warm
		if round%3 == 1 {
			warm = s.Warm()
		}
		lost := map[string]bool{}
		w.fault = func(e actor.Effect) (before, after error) { // an object that was just swept
			if g, ok := e.(actor.GetObject); ok && strings.Contains(g.Name, "/r") && !lost[g.Name] && len(lost) == 0 {
				lost[g.Name] = true
				gone++
				return actor.ErrNotFound, nil
			}
			if put, ok := e.(actor.PutObject); ok && strings.Contains(put.Name, "/r") {
				merges++
				lost["merged"] = true // a merge may have no object that is gone
			}
			return nil, nil
		}
		s, _ = w.step(cfg, warm)
		if h := w.head(c.ID, 0); h.Totals.Pending+h.Totals.Unexamined == 0 && h.Applied > 0 {
			break
		}
	}
	checkPages(t, w, c.ID, 0, want)
	man := w.manifest(c.ID, 0)
	parts := 0
	for _, sum := range man.Slots {
		if sum.Part.Depth > 0 {
			parts++
		}
	}
	if merges < 5 || parts < 4 || len(man.Runs) > 16 {
		t.Errorf("%d merges, %d runs, %d parts; %d times an object was gone", merges, len(man.Runs), parts, gone)
	}
}

// TestRunIsGone checks that a step ends if a run is missing: as a lost lease if its lease is over, because another step may
// have continued; otherwise with an error.
func TestRunIsGone(t *testing.T) {
	for _, late := range []bool{false, true} {
		c, w := newCrawl(1), newWorld(t)
		w.web = site(t, "www.example", pages, func(int) []string { return nil })
		c = w.begin(c, all("www.example")...)
		w.step(StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second}, nil)
		reads := 0
		w.fault = func(e actor.Effect) (before, after error) {
			if g, ok := e.(actor.GetObject); ok && g.Length >= 0 {
				if reads++; late && reads == 4 {
					w.Mono += time.Hour
				}
				return actor.ErrNotFound, nil
			}
			return nil, nil
		}
		_, err := w.run(stepOf(t, StepConfig{Crawl: c, Process: "p"}, nil))
		if want := map[bool]error{false: actor.ErrNotFound, true: ErrLeaseLost}[late]; !errors.Is(err, want) || reads != 4 {
			t.Errorf("late %v: %v after %d reads", late, err, reads)
		}
	}
}

// TestScopeSpreads checks that the redirect of a seed in one partition brings its host into the scope of the others. They
// follow the links to it that they found before and later, in whatever process.
func TestScopeSpreads(t *testing.T) {
	for _, cold := range []bool{true, false} {
		c, w := newCrawl(2), newWorld(t)
		c.Settings.Scope = blobschema.ScopeHost
		first, second, host := "https://"+ofPartition(t, c, 0), "https://"+ofPartition(t, c, 1), "https://to.example"
		requests := w.serve(answers{
			first + "/go":     linking(t, actor.LinkRedirect, host+"/"),
			second + "/":      linking(t, actor.LinkAnchor, host+"/before", "https://never.example/"),
			second + "/later": linking(t, actor.LinkAnchor, host+"/after"),
		})
		c = w.begin(c, first+"/go", second+"/")
		cfg := []StepConfig{{Crawl: c, Process: "p"}, {Crawl: c, Process: "p", Partition: 1}}
		b, _ := w.step(cfg[1], nil)
		w.step(cfg[0], nil)
		w.tick(c.ID)
		warm := func() *Warm {
			if cold {
				return nil
			}
			return b.Warm()
		}
		b, _ = w.step(cfg[1], warm())
		w.request(c.ID, blobschema.Request{ID: "r", Recrawl: []string{second + "/later"}})
		b, _ = w.step(cfg[1], warm())
		w.crawlOn(cfg[0])
		want := map[string]int{first + "/go": 0, second + "/": 0, host + "/": 0, host + "/before": 1, second + "/later": 0, host + "/after": 1}
		if d := cmp.Diff(want, depths(*requests)); d != "" {
			t.Errorf("cold %v: requested, by depth (-want +got):\n%s", cold, d)
		}
		for p := range partition.ID(2) {
			if man := w.manifest(c.ID, p); !slices.Contains(man.Scope, "to.example") {
				t.Errorf("cold %v: partition %d obeys the scope %v", cold, p, man.Scope)
			}
		}
	}
}
