package fsck_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

func check(t testing.TB, m fsck.Store, opt fsck.Options) fsck.Report {
	t.Helper()
	rep, err := fsck.Check(t.Context(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestCleanCrawls(t *testing.T) {
	for name, once := range map[string]func() (*memory, error){"whole": crawled, "limited": cut, "recrawled": again, "by IP": addresses, "repartitioned": repartitioned} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // a crawl mostly waits
			m := mustCrawl(t, once)
			rep := check(t, m, fsck.Options{})
			for _, v := range rep.Violations {
				t.Error(v)
			}
			if rep.Pages < 50 || rep.Commits < partitions || rep.Links < 100 || rep.WARCsRead != rep.WARCs || rep.Objects != len(m.objects) {
				t.Errorf("too little was checked: %+v", rep)
			}
			if again := check(t, m, fsck.Options{}); cmp.Diff(rep, again) != "" {
				t.Errorf("a second check differs:\n%s", cmp.Diff(rep, again))
			}
		})
	}
}

// TestOrphansAreNoDamage checks that objects left by crashed steps are no violations.
func TestOrphansAreNoDamage(t *testing.T) {
	m := mustCrawl(t, crawled)
	before := check(t, m, fsck.Options{})
	for _, name := range []string{
		naming.Commit(crawlID, 1, 7, 90), naming.Run(crawlID, 1, 7, 90, 1),
		naming.WARC(crawlID, 1, 90, 1, true),
	} {
		m.objects[name] = []byte("half a")
	}
	m.objects[naming.Dead(crawlID, []byte("x"))] = []byte("x")
	m.objects[naming.Replayed(naming.Dead(crawlID, []byte("x")))] = nil
	m.objects[naming.CDXJIndex(crawlID)] = nil
	rep := check(t, m, fsck.Options{})
	want := before
	want.Objects, want.Orphans, want.Dead = before.Objects+6, before.Orphans+3, 1
	if d := cmp.Diff(want, rep); d != "" {
		t.Errorf("report (-want +got):\n%s", d)
	}
}

// TestSomeWARCs checks that a quick check reads few WARC objects and finds any missing one.
func TestSomeWARCs(t *testing.T) {
	m := mustCrawl(t, crawled)
	rep := check(t, m, fsck.Options{Quick: true})
	if !rep.Clean() || rep.WARCsRead == 0 || rep.WARCsRead >= rep.WARCs {
		t.Errorf("read %d of %d objects, found %v", rep.WARCsRead, rep.WARCs, rep.Violations)
	}
	h := newHand(t, m)
	for _, name := range slices.Backward(h.commits()) {
		if warcs := h.commit(name).Manifest.WARCs; len(warcs) > 0 {
			delete(m.objects, warcs[len(warcs)-1])
			break
		}
	}
	if rep := check(t, m, fsck.Options{Quick: true}); rep.Found != 1 || rep.Violations[0].Invariant != "I6" {
		t.Errorf("with a missing object: found %v", rep.Violations)
	}
}

// TestBound checks that MaxViolations bounds the violations kept, not those counted.
func TestBound(t *testing.T) {
	m := mustCrawl(t, crawled)
	h := newHand(t, m)
	for _, name := range h.commits() {
		h.rewrite(name, func(c *blobschema.Commit) {
			for i := range c.Pages {
				c.Pages[i].Status++
			}
		})
	}
	edit(h, naming.HeadKey(crawlID, 0), func(v *blobschema.Head) { v.Fence = 0 })
	rep := check(t, m, fsck.Options{MaxViolations: 3})
	kept := map[string]int{}
	for _, v := range rep.Violations {
		kept[v.Invariant]++
	}
	if d := cmp.Diff(map[string]int{"I4": 1, "I6": 3}, kept); d != "" || rep.Found < 20 {
		t.Errorf("found %d, kept (-want +got):\n%s", rep.Found, d)
	}
}

// moving is a store whose crawl continues while it is read: old returns the value of a record at
// its n-th read, "" for the current value.
type moving struct {
	*memory
	reads map[string]int
	old   func(key string, read int) string
}

func (m *moving) Records(ctx context.Context, keys ...string) ([][]byte, error) {
	if m.reads == nil {
		m.reads = map[string]int{}
	}
	values, err := m.memory.Records(ctx, keys...)
	for i, key := range keys {
		m.reads[key]++
		if v := m.old(key, m.reads[key]); v != "" {
			values[i] = []byte(v)
		}
	}
	return values, err
}

