package frontier

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// every returns the threshold at which unknown pages are revisited with that interval.
func every(d time.Duration) float64 {
	return schedule.FirstThreshold(d.Hours(), 1)
}

// waiting returns the time until a pending URL may be requested, and its generation; ok is false if it is not pending.
func (r *rig) waiting(url string) (wait time.Duration, gen uint32, ok bool) {
	r.t.Helper()
	u := mustParse(r.t, url)
	p, i, k := r.f.slots.find(r.hash.Slot(string(u.Host())), r.hash.Fingerprint(url))
	if k != inItems {
		return 0, 0, false
	}
	return time.UnixMilli(notBefore(p, i)).Sub(r.now), p.Generation(i), true
}

// TestWhenRevisitsCome checks that a revisit comes when its value reaches the threshold, and the first one at a random time
// before that. Failed and missing pages wait longer. A URL that never had an answer is not revisited.
func TestWhenRevisitsCome(t *testing.T) {
	hour := schedule.Interval(blobschema.Change{}, every(time.Hour))
	month := schedule.Interval(blobschema.Change{}, every(30*24*time.Hour))
	if hour < 40*time.Minute || hour > 90*time.Minute || month < 20*24*time.Hour {
		t.Fatalf("intervals of %v and %v", hour, month)
	}
	connect := answer{outcome: blobschema.OutcomeConnect, final: true}
	for _, k := range []struct {
		name        string
		every       time.Duration
		answers     []answer // in order
		least, most time.Duration
	}{
		{"first", time.Hour, []answer{{}}, 0, hour},
		{"second", time.Hour, []answer{{}, {}}, hour, 2 * hour},
		{"missing", time.Hour, []answer{{}, {status: 404}}, goneAfter, goneAfter + goneAfter/grid},
		{"always missing", time.Hour, []answer{{status: 404}}, goneAfter, goneAfter + goneAfter/grid},
		{"found again", time.Hour, []answer{{status: 404}, {}}, schedule.ShortestInterval, 2 * hour},
		{"server error", time.Hour, []answer{{}, {status: 500}}, afterFailure, afterFailure * 17 / 16},
		{"no answer", time.Hour, []answer{{}, connect}, afterFailure, afterFailure * 17 / 16},
		{"server error, rare revisits", 30 * 24 * time.Hour, []answer{{}, {status: 500}}, month, 2 * month},
		{"never an answer", time.Hour, []answer{connect}, -1, -1},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := begun(t, Config{Revisits: true, Partition: 3, Retry: polite.Retry{Attempts: 1}}, urlX)
			r.f.SetThreshold(r.now, every(k.every))
			for i, a := range k.answers {
				_, task := r.nextTask()
				if task.Request.Generation != uint32(i) || task.Revisit() != (i > 0) {
					t.Fatalf("revisit %d is %+v", i, task)
				}
				o := a.reply(task, r.now, 0)
				o.Page.Time = r.now
				r.f.Done(r.now, task, o)
				r.check()
				r.state(uint64(i + 1))
			}
			wait, gen, ok := r.waiting(urlX)
			if ok != (k.least >= 0) {
				t.Fatalf("the URL is pending: %v", ok)
			}
			if ok && (wait < k.least || wait > k.most || gen != uint32(len(k.answers))) {
				t.Errorf("revisit %d comes in %v, not in %v to %v", gen, wait, k.least, k.most)
			}
		})
	}
}

// TestFirstRevisitsAreSpread checks that the first revisits of pages found together are spread over the interval, none of
// them before the minimum interval.
func TestFirstRevisitsAreSpread(t *testing.T) {
	const day = 24 * time.Hour
	r := begun(t, Config{Revisits: true}, urlX)
	r.f.SetThreshold(r.now, every(day))
	var waits []time.Duration
	for i := range 64 {
		r.add(2, fmt.Sprintf("https://a.example/%d", i))
	}
	for task, ok := r.f.Next(r.now, false); ok; task, ok = r.f.Next(r.now, false) {
		r.seen(task, nil, "a")
		wait, _, _ := r.waiting(task.Request.URL.String())
		waits = append(waits, wait)
	}
	slices.Sort(waits)
	interval := schedule.Interval(blobschema.Change{}, every(day))
	if waits[0] < schedule.ShortestInterval || waits[0] > interval/8 || waits[32] < interval/3 || waits[32] > interval*2/3 || waits[64] < interval*7/8 || waits[64] > interval*17/16 {
		t.Errorf("with an interval of %v, first revisits come after %v", interval, waits)
	}
}

