package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// seen ends a task with an answer whose payload has the given digest; previous is the record of the previous answer.
func (r *rig) seen(task schedule.Task, previous *blobschema.Page, digest string) {
	r.t.Helper()
	task.Request.Previous = previous
	o := answer{}.reply(task, r.now, 0)
	o.Page.Digest, o.Page.Time = digest, r.now
	if v := r.f.Done(r.now, task, o); v != schedule.Final {
		r.t.Fatalf("verdict %d", v)
	}
	r.check()
}

// nextTask moves the clock to the next task, and returns the time that passed and the task.
func (r *rig) nextTask() (time.Duration, schedule.Task) {
	r.t.Helper()
	was := r.now
	for {
		if task, ok := r.f.Next(r.now, false); ok {
			r.check()
			if task.Request.Robots {
				r.done(task, answer{status: 404})
				continue
			}
			return r.now.Sub(was), task
		}
		at := r.f.NextAt()
		if !at.After(r.now) {
			r.t.Fatal("nothing will be requested")
		}
		r.now = at
	}
}

func (r *rig) record() *blobschema.Page {
	return &blobschema.Page{Outcome: blobschema.OutcomeOK, Digest: "a", Time: r.now}
}

// TestRevisits checks that a settled URL is pending in its next generation and names the record of its answer. It is revisited
// more and more often while it changes, and less often while it does not.
func TestRevisits(t *testing.T) {
	for _, changes := range []bool{false, true} {
		r := begun(t, Config{Revisits: true, Partition: 3}, urlX)
		r.f.SetThreshold(r.now, schedule.FirstThreshold(24, 1))
		r.seen(r.mustNext(urlX), nil, "a")
		r.mustIdle()
		previous := r.record()
		var gaps []time.Duration
		for revisit := uint32(1); revisit <= 8; revisit++ {
			r.state(uint64(revisit))
			gap, task := r.nextTask()
			gaps = append(gaps, gap)
			if !task.Revisit() || task.Urgent() || task.Rank() != revisitRank || task.Request.Generation != revisit {
				t.Fatalf("the task is %+v", task)
			}
			if task.Previous() != (blobschema.RecordRef{Partition: 3, Seq: revisit}) {
				t.Errorf("revisit %d: its previous answer is in commit %v", revisit, task.Previous())
			}
			digest := "a"
			if changes {
				digest = string(rune('a' + revisit))
			}
			r.seen(task, previous, digest)
			previous = &blobschema.Page{Outcome: blobschema.OutcomeOK, Digest: digest, Time: r.now}
		}
		if gaps[0] > 25*time.Hour {
			t.Errorf("the first revisit is after %v", gaps[0])
		}
		if last := gaps[len(gaps)-1]; changes != (last < gaps[1]) {
			t.Errorf("changes: %v; gaps %v", changes, gaps)
		}
		if c := r.f.Counts(); c.Known != 1 || c.Pending != 1 || c.Urgent != 0 {
			t.Errorf("counts %+v", c)
		}
	}
}

// TestRevisitsGoBeforeWhatIsFound checks that revisits come before new links and after requested URLs.
func TestRevisitsGoBeforeWhatIsFound(t *testing.T) {
	r := begun(t, Config{Revisits: true}, urlX)
	r.seen(r.mustNext(urlX), nil, "a")
	r.now = r.now.Add(100 * 24 * time.Hour)
	r.queue(urlY, blobschema.Queued{Rank: 1})
	r.again("https://a.example/z", 0)
	r.done(r.mustNext("https://a.example/robots.txt"), answer{status: 404})
	for _, want := range []string{"https://a.example/z", urlX, urlY} {
		r.seen(r.mustNext(want), nil, "a")
	}
}