// TestHeadsMove checks a crawl whose heads are read at different moments.
func TestHeadsMove(t *testing.T) {
	t.Parallel()
	m := moved(t)
	m.apply(4, 0, 1) // the stale mail
	m.commit(4, blobschema.Commit{State: m.pending(m.queued("http://"+m.host(0, 0)+"/stale", 0))})
	once := func(p partition.ID, seq int) func(string, int) string {
		return func(key string, read int) string {
			if key == naming.HeadKey(crawlID, p) && read == 1 {
				return m.heads[p][seq-1]
			}
			return ""
		}
	}
	for _, tt := range []struct {
		name  string
		old   func(string, int) string
		clean bool
	}{
		{"giver before hand-over, taker after it", once(0, 1), true},
		{"giver after hand-over, taker before it", once(4, 1), true},
		{"sender before sending, receiver after applying", once(0, 2), true},
		{"map before its change", func(key string, read int) string {
			if key == naming.MapKey(crawlID) && read == 1 {
				return `{"version":1,"epoch":1}`
			}
			return ""
		}, true},
		{"giver without hand-over", func(key string, _ int) string {
			if key == naming.HeadKey(crawlID, 0) {
				return m.heads[0][0]
			}
			return ""
		}, false},
	} {
		rep := check(t, &moving{memory: m.memory, old: tt.old}, fsck.Options{})
		if rep.Clean() != tt.clean {
			t.Errorf("%s: found %v", tt.name, rep.Violations)
		}
	}
	restless := func(key string, read int) string {
		switch key {
		case naming.HeadKey(crawlID, 0):
			return m.heads[0][0] // two partitions hold a slot
		case naming.HeadKey(crawlID, 1):
			return m.heads[1][read%2]
		}
		return ""
	}
	if _, err := fsck.Check(t.Context(), &moving{memory: m.memory, old: restless}, fsck.Options{}); err == nil {
		t.Error("no error although heads change at every read")
	}
}

// TestSecondCheck checks that a run deleted by a merge during the check is no violation after
// the second check, and that an object missing for good is.
func TestSecondCheck(t *testing.T) {
	m := recrawled(t)
	warc := m.own(3).Manifest.WARCs[0]
	man := &m.parts[0].man
	runs := man.Runs
	merged := naming.Run(crawlID, 0, 3, 1, 1)
	data, ref := blobschema.EncodeRun(&m.parts[0].state, m.hash)
	ref.Object, ref.Tier = merged, 1
	m.objects[merged] = data
	man.Runs = []blobschema.RunRef{ref}
	m.commit(0, blobschema.Commit{})
	man.Runs = append(runs, man.Runs[1:]...)
	man.Dropped = []string{merged}
	m.commit(0, blobschema.Commit{})
	delete(m.objects, merged)
	before := func(times int) *moving {
		return &moving{memory: m.memory, old: func(key string, read int) string {
			if key == naming.HeadKey(crawlID, 0) && read <= times {
				return m.heads[0][3]
			}
			return ""
		}}
	}
	if rep := check(t, before(1), fsck.Options{}); !rep.Clean() || rep.Checks != 2 {
		t.Errorf("found %v in %d checks", rep.Violations, rep.Checks)
	}
	if rep := check(t, before(100), fsck.Options{}); rep.Clean() || rep.Checks != 1 || rep.Violations[0].Where != merged {
		t.Errorf("found %v in %d checks", rep.Violations, rep.Checks)
	}
	delete(m.objects, warc)
	if rep := check(t, before(1), fsck.Options{}); rep.Found != 1 || rep.Checks != 2 || rep.Violations[0].Where != warc {
		t.Errorf("found %v in %d checks", rep.Violations, rep.Checks)
	}
}

// broken is a store whose table cannot be read.
type broken struct{ *memory }

var errBroken = errors.New("broken")

func (broken) Records(context.Context, ...string) ([][]byte, error) { return nil, errBroken }

func TestErrors(t *testing.T) {
	m := mustCrawl(t, crawled)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	other := m.clone()
	edit(newHand(t, other), naming.CrawlKey(crawlID), func(c *blobschema.Crawl) { c.Version = 99 })
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		store fsck.Store
		opt   fsck.Options
		want  error
	}{
		{"no crawl", t.Context(), &memory{}, fsck.Options{}, fsck.ErrNoCrawl},
		{"another crawl", t.Context(), m, fsck.Options{Crawl: "other"}, fsck.ErrNoCrawl},
		{"stopped", stopped, m, fsck.Options{}, context.Canceled},
		{"table", t.Context(), broken{m}, fsck.Options{}, errBroken},
		{"version", t.Context(), other, fsck.Options{}, wire.ErrVersion},
	} {
		if _, err := fsck.Check(tt.ctx, tt.store, tt.opt); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v, want %v", tt.name, err, tt.want)
		}
	}
}

func TestProgress(t *testing.T) {
	var last fsck.Progress
	phases := map[string]bool{}
	rep := check(t, mustCrawl(t, crawled), fsck.Options{Progress: func(p fsck.Progress) {
		if p.Pages < last.Pages || p.Done > p.Total {
			t.Errorf("%+v after %+v", p, last)
		}
		last, phases[p.Phase] = p, true
	}})
	if last.Pages != rep.Pages || len(phases) != 2 {
		t.Errorf("last %+v of %v, report %+v", last, phases, rep)
	}
}

// TestDelay checks that answers closer than Options.Delay are violations.
func TestDelay(t *testing.T) {
	rep := check(t, mustCrawl(t, crawled), fsck.Options{Delay: time.Minute})
	if rep.Clean() || rep.Violations[0].Invariant != "I9" {
		t.Errorf("found %v", rep.Violations)
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, once := range map[string]func() (*memory, error){"plain": crawled, "searchable": searchable} {
		b.Run(name, func(b *testing.B) {
			m := mustCrawl(b, once)
			pages := int64(0)
			for b.Loop() {
				rep, err := fsck.Check(b.Context(), m, fsck.Options{})
				if err != nil || !rep.Clean() {
					b.Fatal(err, rep.Found)
				}
				pages += rep.Pages
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(pages), "µs/page")
		})
	}
}