// TestLine checks that revisits that are due together are made at half the pace of the politeness key, with new links in
// between. Without a pace, new links come first.
func TestLine(t *testing.T) {
	const pace = 10 * time.Second
	for _, k := range []struct {
		name  string
		delay time.Duration
		found int // URLs
		want  []string
	}{
		{"revisits alone", pace, 0, []string{"revisit", "20s revisit", "20s revisit", "20s revisit"}},
		{"with new links", pace, 2, []string{"revisit", "10s found", "10s revisit", "10s found", "10s revisit", "20s revisit"}},
		{"with many new links", pace, 9, []string{"revisit", "10s found", "10s revisit", "10s found", "10s revisit", "10s found", "10s revisit", "10s found", "10s found"}},
		{"without a pace", 0, 2, []string{"revisit", "found", "found", "1ms revisit", "1ms revisit", "1ms revisit"}},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := begun(t, Config{Revisits: true, Delay: k.delay}, urlX)
			r.add(2, urlY, "https://a.example/z", "https://a.example/0")
			for range 4 {
				_, task := r.nextTask()
				r.seen(task, nil, "a")
			}
			r.state(1)
			r.now = r.now.Add(100 * 24 * time.Hour)
			for i := range k.found {
				r.queue(fmt.Sprintf("https://a.example/found%d", i), blobschema.Queued{Rank: 3})
			}
			var got []string
			for range k.want {
				gap, task := r.nextTask()
				what := "found"
				if task.Revisit() {
					what = "revisit"
				}
				if gap > 0 && len(got) > 0 {
					what = fmt.Sprintf("%v %s", gap.Round(time.Millisecond), what)
				}
				got = append(got, what)
				r.seen(task, &blobschema.Page{Outcome: blobschema.OutcomeOK, Digest: "a", Time: epoch}, "a")
			}
			if d := cmp.Diff(k.want, got); d != "" {
				t.Errorf("requested (-want +got):\n%s", d)
			}
		})
	}
}

// TestUrgentOnlyTakesRevisits checks that with urgentOnly revisits are made one after another, and no new link is fetched.
func TestUrgentOnlyTakesRevisits(t *testing.T) {
	r := begun(t, Config{Revisits: true, Delay: time.Second}, urlX, urlY)
	for range 2 {
		_, task := r.nextTask()
		r.seen(task, nil, "a")
	}
	r.now = r.now.Add(100 * 24 * time.Hour)
	r.queue("https://a.example/found", blobschema.Queued{Rank: 3})
	revisits := 0
	for end := r.now.Add(time.Minute); r.now.Before(end); r.now = r.now.Add(time.Second) {
		task, ok := r.f.Next(r.now, true)
		if !ok {
			continue
		}
		if task.Request.Robots {
			r.done(task, answer{status: 404})
			continue
		}
		if !task.Revisit() {
			t.Fatalf("requested %s", task.Request.URL)
		}
		revisits++
		r.seen(task, nil, "a")
	}
	if revisits != 2 {
		t.Errorf("%d revisits", revisits)
	}
}

