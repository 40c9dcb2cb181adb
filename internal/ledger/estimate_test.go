package ledger_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

func estimate(t *testing.T, change func(*ledger.Deployment)) ledger.Estimate {
	t.Helper()
	p, err := ledger.DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	d := ledger.DefaultDeployment()
	if change != nil {
		change(&d)
	}
	e, err := p.Estimate(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func line(t *testing.T, items []ledger.Item, what string) ledger.Item {
	t.Helper()
	for _, i := range items {
		if i.What == what {
			return i
		}
	}
	t.Fatalf("there is no %q", what)
	return ledger.Item{}
}

func about(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 0.01*math.Abs(want) {
		t.Errorf("%s: %g, not about %g", what, got, want)
	}
}

// TestEstimateByHand computes the default by hand: 8 steps at a time, 30 pages a second, 270 s a step.
func TestEstimateByHand(t *testing.T) {
	e := estimate(t, nil)
	about(t, "pages/s", e.Rate, 8*30)
	if e.PagesPerStep != 8100 || e.BoundBy != "hosts" {
		t.Errorf("bound by %s, %g pages a step", e.BoundBy, e.PagesPerStep)
	}
	const steps = 1e6 / 8100 // 123.5, each with 5 commits
	about(t, "GB-seconds", line(t, e.PerMillion, "function time").Quantity, 1e6/30*0.5)
	about(t, "function time", line(t, e.PerMillion, "function time").Dollars, 0.222)
	about(t, "puts", line(t, e.PerMillion, "objects put").Quantity, 1000+steps*5*1.25)
	about(t, "write units", line(t, e.PerMillion, "records written").Quantity, steps*(5+2)*2)
	// 16 heads of 1.3 kB in each of 69 ticks, and those of steps and commits.
	about(t, "read units", line(t, e.PerMillion, "records read").Quantity, steps*10+steps*5*2+1e6/240/60*16)
	// A request with its TCP/IP headers, and a tenth of a TLS connection.
	about(t, "traffic", line(t, e.PerMillion, "sent to hosts").Quantity, 1e6*(1270+170)/(1<<30))
	// 15 others every 300 s: 1,667 mails, but their 190 MB are billed as 2,899 times 64 KB, sent and received.
	about(t, "queue", line(t, e.PerMillion, "mail").Quantity, 2*2899+1e6/30/20*6+166.7) // six polls in 20 s
	about(t, "retention", e.Retention, 40e9/(1<<30)*0.023)

	about(t, "ticks", line(t, e.Idle, "schedule").Quantity, 43830)
	about(t, "polls", line(t, e.Idle, "polls of queues").Dollars, 0.526)
	about(t, "alarms", line(t, e.Idle, "alarms").Dollars, 1.20)
	for _, sum := range []struct {
		items []ledger.Item
		total float64
	}{{e.PerMillion, e.PerMillionTotal}, {e.Idle, e.IdleTotal}} {
		all := 0.0
		for _, i := range sum.items {
			all += i.Dollars
		}
		about(t, "total", sum.total, all)
	}
	if e.IdleTotal > 2 || e.IdleRest <= 0 || e.IdleRest > e.IdleTotal/2 {
		t.Errorf("an idle month: $%.2f, $%.2f beyond what is free", e.IdleTotal, e.IdleRest)
	}
}

// TestEstimateKnowsHowHeadsGrow compares the estimate of heads with heads as steps write them.
func TestEstimateKnowsHowHeadsGrow(t *testing.T) {
	at := time.Date(2026, 11, 21, 9, 7, 19, 123456789, time.UTC)
	head := blobschema.Head{
		Partition: 7, Fence: 1234, Owner: "0123456789abcdef/12345678", LeaseUntil: at, Commit: naming.Commit("20261121-090719", 7, 1234, 1234),
		Seq: 1234, Epoch: 3, Desired: 4, Due: at, Applied: 123456, Requests: 12, Published: 1233, WakeAt: at, RevisitsDue: at, Threshold: 1.5,
		Calls: blobschema.Calls{QueueRequests: 123456, KVReadUnits: 123456, KVWriteUnits: 123456, BlobPuts: 12345, BlobGets: 12345, BlobPutBytes: 1e10, BlobGetBytes: 1e10, Functions: 1234, FunctionMBMillis: 1e9},
		Totals: blobschema.Totals{
			Known: 1234567, Pending: 123456, Unexamined: 1234, Buffered: 123, Hosts: 1234, Pages: 123456, Bytes: 1e11, Stored: 1e10, Duplicates: 1234,
			OutOfScope: 123456, WaitMillis: 1e9, Retries: 1234, Robots: 1234, Capped: 1234,
			Outcomes: map[string]int64{"ok": 123456, "unchanged": 12345, "redirect": 12345, "client-error": 1234, "server-error": 1234, "timeout": 123, "robots": 1234},
		},
	}
	for _, partitions := range []int{16, 200, 1000} {
		head.Sent = slices.Repeat([]uint64{12345}, partitions)
		b, err := json.Marshal(head)
		if err != nil {
			t.Fatal(err)
		}
		var l ledger.Ledger
		l.KVRead(len(b))
		l.KVWrite(len(b))
		e := estimate(t, func(d *ledger.Deployment) { d.Partitions = partitions })
		want := fmt.Sprintf("%d write units, %d read units", l.Counts().KVWriteUnits, l.Counts().KVReadUnits)
		if !slices.ContainsFunc(e.Assumptions, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("a head of %d partitions has %d bytes, which are %s; assumed is\n%s", partitions, len(b), want, strings.Join(e.Assumptions, "\n"))
		}
	}
}

// TestEstimateKeepsTheTargets checks that with thirty ready hosts a partition, the total without retention and
// traffic keeps to the cost rule, and so do the requests.
func TestEstimateKeepsTheTargets(t *testing.T) {
	for _, partitions := range []int{1, 16, 200} {
		e := estimate(t, func(d *ledger.Deployment) { d.Partitions = partitions })
		requests := 0.0
		for _, what := range []string{"mail", "wakes", "records written", "records read", "objects put", "objects got"} {
			requests += line(t, e.PerMillion, what).Dollars
		}
		if all := e.PerMillionTotal - line(t, e.PerMillion, "sent to hosts").Dollars; all > 0.25 || requests > 0.03 {
			t.Errorf("%d partitions: $%.3f, requests $%.3f", partitions, all, requests)
		}
	}
}

// TestEstimateMoves checks that costs rise where they should, and that CPU is the bottleneck if hosts are not.
func TestEstimateMoves(t *testing.T) {
	base := estimate(t, nil)
	// Five hosts requested every 10 s: waiting for them costs more than being woken 200,000 times, each time
	// with two puts.
	few := estimate(t, func(d *ledger.Deployment) { d.ReadyHosts, d.DelayS = 5, 10 })
	if few.BoundBy != "wakes" || few.PagesPerStep != 5 || few.PerMillionTotal < 4 || few.PerMillionTotal > 12 {
		t.Errorf("5 hosts asked every 10 s: $%.2f, bound by %s", few.PerMillionTotal, few.BoundBy)
	}
	free := estimate(t, func(d *ledger.Deployment) { d.DelayS = 0 })
	if free.BoundBy != "CPU" {
		t.Errorf("without delay: bound by %s", free.BoundBy)
	}
	about(t, "pages/s of 512 MB at 4.2 ms", free.Rate, 8*68.9)
	// A page on each connection takes 6 ms, and sends 1,700 bytes more.
	alone := estimate(t, func(d *ledger.Deployment) { d.DelayS, d.PagesPerConnection = 0, 1 })
	about(t, "pages/s with a connection each", alone.Rate, 8*48.2)
	about(t, "traffic with a connection each", line(t, alone.PerMillion, "sent to hosts").Quantity, 1e6*(1270+1700)/(1<<30))
	if more := estimate(t, func(d *ledger.Deployment) { d.PagesPerWARC = 1 }); more.PerMillionTotal < base.PerMillionTotal+4.9 {
		t.Errorf("an object a page: $%.2f", more.PerMillionTotal)
	}
	if none := estimate(t, func(d *ledger.Deployment) { d.Alarms = 0 }); none.IdleTotal > base.IdleTotal-1.19 {
		t.Errorf("an idle month without alarms: $%.2f", none.IdleTotal)
	}
	// More functions than partitions are of no use, and fewer bound the rate.
	for at, rate := range map[int]float64{1: 30, 3: 90, 16: 480, 1000: 480} {
		about(t, "pages/s", estimate(t, func(d *ledger.Deployment) { d.MaxConcurrency = at }).Rate, rate)
	}
	// A partition with five slow hosts has a step of 2 s each minute: 16 of them need half a function.
	slow := estimate(t, func(d *ledger.Deployment) { d.ReadyHosts, d.DelayS = 5, 10 })
	about(t, "pages/s of slow hosts", slow.Rate, 16*5/60.0)
	turns := estimate(t, func(d *ledger.Deployment) { d.Partitions, d.MaxConcurrency, d.ReadyHosts, d.DelayS = 60, 1, 5, 10 })
	about(t, "pages/s of slow hosts and one function", turns.Rate, 5/2.0)
	// The design's figures for mail between 200 and 1,000 partitions at 60 pages/s, without the polls of mailboxes.
	for partitions, dollars := range map[int]float64{200: 0.003, 1000: 0.010} {
		e := estimate(t, func(d *ledger.Deployment) {
			d.Partitions, d.MaxConcurrency, d.ReadyHosts = partitions, partitions, 60
		})
		if got := line(t, e.PerMillion, "mail").Dollars - 1e6/60/20*6*0.40/1e6; got > 1.5*dollars {
			t.Errorf("mail of %d partitions: $%.4f", partitions, got)
		}
	}
}

// TestEstimateIndexByHand computes the additional cost of searchable pages by hand: a crawl of 240 pages a
// second by 8 steps.
func TestEstimateIndexByHand(t *testing.T) {
	base := estimate(t, nil)
	if len(base.Indexed) > 0 || len(base.Searches) > 0 || base.IndexRetention > 0 {
		t.Error("searching without an index has a cost")
	}
	e := estimate(t, func(d *ledger.Deployment) { d.Index, d.IndexMillis, d.IndexBytes = true, 2, 5000 })
	if e.PerMillionTotal != base.PerMillionTotal {
		t.Errorf("the crawl itself costs $%g, without an index $%g", e.PerMillionTotal, base.PerMillionTotal)
	}
	const (
		elapsed = 1e6 / 240
		index   = elapsed / 120 * 8
		rank    = 16 * 90
	)
	about(t, "index time", line(t, e.Indexed, "index time").Quantity, 0.3*index+2000*1.728)
	about(t, "rank time", line(t, e.Indexed, "rank time").Quantity, 0.25*rank+1e6*20*90*15e-9*1.728)
	about(t, "calls", line(t, e.Indexed, "function calls").Quantity, index+rank)
	about(t, "puts", line(t, e.Indexed, "objects put").Quantity, 2*index*8/7+rank)
	about(t, "reads", line(t, e.Indexed, "records read").Quantity, 10*index+rank*26+elapsed/60*16)
	about(t, "retention", e.IndexRetention, 5e9/(1<<30)*0.023)
	about(t, "searches", line(t, e.Searches, "function time").Dollars, 1.33)
	if e.IndexedTotal > 0.1 || e.SearchesTotal > 5 {
		t.Errorf("index $%.3f, searches $%.2f", e.IndexedTotal, e.SearchesTotal)
	}
	// Four queues are polled, and there are eight more alarms.
	about(t, "polls", line(t, e.Idle, "polls of queues").Quantity, 2*line(t, base.Idle, "polls of queues").Quantity)
	about(t, "alarms", line(t, e.Idle, "alarms").Dollars, 2.0)
	if none := estimate(t, func(d *ledger.Deployment) { d.Index, d.Alarms = true, 0 }); line(t, none.Idle, "alarms").Quantity != 0 {
		t.Error("a deployment without alarms has those of an index")
	}
	if one := estimate(t, func(d *ledger.Deployment) { d.Index, d.Partitions = true, 1 }); line(t, one.Indexed, "rank time").Quantity > 50 {
		t.Errorf("one partition alone computes ranks for %g GB-seconds", line(t, one.Indexed, "rank time").Quantity)
	}
}

// TestEstimateRefuses checks that figures out of range are refused, and that no estimate has such figures.
func TestEstimateRefuses(t *testing.T) {
	p, err := ledger.DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*ledger.Deployment){
		"partitions": func(d *ledger.Deployment) { d.Partitions = 0 },
		"at a time":  func(d *ledger.Deployment) { d.MaxConcurrency = 0 },
		"connection": func(d *ledger.Deployment) { d.PagesPerConnection = 0 },
		"memory":     func(d *ledger.Deployment) { d.MemoryMB = 64 },
		"timeout":    func(d *ledger.Deployment) { d.TimeoutS = 30 },
		"hosts":      func(d *ledger.Deployment) { d.ReadyHosts = 0 },
		"delay":      func(d *ledger.Deployment) { d.DelayS = -1 },
		"CPU":        func(d *ledger.Deployment) { d.CPUMillis = math.NaN() },
		"WARC":       func(d *ledger.Deployment) { d.PagesPerWARC = 0 },
		"stored":     func(d *ledger.Deployment) { d.StoredBytes = math.Inf(1) },
		"sent":       func(d *ledger.Deployment) { d.SentBytes = -1 },
		"alarms":     func(d *ledger.Deployment) { d.Alarms = -1 },
		"to index":   func(d *ledger.Deployment) { d.IndexMillis = math.NaN() },
		"the index":  func(d *ledger.Deployment) { d.IndexBytes = -1 },
	} {
		d := ledger.DefaultDeployment()
		change(&d)
		if _, err := p.Estimate(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestEstimateGoogleByHand computes the default on Google Cloud by hand: the same crawl, in the units that Google bills.
func TestEstimateGoogleByHand(t *testing.T) {
	p, err := ledger.GooglePrices()
	if err != nil {
		t.Fatal(err)
	}
	d := ledger.DefaultDeployment()
	d.Index = true
	e, err := p.Estimate(d)
	if err != nil {
		t.Fatal(err)
	}
	const steps, seconds, cpus = 1e6 / 8100, 1e6 / 30.0, 512.0 / 1769
	about(t, "pages/s", e.Rate, 8*30)
	about(t, "CPU", line(t, e.PerMillion, "function time: CPU").Dollars, seconds*cpus*0.000024)
	about(t, "memory", line(t, e.PerMillion, "function time: GB").Dollars, seconds/2*0.0000025)
	// Links of 190 bytes a page are published once and delivered once; each poll is a pull of at least 1,000 bytes.
	about(t, "mail", line(t, e.PerMillion, "mail").Dollars, 2*190e6/(1<<40)*40)
	about(t, "wakes", line(t, e.PerMillion, "wakes").Dollars, 2*steps*0.40/1e6)
	about(t, "documents written", line(t, e.PerMillion, "records written").Dollars, steps*(5+2)*0.09/1e5)
	about(t, "documents read", line(t, e.PerMillion, "records read").Dollars, (steps*10+steps*5*2+1e6/240/60*16)*0.03/1e5)
	about(t, "puts", line(t, e.PerMillion, "objects put").Dollars, (1000+steps*5*1.25)*0.005/1000)
	about(t, "traffic", line(t, e.PerMillion, "sent to hosts").Dollars, 1e6*(1270+170)/(1<<30)*0.12)
	about(t, "retention", e.Retention, 40e9/(1<<30)*0.020)
	// An idle month: one job of Cloud Scheduler, and 43,830 runs of 100 ms with the memory of a step.
	about(t, "CPU of ticks", line(t, e.Idle, "function time: CPU").Quantity, 4383*cpus)
	about(t, "schedule", line(t, e.Idle, "schedule").Dollars, 0.10)
	about(t, "an idle month", e.IdleTotal, 0.284)
	if e.IdleRest > 0.001 {
		t.Errorf("an idle month costs $%.3f beyond the free quotas", e.IdleRest)
	}

	// A partition alone sends no mail, but polls its mailbox.
	d = ledger.DefaultDeployment()
	d.Partitions = 1
	if e, err = p.Estimate(d); err != nil {
		t.Fatal(err)
	}
	about(t, "polls", line(t, e.PerMillion, "mail").Quantity, seconds/(10/3.0)*1000/(1<<30))

	// CPUs as infra/live/gcp chooses them: a fraction for less than a GB, whole ones above.
	for memory, cpus := range map[int]float64{256: 256.0 / 1769, 512: 512.0 / 1769, 640: 0.5, 1024: 1024.0 / 1769, 2048: 1, 8192: 2, 10240: 4} {
		d := ledger.DefaultDeployment()
		d.MemoryMB, d.DelayS = memory, 0
		e, err := p.Estimate(d)
		if err != nil {
			t.Fatal(err)
		}
		about(t, fmt.Sprintf("pages/s of %d MB", memory), e.Rate, 8*cpus/0.0042)
	}
}
