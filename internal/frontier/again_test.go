package frontier

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// again requests a URL, as a user does.
func (r *rig) again(raw string, request uint64) Added {
	r.t.Helper()
	u := mustParse(r.t, raw)
	return r.f.Again(r.now, r.link(u, blobschema.Queued{Key: string(u.Host()), Rank: 77, Generation: 9, Flags: blobschema.FlagAgain}), request)
}

// done ends a task immediately with an answer.
func (r *rig) done(task schedule.Task, a answer) schedule.Verdict {
	r.t.Helper()
	v := r.f.Done(r.now, task, a.reply(task, r.now, 0))
	r.check()
	return v
}

// state returns the entries of a delta, one line per URL.
func (r *rig) state(seq uint64) (out []string) {
	r.t.Helper()
	run, _ := r.f.Delta(seq)
	for _, e := range run.Settled {
		out = append(out, fmt.Sprintf("%s %d at %d", e.State, e.Generation, e.Record.Seq))
	}
	for _, q := range run.Queued {
		out = append(out, fmt.Sprintf("pending %d, rank %d, depth %d, previous %d: %s", q.Generation, q.Rank, q.Depth, q.Previous.Seq, q.URL))
	}
	r.f.Committed()
	r.check()
	return out
}

func wantState(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

// begun returns a rig whose host has answered the request for robots.txt.
func begun(t *testing.T, cfg Config, urls ...string) *rig {
	t.Helper()
	r := newRig(t, cfg)
	r.add(2, urls...)
	r.done(r.mustNext("https://a.example/robots.txt"), answer{status: 404})
	return r
}

const urlX, urlY = "https://a.example/x", "https://a.example/y"

// TestAgain checks that requested URLs come first. A settled one is fetched again, and its task names the record of the
// previous answer.
func TestAgain(t *testing.T) {
	r := begun(t, Config{}, urlX, urlY)
	if got := r.again(urlY, 0); got != Lowered || r.f.Counts().Urgent != 1 {
		t.Errorf("a pending URL: %d, counts %+v", got, r.f.Counts())
	}
	if got := r.again(urlY, 0); got != Known {
		t.Errorf("the second request: %d", got)
	}
	task := r.mustNext(urlY)
	if task.Request.Generation != 0 || task.Previous() != (blobschema.RecordRef{}) {
		t.Errorf("the task is %+v, previous %v", task.Request, task.Previous())
	}
	r.done(task, answer{})
	wantState(t, "first commit", r.state(5), "fetched 0 at 5", "pending 0, rank 3, depth 2, previous 0: "+urlX)
	if got := r.again(urlY, 0); got != Fresh || r.f.Counts().Known != 2 {
		t.Errorf("a settled URL: %d, counts %+v", got, r.f.Counts())
	}
	if got := r.again("https://a.example/z", 0); got != Fresh || r.f.Counts().Known != 3 {
		t.Errorf("a new URL: %d, counts %+v", got, r.f.Counts())
	}
	r.check()
	task = r.mustNext(urlY)
	if task.Request.Generation != 1 || task.Previous() != (blobschema.RecordRef{Seq: 5}) {
		t.Errorf("the task is %+v, previous %v", task.Request, task.Previous())
	}
	r.done(task, answer{})
	r.done(r.mustNext("https://a.example/z"), answer{})
	r.done(r.mustNext(urlX), answer{})
	wantState(t, "second commit", r.state(6), "fetched 1 at 6", "fetched 0 at 6", "fetched 0 at 6")
}

// TestAgainWithinACommit requests a URL that was settled since the last delta. The next delta names the record of its
// answer.
func TestAgainWithinACommit(t *testing.T) {
	r := begun(t, Config{Partition: 3}, urlX)
	r.done(r.mustNext(urlX), answer{})
	if got := r.again(urlX, 0); got != Fresh {
		t.Errorf("requested again: %d", got)
	}
	wantState(t, "the commit", r.state(8), "fetched 0 at 8", "pending 1, rank 0, depth 0, previous 8: "+urlX)
	task := r.mustNext(urlX)
	if got := task.Previous(); got != (blobschema.RecordRef{Partition: 3, Seq: 8}) {
		t.Errorf("previous is %v", got)
	}
}

// TestAgainWhileAsked requests a URL whose fetch is under way. The fetch settles its own generation, and the next one is
// pending afterwards; a commit in between contains only the next one.
func TestAgainWhileAsked(t *testing.T) {
	for _, explicit := range []bool{false, true} {
		for _, commit := range []bool{false, true} {
			r := begun(t, Config{}, urlX)
			task := r.mustNext(urlX)
			ask := func() Added {
				if explicit {
					return r.queue(urlX, blobschema.Queued{Depth: 4, Generation: 1})
				}
				return r.again(urlX, 0)
			}
			if got := ask(); got != Lowered {
				t.Errorf("explicit %v: got %d", explicit, got)
			}
			if got := ask(); got != Known {
				t.Errorf("explicit %v: twice: got %d", explicit, got)
			}
			r.check()
			next := "pending 1, rank 0, depth 0, previous %d: " + urlX
			if explicit {
				next = "pending 1, rank 5, depth 4, previous %d: " + urlX
			}
			if commit {
				wantState(t, "the commit in between", r.state(1), fmt.Sprintf(next, 0))
			}
			o := answer{}.reply(task, r.now, 0)
			if v := r.f.Done(r.now, task, o); v != schedule.Final || o.Page.Generation != 0 {
				t.Errorf("explicit %v: verdict %d, generation %d", explicit, v, o.Page.Generation)
			}
			r.check()
			wantState(t, "the commit after", r.state(2), "fetched 0 at 2", fmt.Sprintf(next, 2))
			task = r.mustNext(urlX)
			if task.Request.Generation != 1 || task.Previous().Seq != 2 {
				t.Errorf("explicit %v: then %+v, previous %v", explicit, task.Request, task.Previous())
			}
			r.done(task, answer{})
			wantState(t, "the end", r.state(3), "fetched 1 at 3")
		}
	}
}

// TestAgainWhileFailing checks that the retry of a failed fetch serves a request that came meanwhile, unless a commit or
// another partition knows the next generation.
func TestAgainWhileFailing(t *testing.T) {
	for _, c := range []struct {
		name             string
		explicit, commit bool
		gen              uint32
		attempts         uint8
	}{{"Again only", false, false, 0, 1}, {"committed", false, true, 1, 0}, {"number from outside", true, false, 1, 0}} {
		r := begun(t, Config{}, urlX, urlY)
		task := r.mustNext(urlX)
		r.again(urlX, 0)
		if c.explicit {
			r.queue(urlX, blobschema.Queued{Generation: 1, Depth: 1})
		}
		if c.commit {
			r.state(1)
		}
		if v := r.done(task, answer{status: 500}); v != schedule.Again {
			t.Errorf("%s: verdict %d", c.name, v)
		}
		r.now = r.now.Add(time.Hour)
		r.done(r.mustNext(urlX), answer{outcome: blobschema.OutcomeAborted})
		task = r.mustNext(urlX)
		if task.Request.Generation != c.gen || task.Request.Attempt != c.attempts {
			t.Errorf("%s: then %+v", c.name, task.Request)
		}
		r.done(task, answer{})
		r.done(r.mustNext(urlY), answer{})
		r.mustIdle()
	}
}

// TestAgainRequests checks that a repeated request from outside counts once per URL for 15 days, even after its slot was
// stored. If there are too many requests, the oldest are forgotten.
func TestAgainRequests(t *testing.T) {
	p := newProcess(t, Config{})
	ask := func(p *process, path string, request uint64, want Added) {
		t.Helper()
		if got := p.again("https://a.example/"+path, request); got != want {
			t.Errorf("request %d for %s: got %d, want %d", request, path, got, want)
		}
		p.check()
	}
	ask(p, "1", 7, Fresh)
	ask(p, "2", 7, Fresh)
	ask(p, "1", 7, Known)
	p.run(nil)
	ask(p, "1", 7, Known)
	ask(p, "1", 8, Fresh)
	p.run(nil)
	q := p.stored()
	ask(q, "1", 8, Known)
	ask(q, "2", 7, Known)
	ask(q, "2", 0, Fresh)
	q.run(nil)
	ask(q, "2", 0, Fresh)
	q.run(nil)
	for i := range uint64(maxAsks) {
		ask(q, "3", 100+i, map[bool]Added{true: Fresh, false: Known}[i == 0])
	}
	if n := peek(q.f.schedule, "keys", "a.example", "asks").Len(); n != maxAsks {
		t.Errorf("%d requests are remembered", n)
	}
	ask(q, "1", 8, Fresh) // forgotten
	q.now = q.now.Add(askLifetime)
	ask(q, "3", 500, Known) // the URL is pending and urgent already
	if n := peek(q.f.schedule, "keys", "a.example", "asks").Len(); n != 1 {
		t.Errorf("%d requests are remembered 15 days later", n)
	}
}

// TestAgainNeedsItsSlot checks that Want loads a slot that is not due, if necessary beyond the memory bound, and that the
// slot stays in memory for Again.
func TestAgainNeedsItsSlot(t *testing.T) {
	p := newProcess(t, Config{MaxResident: 2})
	p.rig.add(0, urlX, urlY, "https://a.example/z")
	p.run(nil)
	p.restart(false)
	slot, fp := p.hash.Slot("a.example"), p.hash.Fingerprint(urlX)
	if p.f.Loaded(slot, fp) || p.again(urlX, 1) != Deferred || p.f.Dirty() {
		t.Fatal("the slot should not be loaded")
	}
	if got := p.f.Wanted(p.now, false); got != nil {
		t.Errorf("slots %v are wanted", got)
	}
	p.rig.add(0, "https://b.example/") // something to do
	p.f.Want(slot, fp)
	p.want()
	if len(p.loads) != 1 {
		t.Fatalf("loads %v", p.loads)
	}
	p.load(0)
	p.f.Committed() // unloads parts
	if !p.f.Loaded(slot, fp) || p.again(urlX, 1) != Fresh {
		t.Error("the slot was unloaded")
	}
	p.check()
	if q := newRig(t, Config{}); !q.f.Loaded(3, fp) {
		t.Error("a slot that holds nothing is not loaded")
	}
}

// TestUrgentFirst checks that requested URLs come before open connections and ranks, but not faster than the pace. With
// urgentOnly nothing else is fetched.
func TestUrgentFirst(t *testing.T) {
	r := newRig(t, Config{Delay: time.Second})
	r.add(0, "https://a.example/1", "https://a.example/2", "https://b.example/1", "https://c.example/1")
	if task, ok := r.f.Next(r.now, true); ok {
		t.Errorf("requested %s", task.Request.URL)
	}
	a := r.mustNext("https://a.example/robots.txt")
	r.done(a, answer{status: 404, keep: true})
	r.again("https://c.example/9", 0)
	r.check()
	next := func(want string) {
		t.Helper()
		task, ok := r.f.Next(r.now, true)
		if !ok || task.Request.URL.String() != want {
			t.Fatalf("requested %v, want %s", task.Request.URL, want)
		}
		r.done(task, answer{keep: true})
	}
	next("https://c.example/robots.txt") // before a.example, which is connected
	next("https://c.example/9")
	if _, ok := r.f.Next(r.now, true); ok {
		t.Error("urgentOnly returned a URL that is not urgent")
	}
	r.again("https://c.example/8", 0)
	r.done(r.mustNext("https://a.example/1"), answer{keep: true})
	r.again("https://a.example/2", 0)
	if task, ok := r.f.Next(r.now, true); ok { // not yet
		t.Errorf("requested %s", task.Request.URL)
	}
	r.now = r.now.Add(time.Second)
	next("https://c.example/8")
	next("https://a.example/2")
	if n := r.f.Counts(); n.Urgent != 0 || n.Pending != 2 {
		t.Errorf("counts are %+v", n)
	}
}

// TestUrgentRefused checks that with urgentOnly nothing is fetched from a politeness key whose urgent URL robots.txt refuses.
func TestUrgentRefused(t *testing.T) {
	r := newRig(t, Config{})
	r.add(0, urlX)
	r.again("https://a.example/no", 0)
	task, _ := r.f.Next(r.now, true)
	r.done(task, answer{body: "User-agent: *\nDisallow: /no\n"})
	if task, ok := r.f.Next(r.now, true); ok {
		t.Errorf("requested %s", task.Request.URL)
	}
	r.check()
	if got := r.refused(); len(got) != 1 || !strings.HasPrefix(got[0], "https://a.example/no robots:") {
		t.Errorf("refused %v", got)
	}
	r.mustNext(urlX)
}

// TestRefusedAgain checks that a refusal has a generation and names the previous record.
func TestRefusedAgain(t *testing.T) {
	r := begun(t, Config{}, urlX)
	r.done(r.mustNext(urlX), answer{})
	r.state(4)
	r.now = r.now.Add(25 * time.Hour)
	r.again(urlX, 0)
	r.done(r.mustNext("https://a.example/robots.txt"), answer{body: "User-agent: *\nDisallow: /\n"})
	r.mustIdle()
	got := r.f.Refusals()
	if len(got) != 1 || got[0].Generation != 1 || got[0].Previous.Seq != 4 {
		t.Errorf("refused %+v", got)
	}
	wantState(t, "state", r.state(5), "refused 1 at 5")
}

// TestAgainAfterNoRobots checks that a robots.txt that could not be fetched refuses a URL for a day. If somebody requests
// the URL, robots.txt is fetched again first, once.
func TestAgainAfterNoRobots(t *testing.T) {
	r := newRig(t, Config{})
	const robots = "https://a.example/robots.txt"
	gone := answer{outcome: blobschema.OutcomeDNS, final: true}
	r.add(0, urlX)
	r.done(r.mustNext(robots), gone)
	r.refused()
	r.now = r.now.Add(time.Hour)
	r.add(0, urlY)
	r.mustIdle()
	r.refused()
	for _, request := range []uint64{1, 2} {
		r.again(urlX, request)
		r.again(urlY, request)
		r.done(r.mustNext(robots), gone)
		r.now = r.now.Add(time.Hour)
		r.mustIdle()
		want := []string{urlX + " dns: robots.txt: as the test wants", urlY + " dns: robots.txt: as the test wants"}
		wantState(t, "refused again", r.refused(), want...)
	}
	r.again(urlX, 3)
	r.done(r.mustNext(robots), answer{status: 404})
	r.done(r.mustNext(urlX), answer{})
	r.again(urlX, 4) // a robots.txt that was fetched stays valid
	r.mustNext(urlX)
}

// TestRest checks the counts of waiting politeness keys: all, those that failed or demanded a pause, and those without an
// answer.
func TestRest(t *testing.T) {
	r := newRig(t, Config{Delay: 10 * time.Second})
	for _, host := range []string{"a", "b", "c"} {
		u := "https://" + host + ".example/"
		r.add(0, u+"1", u+"2")
		r.done(r.mustNext(u+"robots.txt"), answer{status: 404})
		r.done(r.mustNext(u+"1"), map[string]answer{"a": {}, "b": {status: 429}, "c": {outcome: blobschema.OutcomeConnect}}[host])
	}
	r.mustIdle()
	want := schedule.Rest{Until: r.now.Add(10 * time.Second), Keys: 3, Failed: 1, Silent: 1}
	if got := r.f.Rest(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	r.now = r.now.Add(time.Hour)
	for range 3 {
		if _, ok := r.f.Next(r.now, false); !ok {
			t.Fatal("no request is possible")
		}
	}
	if got := r.f.Rest(); got != (schedule.Rest{}) {
		t.Errorf("at the end: %+v", got)
	}
}

// TestSeedTriedAgain checks that the retry of a seed has the rank of a seed, so that its page counts.
func TestSeedTriedAgain(t *testing.T) {
	r := begun(t, Config{}, urlX)
	r.done(r.mustNext(urlX), answer{outcome: blobschema.OutcomeCut, final: true})
	u := mustParse(t, urlX)
	q := blobschema.Queued{Key: string(u.Host()), Rank: 7, Flags: blobschema.FlagAgain | blobschema.FlagSeed}
	if got := r.f.Again(r.now, r.link(u, q), 1); got != Fresh {
		t.Errorf("got %d", got)
	}
	r.now = r.now.Add(time.Minute)
	task := r.mustNext(urlX)
	if task.Urgent() || task.Rank() != 7 || task.Request.Generation != 1 || task.Flags != blobschema.FlagSeed {
		t.Errorf("the task is %+v", task)
	}
}

// TestSeedOfAnEarlierGeneration checks that late mail of the previous generation can make a requested URL a seed, also
// while its request is under way and after a commit. Other late mail changes nothing.
func TestSeedOfAnEarlierGeneration(t *testing.T) {
	for _, underWay := range []bool{false, true} {
		r := begun(t, Config{}, urlX)
		r.done(r.mustNext(urlX), answer{})
		r.state(5)
		r.again(urlX, 0)
		var task schedule.Task
		if underWay {
			task = r.mustNext(urlX)
		}
		if got := r.queue(urlX, blobschema.Queued{Depth: 1}); got != Known {
			t.Errorf("under way %v: a late link: %d", underWay, got)
		}
		if got := r.queue(urlX, blobschema.Queued{Flags: blobschema.FlagSeed}); got != Lowered {
			t.Errorf("under way %v: a late seed: %d", underWay, got)
		}
		if got := r.queue(urlX, blobschema.Queued{Flags: blobschema.FlagSeed}); got != Known {
			t.Errorf("under way %v: the same seed again: %d", underWay, got)
		}
		r.check()
		run, _ := r.f.Delta(6)
		if len(run.Queued) != 1 || run.Queued[0].Generation != 1 || run.Queued[0].Flags != blobschema.FlagSeed {
			t.Errorf("under way %v: the commit has %+v", underWay, run.Queued)
		}
		if !underWay {
			task = r.mustNext(urlX)
		}
		if task.Request.Generation != 1 || task.FlagsNow() != blobschema.FlagSeed {
			t.Errorf("under way %v: generation %d has flags %b", underWay, task.Request.Generation, task.FlagsNow())
		}
	}
}