// TestRevisitsLeaveRoom checks that a host whose revisits are all due still gets every other request for a new URL.
func TestRevisitsLeaveRoom(t *testing.T) {
	r := newRig(t, Config{Revisits: true, Delay: 10 * time.Second})
	next := func() schedule.Task {
		t.Helper()
		_, task := r.nextTask()
		r.seen(task, nil, "a")
		return task
	}
	for i := range 8 {
		r.queue(fmt.Sprintf("https://a.example/%d", i), blobschema.Queued{Rank: 3})
	}
	for range 8 {
		next()
	}
	r.now = r.now.Add(30 * 24 * time.Hour)
	for i := range 8 {
		r.queue(fmt.Sprintf("https://a.example/new%d", i), blobschema.Queued{Rank: 3})
	}
	revisits := 0
	for range 12 {
		if task := next(); task.Revisit() {
			revisits++
		}
	}
	if revisits < 5 || revisits > 7 {
		t.Errorf("%d of 12 requests are revisits", revisits)
	}
}

// TestRevisitRequested checks that a requested revisit happens at once, before its planned time, even if it was stored.
func TestRevisitRequested(t *testing.T) {
	r := begun(t, Config{Revisits: true}, urlX)
	r.seen(r.mustNext(urlX), nil, "a")
	first, _ := r.f.Delta(1)
	r.f.Committed()
	r.mustIdle()
	if got := r.again(urlX, 7); got != Lowered || r.f.Counts().Urgent != 1 {
		t.Errorf("requested: %d, counts %+v", got, r.f.Counts())
	}
	r.check()
	second, _ := r.f.Delta(2)
	r.f.Committed()
	joined := blobschema.MergeRuns(r.hash, []*blobschema.Run{first, second})
	if len(joined.Queued) != 1 || joined.Queued[0].NotBefore > r.now.UnixMilli() || joined.Queued[0].Rank != 0 {
		t.Errorf("stored as %+v", joined.Queued)
	}
	if task := r.mustNext(urlX); !task.Urgent() || task.Revisit() {
		t.Errorf("the task is %+v", task)
	}
}

// TestRevisitsOfFailures checks that a failed answer does not end revisits, and that a host that is given up keeps them.
func TestRevisitsOfFailures(t *testing.T) {
	r := begun(t, Config{Revisits: true, Retry: polite.Retry{HostFailures: 1}}, urlX, urlY)
	for _, u := range []string{urlX, urlY} {
		r.seen(r.mustNext(u), nil, "a")
	}
	_, task := r.nextTask()
	o := answer{outcome: blobschema.OutcomeConnect, final: true}.reply(task, r.now, 0)
	if v := r.f.Done(r.now, task, o); v != schedule.Final || r.f.Counts().Pending != 2 {
		t.Errorf("verdict %d, counts %+v", v, r.f.Counts())
	}
	r.check()
	at := r.now // the host is given up
	if n := len(r.f.Refusals()); n > 0 || r.f.Counts().Pending != 2 {
		t.Errorf("a host was given up: %d refusals, counts %+v", n, r.f.Counts())
	}
	for range 2 {
		_, task := r.nextTask()
		if gap := r.now.Sub(at); gap < afterFailure {
			t.Errorf("the next revisit is %v after a failure", gap)
		}
		r.seen(task, nil, "a")
	}
}

// TestRevisitsEndWhereRobotsForbid checks that a refusal by robots.txt ends revisits.
func TestRevisitsEndWhereRobotsForbid(t *testing.T) {
	r := begun(t, Config{Revisits: true}, urlX)
	r.seen(r.mustNext(urlX), nil, "a")
	r.now = r.now.Add(50 * time.Hour)
	r.done(r.mustNext("https://a.example/robots.txt"), answer{body: "User-agent: *\nDisallow: /\n"})
	r.mustIdle()
	if got := r.f.Refusals(); len(got) != 1 || got[0].Generation != 1 || r.f.Counts().Pending != 0 {
		t.Errorf("refusals %+v, counts %+v", got, r.f.Counts())
	}
}

