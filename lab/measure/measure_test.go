package measure

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/partition"
)

func labWeb(t *testing.T) *simweb.Web {
	t.Helper()
	web, err := simweb.New(simweb.Config{
		Seed: 3, Hosts: 40, Names: true, Pages: simweb.Pages{Min: 5, Max: 400, Zipf: 0.8}, PageBytes: 256, LinksPerPage: 6,
		Connection: simweb.Connection{LatencyMin: 200 * time.Millisecond, LatencyMax: 500 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	return web
}

// TestMeasure measures a whole crawl with a changing number of partitions: every page is fetched once, and each move of a slot
// has a pause.
func TestMeasure(t *testing.T) {
	web := labWeb(t)
	measure := func() (m Measured, seen, moved int) {
		sizes := []int{3, 2, 4, 1} // in order
		var epochs []partition.Epoch
		m, err := Measure(Lab{
			Seed: 5, Web: web, Partitions: 1, Most: 4, Slots: 64, Connections: 2,
			Watch: 10 * time.Second, OnSight: func(s Sight) {
				for _, n := range s.Pages {
					seen += n
				}
			},
			PlanEvery: 30 * time.Second, Plan: func(m *partition.Map) (*partition.Map, error) {
				if len(sizes) == 0 {
					return nil, nil
				}
				moves, err := m.Plan(m.Active(sizes[0]))
				if err != nil {
					return nil, err
				}
				sizes, moved = sizes[1:], moved+len(moves)
				next, err := m.Apply(moves)
				epochs = append(epochs, next.Epoch())
				return next, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range m.Pauses {
			if p.Length <= 0 || p.Length > 2*time.Minute || !slices.Contains(epochs, p.Epoch) {
				t.Fatalf("pause %d is %+v", i, p)
			}
		}
		return m, seen, moved
	}
	m, seen, moved := measure()
	if !m.Finished || m.Pages != web.Pages() || m.Twice != 0 {
		t.Errorf("%d pages of %d, %d of them twice; finished: %v", m.Pages, web.Pages(), m.Twice, m.Finished)
	}
	if m.Requests != m.Pages+web.Hosts() {
		t.Errorf("%d requests for %d pages and %d robots.txt", m.Requests, m.Pages, web.Hosts())
	}
	if seen > m.Pages || seen < m.Pages*9/10 { // the last period ends before the crawl
		t.Errorf("%d pages were seen, of %d", seen, m.Pages)
	}
	if len(m.Pauses) != moved || m.Epoch != 5 {
		t.Errorf("%d moves, %d pauses, epoch %d", moved, len(m.Pauses), m.Epoch)
	}
	if c := m.Mail; c.Messages == 0 || c.URLs < c.Messages || c.Bytes == 0 || c.Text < int64(c.URLs)*20 {
		t.Errorf("mail: %+v", c)
	}
	if again, _, _ := measure(); !cmp.Equal(m, again) {
		t.Errorf("measured again (-first +second):\n%s", cmp.Diff(m, again))
	}
}

// TestMeasureForAWhile checks that a crawl ends with its time, and that latency bounds it.
func TestMeasureForAWhile(t *testing.T) {
	web := labWeb(t)
	pages := map[int]int{}
	for _, n := range []int{1, 2} {
		m, err := Measure(Lab{Seed: 5, Web: web, Partitions: n, Slots: 64, Connections: 2, Duration: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if m.Finished || m.Virtual != time.Minute {
			t.Errorf("%d partitions: finished %v after %v", n, m.Finished, m.Virtual)
		}
		pages[n] = m.Requests
		if least, most := n*2*60*2, n*2*60*5; m.Requests < least*9/10 || m.Requests > most {
			t.Errorf("%d partitions: %d requests over 2 connections each, of 200 to 500 ms", n, m.Requests)
		}
	}
	if pages[2] < pages[1]*17/10 {
		t.Errorf("%d requests by one partition, %d by two", pages[1], pages[2])
	}
}

func TestMeasureFails(t *testing.T) {
	mistake := errors.New("no plan")
	_, err := Measure(Lab{
		Seed: 5, Web: labWeb(t), Partitions: 1, Slots: 64, Connections: 2, PlanEvery: 10 * time.Second,
		Plan: func(*partition.Map) (*partition.Map, error) { return nil, mistake },
	})
	if !errors.Is(err, mistake) {
		t.Errorf("got %v", err)
	}
	web, err := simweb.New(simweb.Config{Hosts: 3, Names: true, Kinds: simweb.PageShares{Reset: 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Measure(Lab{Seed: 5, Web: web, Partitions: 1, Slots: 64, Connections: 2}); err == nil {
		t.Error("a web with faults was measured")
	}
	if _, err := Measure(Lab{Seed: 5, Web: web, Partitions: 65, Slots: 64, Connections: 2}); err == nil {
		t.Error("more partitions than slots")
	}
}

// TestMeasureRegions checks that pages are counted by region, that seeds may come late, and that requests from outside are
// served.
func TestMeasureRegions(t *testing.T) {
	other, err := simweb.New(simweb.Config{
		Seed: 4, Hosts: 3, Names: true, Zone: "test", Pages: simweb.Pages{Min: 30}, PageBytes: 256, CrossHost: -1,
		Connection: simweb.Connection{LatencyMin: 100 * time.Millisecond},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := labWeb(t)
	const late = 90 * time.Second
	regions := make([]int, 2)
	asks := []Ask{{2 * time.Minute, web.URL(0, 0)}, {5 * time.Minute, other.URL(0, 7)}, {5 * time.Minute, other.URL(0, 7)}}
	m, err := Measure(Lab{
		Seed: 5, Regions: []Region{{Web: web}, {Web: other, After: late}}, Partitions: 2, Slots: 64, Connections: 2,
		Watch: 10 * time.Second, OnSight: func(s Sight) {
			for i, n := range s.Regions {
				if regions[i] += n; i == 1 && s.At <= late && n > 0 {
					t.Errorf("%d pages of the second region by %v", n, s.At)
				}
			}
		},
		Asks: asks,
	})
	if err != nil {
		t.Fatal(err)
	}
	if regions[1] < other.Pages() || m.Pages-m.Twice != web.Pages()+other.Pages() || !m.Finished {
		t.Errorf("pages by region %v, %d in all, %d of them twice", regions, m.Pages, m.Twice)
	}
	if m.Twice != 2 && m.Twice != 3 { // the last two requests may share one fetch
		t.Errorf("%d pages were fetched twice, for %d requests", m.Twice, len(asks))
	}
	for i, d := range m.Served {
		if d < startTime || d > time.Minute {
			t.Errorf("request %d is served after %v", i, d)
		}
	}
}

// TestCallsPerPage pins the cost rule: the calls of a crawl to queues, table and blob storage grow with thousands of
// pages, not with pages. The pages are small, because no call depends on their size: a WARC object is full at 1,000 pages
// long before it has 32 MiB. The clock is virtual, because a step also commits by time.
func TestCallsPerPage(t *testing.T) {
	w, err := simweb.New(simweb.Config{
		Seed: 1, Hosts: 64, Names: true, Pages: simweb.Pages{Min: 250}, PageBytes: 1 << 10, LinksPerPage: 45,
	})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Measure(Lab{Seed: 1, Web: w, Seeds: 1, Partitions: 4, Slots: partition.DefaultSlots, Connections: 64})
	if err != nil {
		t.Fatal(err)
	}
	if m.Pages != w.Pages() || !m.Finished {
		t.Fatalf("%d pages of %d", m.Pages, w.Pages())
	}
	for _, c := range []struct {
		name    string
		n       int64
		perPage float64
	}{
		{"queue requests", m.Calls.QueueRequests, 0.005},
		{"blob puts", m.Calls.BlobPuts, 0.003},
		{"KV write units", m.Calls.KVWriteUnits, 0.005},
	} {
		got := float64(c.n) / float64(m.Pages)
		if got > c.perPage {
			t.Errorf("%d %s: %.4f per page, not at most %.4f", c.n, c.name, got, c.perPage)
		}
		t.Logf("%s: %d, %.4f per page", c.name, c.n, got)
	}
	t.Logf("%v, %+v", m.Virtual, m.Calls)
}