// TestWhoIsReplanned checks that only revisits that the new threshold would have planned earlier come sooner, not those of
// failed, missing or already requested pages.
func TestWhoIsReplanned(t *testing.T) {
	const often, seldom = time.Hour, 12 * time.Hour
	url := func(name string) string { return "https://a.example/" + name }
	names := []string{"one", "another", "gone", "failed", "purpose"}
	r := begun(t, Config{Revisits: true, Hosts: map[string]schedule.HostRule{"a.example": {Connections: 1}}}, urlX)
	r.f.SetThreshold(r.now, every(seldom))
	r.seen(r.mustNext(urlX), nil, "a")
	for _, n := range names {
		r.queue(url(n), blobschema.Queued{Depth: 2})
		_, task := r.nextTask()
		a := answer{}
		if n == "gone" {
			a.status = http.StatusGone
		}
		if n == "failed" {
			a.status = http.StatusInternalServerError
			r.f.cfg.Retry.Attempts = 1
		}
		o := a.reply(task, r.now, 0)
		o.Page.Time = r.now
		r.f.Done(r.now, task, o)
		r.check()
	}
	r.f.cfg.Retry.Attempts = 0
	r.state(1)
	r.again(url("purpose"), 0)
	before := map[string]time.Duration{}
	gens := map[string]uint32{}
	for _, n := range names {
		before[n], gens[n], _ = r.waiting(url(n))
	}
	was := r.f.Threshold()
	if r.f.SetThreshold(r.now, was/1.4); r.f.Threshold() != was {
		t.Error("a slightly lower threshold changed planned revisits")
	}
	for _, n := range names {
		if wait, gen, _ := r.waiting(url(n)); wait != before[n] || gen != gens[n] {
			t.Errorf("%s comes in %v; with the first threshold it was %v", n, wait, before[n])
		}
	}
	if r.f.SetThreshold(r.now, every(often)); r.f.Threshold() != every(often) {
		t.Error("a much lower threshold is not used for planning")
	}
	r.check()
	for _, n := range names {
		wait, gen, ok := r.waiting(url(n))
		sooner := n != "gone" && n != "failed" && n != "purpose"
		if !ok || sooner && (wait > 2*often || gen != gens[n]+1) || !sooner && (wait != before[n] || gen != gens[n]) {
			t.Errorf("%s comes in %v, generation %d; before it was %v, %d", n, wait, gen, before[n], gens[n])
		}
	}
	run, _ := r.f.Delta(2) // the stored state agrees
	for _, q := range run.Queued {
		wait, gen, _ := r.waiting(q.URL)
		if time.UnixMilli(q.NotBefore).Sub(r.now) != wait || q.Generation != gen {
			t.Errorf("stored as %+v; it waits for %v, generation %d", q, wait, gen)
		}
	}
	if len(run.Queued) != len(names)-2+1 {
		t.Errorf("%d of the revisits are stored again", len(run.Queued))
	}
}

// TestWhatHintsChange checks that a sitemap advances the revisit of a changed page once, and delays that of an unchanged one.
// It affects nothing else.
func TestWhatHintsChange(t *testing.T) {
	const day = 24 * time.Hour
	past, future := -time.Hour, time.Hour // time of the modification, relative to the last revisit
	for _, k := range []struct {
		name  string
		set   func(r *rig) // after the first answer
		hints []time.Duration
		want  string // of the last hint
	}{
		{"changed", nil, []time.Duration{future}, "sooner"},
		{"unchanged", nil, []time.Duration{past}, "later"},
		{"changed, twice", nil, []time.Duration{future, 2 * future}, ""},
		{"changed, then unchanged", nil, []time.Duration{future, past}, ""},
		{"unchanged, then changed", nil, []time.Duration{past, future}, "sooner"},
		{"changed, from an unreliable sitemap", func(r *rig) { r.trust(schedule.Trust{SaidSame: 100, SilentChanged: 10}) }, []time.Duration{future}, ""},
		{"requested", func(r *rig) { r.again(urlX, 0) }, []time.Duration{future}, ""},
		{"under way", func(r *rig) {
			r.now = r.now.Add(100 * day)
			r.nextTask()
		}, []time.Duration{100 * day}, ""},
		{"already due", func(r *rig) { r.now = r.now.Add(100 * day) }, []time.Duration{100 * day}, ""},
		{"waiting for a retry", func(r *rig) {
			_, task := r.nextTask()
			r.done(task, answer{status: 503})
		}, []time.Duration{100 * day}, ""},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := begun(t, Config{Revisits: true, Delay: time.Second}, urlX)
			r.f.SetThreshold(r.now, every(10*day))
			r.seen(r.mustNext(urlX), nil, "a")
			r.state(1)
			r.trust(schedule.Trust{SaidChanged: 30, SilentSame: 30})
			looked := r.now
			if k.set != nil {
				k.set(r)
			}
			r.now = r.now.Add(2 * time.Hour)
			var was, is time.Time
			var gen, newGen uint32
			at := func() (time.Time, uint32) {
				wait, gen, ok := r.waiting(urlX)
				if !ok {
					t.Fatal("the URL is not pending")
				}
				return r.now.Add(wait), gen
			}
			for _, h := range k.hints {
				was, gen = at()
				r.f.Hint(r.now, "a.example", r.hash.Fingerprint(urlX), looked.Add(h))
				r.check()
				is, newGen = at()
			}
			got := ""
			switch {
			case is.Before(was.Add(-time.Minute)):
				got = "sooner"
			case is.After(was.Add(time.Minute)):
				got = "later"
			}
			if got != k.want || (newGen > gen) != (got == "sooner") {
				t.Errorf("the revisit comes %q: at %v, not %v; generation %d after %d", got, is.Sub(looked), was.Sub(looked), newGen, gen)
			}
		})
	}
}