func TestHints(t *testing.T) {
	r := begun(t, Config{Revisits: true}, urlX)
	fp := r.hash.Fingerprint(urlX)
	r.f.SetThreshold(r.now, 4)
	r.seen(r.mustNext(urlX), nil, "a")
	previous := r.record()
	revisit := func(digest string) {
		t.Helper()
		_, task := r.nextTask()
		r.seen(task, previous, digest)
		previous = &blobschema.Page{Outcome: blobschema.OutcomeOK, Digest: digest, Time: r.now}
	}
	revisit("a")
	for i := range 12 { // the sitemap is right
		r.now = r.now.Add(4 * time.Hour)
		r.f.Hint(r.now, "a.example", fp, previous.Time.Add(-time.Hour)) // nothing
		r.check()
		r.now = r.now.Add(4 * time.Hour)
		r.f.Hint(r.now, "a.example", fp, r.now.Add(-30*time.Minute))
		r.check()
		before := r.now
		revisit(string(rune('b' + i)))
		if gap := r.now.Sub(before); i > 6 && gap > time.Minute {
			t.Errorf("hint %d: the revisit is %v after it", i, gap)
		}
	}
	if said := trustOf(peek(r.f.schedule, "keys", "a.example", "trust"), "SaidChanged"); said != 12 {
		t.Errorf("trust is %v", said)
	}
	at := func() int64 {
		p, i, _ := r.f.slots.find(r.hash.Slot("a.example"), fp)
		return notBefore(p, i)
	}
	planned := at()
	r.now = r.now.Add(time.Minute)
	r.f.Hint(r.now, "a.example", fp, previous.Time.Add(-time.Hour))
	if at() < planned {
		t.Error("the revisit comes sooner, though nothing has changed")
	}
	for _, u := range []string{"a.example", "b.example"} { // unknown URLs
		r.f.Hint(r.now, u, fp+1, r.now)
	}
	r.check()
}