// TestHintsAndTrust checks that the result of a revisit is compared with the sitemap's entry for the page, if there is one.
func TestHintsAndTrust(t *testing.T) {
	for _, k := range []struct {
		name          string
		modified      time.Duration // relative to the previous revisit; 0: not listed
		changed       bool
		changedS, sam float32 // listed as changed, among pages that changed or did not
	}{
		{"listed, changed", time.Hour, true, 1, 0}, {"listed, unchanged", time.Hour, false, 0, 1}, {"not listed", 0, true, 0, 0},
	} {
		r := begun(t, Config{Revisits: true}, urlX)
		r.f.SetThreshold(r.now, every(24*time.Hour))
		r.seen(r.mustNext(urlX), nil, "a")
		previous := r.record()
		if k.modified != 0 {
			r.now = r.now.Add(2 * time.Minute)
			r.f.Hint(r.now, "a.example", r.hash.Fingerprint(urlX), previous.Time.Add(k.modified))
		}
		_, task := r.nextTask()
		digest := "a"
		if k.changed {
			digest = "b"
		}
		r.seen(task, previous, digest)
		trust := peek(r.f.schedule, "keys", "a.example", "trust")
		if got := [4]float32{trustOf(trust, "SaidChanged"), trustOf(trust, "SaidSame"), trustOf(trust, "SilentChanged"), trustOf(trust, "SilentSame")}; got != [4]float32{k.changedS, k.sam} {
			t.Errorf("%s: trust is %v", k.name, got)
		}
		if peek(r.f.schedule, "keys", "a.example", "changes", "Shape").IsZero() {
			t.Errorf("%s: the estimate of the host did not change", k.name)
		}
	}
}

// TestPagesDiffer checks that a page's estimate is separate from that of its host, and that new pages start with the
// host's.
func TestPagesDiffer(t *testing.T) {
	const revisits = 7
	steady, lively := urlX, urlY
	r := begun(t, Config{Revisits: true}, steady, lively)
	r.f.SetThreshold(r.now, every(24*time.Hour))
	previous := map[string]*blobschema.Page{}
	count := map[string]int{}
	for range 2 * revisits {
		_, task := r.nextTask()
		url := task.Request.URL.String()
		digest := "a"
		if url == lively {
			digest = fmt.Sprint(count[url])
		}
		r.seen(task, previous[url], digest)
		previous[url] = &blobschema.Page{Outcome: blobschema.OutcomeOK, Digest: digest, Time: r.now}
		r.state(uint64(count[steady] + count[lively] + 1))
		count[url]++
	}
	s, _, _ := r.waiting(steady)
	l, _, _ := r.waiting(lively)
	if count[lively] < 2*count[steady] || 2*s < 3*l {
		t.Errorf("%d revisits of a page that never changes, the next in %v; %d of one that always does, in %v", count[steady], s, count[lively], l)
	}
	if peek(r.f.schedule, "keys", "a.example", "changes", "Shape").IsZero() {
		t.Error("the estimate of the host did not change")
	}
}

// TestGivenUpHosts checks that new links of a host that is given up are refused, and that its revisits wait.
func TestGivenUpHosts(t *testing.T) {
	for _, revisits := range []bool{false, true} {
		r := begun(t, Config{Revisits: revisits, Delay: time.Second, Retry: polite.Retry{HostFailures: 1}}, urlX)
		r.seen(r.mustNext(urlX), nil, "a")
		r.state(1)
		r.add(1, "https://a.example/w")
		r.add(2, urlY, "https://a.example/z")
		r.now = r.now.Add(time.Second)
		r.done(r.mustNext("https://a.example/w"), answer{outcome: blobschema.OutcomeConnect, final: true})
		r.check()
		if got := r.refused(); len(got) != 2 {
			t.Errorf("revisits %v: refused are %v", revisits, got)
		}
		if wait, _, ok := r.waiting(urlX); ok != revisits || ok && wait < afterFailure {
			t.Errorf("revisits %v: the revisit waits %v for %v", revisits, ok, wait)
		}
		run, _ := r.f.Delta(2)
		if stored := len(run.Queued) == 1 && run.Queued[0].URL == urlX; stored != revisits {
			t.Errorf("revisits %v: stored are %+v", revisits, run.Queued)
		}
	}
}