func TestChanged(t *testing.T) {
	ok := func(digest string) blobschema.Page {
		return blobschema.Page{Outcome: blobschema.OutcomeOK, Status: 200, Digest: digest}
	}
	unchanged := ok("a")
	unchanged.Outcome, unchanged.Status = blobschema.OutcomeUnchanged, 304
	to := func(url string) blobschema.Page {
		return blobschema.Page{Outcome: blobschema.OutcomeRedirect, Status: 301, Redirect: url}
	}
	status := func(n uint16) blobschema.Page {
		return blobschema.Page{Outcome: blobschema.OutcomeClientError, Status: n}
	}
	for _, c := range []struct {
		what    string
		was, is blobschema.Page
		want    bool
	}{
		{"the same", ok("a"), ok("a"), false}, {"another", ok("a"), ok("b"), true}, {"304", ok("a"), unchanged, false},
		{"the same after 304", unchanged, ok("a"), false}, {"another after 304", unchanged, ok("b"), true},
		{"gone", ok("a"), status(404), true}, {"gone after 304", unchanged, status(404), true}, {"still gone", status(404), status(404), false},
		{"gone permanently", status(404), status(410), true}, {"returned", status(404), ok("a"), true},
		{"a redirect", ok("a"), to("x"), true}, {"the same redirect", to("x"), to("x"), false}, {"another redirect", to("x"), to("y"), true},
		{"another failure", blobschema.Page{Outcome: blobschema.OutcomeTimeout}, blobschema.Page{Outcome: blobschema.OutcomeDNS}, true},
	} {
		if got := schedule.Changed(&c.was, &c.is); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// TestReplans checks that waiting revisits come sooner after the threshold has fallen a lot: at once if they are in memory,
// otherwise when their part is loaded, which is then wanted.
func TestReplans(t *testing.T) {
	for _, unloaded := range []bool{false, true} {
		p := newProcess(t, Config{Revisits: true})
		var urls []string
		for i := range 20 {
			urls = append(urls, fmt.Sprintf("https://a.example/%d", i))
		}
		p.rig.add(1, urls...)
		daily, hourly := schedule.FirstThreshold(24, 1), schedule.FirstThreshold(1, 1)
		p.f.SetThreshold(p.now, daily)
		for task, ok := p.f.Next(p.now, false); ok; task, ok = p.f.Next(p.now, false) {
			p.f.Done(p.now, task, answer{}.reply(task, p.now, 0))
		}
		p.beginCommit()
		p.endCommit()
		slot := p.hash.Slot("a.example")
		// due is the time of the last revisit.
		due := func() time.Duration {
			last := int64(0)
			for part := range p.f.slots.byID[slot].parts {
				for fp := range part.Fingerprints {
					i, _ := part.find(fp)
					last = max(last, notBefore(part, i))
				}
			}
			return time.UnixMilli(last).Sub(p.now)
		}
		if d := due(); d < 12*time.Hour || d > 26*time.Hour {
			t.Fatalf("the last revisit is in %v", d)
		}
		if unloaded {
			p.restart(false)
			p.f.SetThreshold(p.now, daily)
			p.f.SetThreshold(p.now, hourly)
			p.want()
			if len(p.loads) != 1 {
				t.Fatalf("%d loads", len(p.loads))
			}
			p.load(0)
			if got := p.f.Wanted(p.now, false); got != nil {
				t.Errorf("%v is wanted again", got)
			}
		} else {
			p.f.SetThreshold(p.now, hourly)
		}
		if d := due(); d < 10*time.Minute || d > 70*time.Minute {
			t.Errorf("unloaded %v: the last revisit is in %v after the change", unloaded, d)
		}
		p.check()
		p.f.SetThreshold(p.now, schedule.FirstThreshold(100, 1)) // rarer: planned revisits stay
		if d := due(); d > 70*time.Minute {
			t.Errorf("unloaded %v: the last revisit is in %v", unloaded, d)
		}
	}
}

// TestFoundHasItsTurn checks that a new link is requested after a revisit, even if the next revisit was queued while nothing
// else was in memory.
func TestFoundHasItsTurn(t *testing.T) {
	r := begun(t, Config{Revisits: true, Delay: time.Second}, urlX)
	r.f.SetThreshold(r.now, schedule.FirstThreshold(1, 1))
	r.seen(r.mustNext(urlX), nil, "a")
	previous := r.record()
	r.state(1)
	_, task := r.nextTask()
	r.seen(task, previous, "a")
	r.state(2)
	r.now = r.f.NextAt()
	r.f.schedule.Filled(&r.f.slots.open(r.hash.Slot("a.example")).keys, r.now) // the revisit is queued
	r.add(3, "https://a.example/found")
	if task := r.mustNext("https://a.example/found"); task.Revisit() {
		t.Error("the new link is a revisit")
	}
	r.check()
}

// TestRevisitsTakeTurns checks that, if more hosts have due revisits than there are connections, every other request is for a
// new URL, also one of a topic with a lower priority.
func TestRevisitsTakeTurns(t *testing.T) {
	for _, topic := range []uint8{0, 1} {
		r := begun(t, Config{Revisits: true, Topics: []schedule.Topic{{}, {Priority: -1}}}, urlX)
		r.f.SetThreshold(r.now, every(time.Hour))
		for i := range 4 {
			r.add(0, fmt.Sprintf("https://old%d.example/", i))
		}
		for range 5 {
			_, task := r.nextTask()
			r.seen(task, nil, "a")
		}
		r.now = r.now.Add(2 * time.Hour)
		for i := range 4 {
			r.find(fmt.Sprintf("https://new%d.example/", i), topic)
		}
		for i := range 8 {
			task, ok := r.f.Next(r.now, false)
			if !ok || task.Revisit() != (i%2 == 0) {
				t.Fatalf("topic %d: request %d (%v) is %s, a revisit: %v", topic, i, ok, task.Request.URL, task.Revisit())
			}
		}
		if task, ok := r.f.Next(r.now, true); !ok || !task.Revisit() {
			t.Errorf("topic %d: the last revisit does not follow at once", topic)
		}
	}
}
