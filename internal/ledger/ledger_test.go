package ledger_test

import (
	"math"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

const kb = 1 << 10

// TestUnits checks that a call costs a unit per started 64 KB of a queue, 4 KB of a read or 1 KB of a write,
// and at least one.
func TestUnits(t *testing.T) {
	for _, c := range []struct{ bytes, queue, read, write int64 }{
		{0, 1, 1, 1},
		{1, 1, 1, 1},
		{kb, 1, 1, 1},
		{kb + 1, 1, 1, 2},
		{4 * kb, 1, 1, 4},
		{4*kb + 1, 1, 2, 5},
		{64*kb - 1, 1, 16, 64},
		{64 * kb, 1, 16, 64},
		{64*kb + 1, 2, 17, 65},
		{128 * kb, 2, 32, 128},
		{256 * kb, 4, 64, 256},
		{256*kb + 1, 5, 65, 257},
	} {
		var l ledger.Ledger
		l.QueueRequest("mailbox-00000", int(c.bytes))
		l.KVRead(int(c.bytes))
		l.KVWrite(int(c.bytes))
		l.BlobPut(int(c.bytes))
		l.BlobGet(int(c.bytes))
		want := ledger.Counts{
			QueueRequests: c.queue, KVReadUnits: c.read, KVWriteUnits: c.write,
			BlobPuts: 1, BlobGets: 1, BlobPutBytes: c.bytes, BlobGetBytes: c.bytes,
		}
		if d := cmp.Diff(want, l.Counts()); d != "" {
			t.Errorf("%d bytes (-want +got):\n%s", c.bytes, d)
		}
	}
}

// TestSums counts calls from several goroutines.
func TestSums(t *testing.T) {
	var l ledger.Ledger
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				l.QueueRequest("wakes", 100*kb)
				l.KVRead(5 * kb)
				l.KVWrite(3 * kb)
				l.BlobPut(7)
				l.BlobGet(11)
				l.Invoked()
			}
		})
	}
	wg.Wait()
	want := ledger.Counts{
		QueueRequests: 1600, KVReadUnits: 1600, KVWriteUnits: 2400,
		BlobPuts: 800, BlobGets: 800, BlobPutBytes: 5600, BlobGetBytes: 8800, Functions: 800,
	}
	if d := cmp.Diff(want, l.Counts()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestDefaultPrices checks that the price list has a name, a date and sources, and that no price is missing.
func TestDefaultPrices(t *testing.T) {
	p, err := ledger.DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, p.Date); err != nil {
		t.Errorf("date: %v", err)
	}
	if p.Name == "" || p.Currency != "USD" || len(p.Sources) == 0 {
		t.Errorf("name %q, currency %q, %d sources", p.Name, p.Currency, len(p.Sources))
	}
	for _, s := range p.Sources {
		if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Host == "" {
			t.Errorf("source %q: %v", s, err)
		}
	}
	for name, price := range map[string]float64{
		"queue request": p.QueueRequest, "write unit": p.KVWriteUnit, "read unit": p.KVReadUnit, "put": p.BlobPut,
		"get": p.BlobGet, "function request": p.FunctionRequest, "GB second": p.FunctionGBSecond, "GB per vCPU": p.GBPerVCPU, "GB month": p.BlobGBMonth,
		"schedule": p.Schedule, "alarm": p.AlarmMonth, "GB of logs": p.LogGB, "GB month of logs": p.LogGBMonth, "GB sent": p.TrafficOutGB,
	} {
		if price <= 0 || price > 100 {
			t.Errorf("price of a %s: %g", name, price)
		}
	}
}

// TestPerMillion compares with a bill computed by hand. Prices of requests are per million, so calls per page
// times the price is dollars per million pages.
func TestPerMillion(t *testing.T) {
	prices := ledger.Prices{
		QueueRequest: 0.40, KVWriteUnit: 0.60, KVReadUnit: 0.10, BlobPut: 5, BlobGet: 0.50,
		FunctionRequest: 0.20, FunctionGBSecond: 0.00001, GBPerVCPU: 2, BlobGBMonth: 0.02,
	}
	counts := ledger.Counts{
		QueueRequests: 500, KVReadUnits: 4000, KVWriteUnits: 1000, BlobPuts: 200, BlobGets: 400,
		BlobPutBytes: 5 << 30, BlobGetBytes: 1 << 40, Functions: 100,
	}
	got := prices.PerMillion(counts, 100_000, 300)
	want := ledger.Bill{
		Queue:     0.002,         // 500 / 100,000 * 0.40
		KV:        0.006 + 0.004, // 0.01 * 0.60 + 0.04 * 0.10
		Blob:      0.01 + 0.002,  // 0.002 * 5 + 0.004 * 0.50; bytes read cost nothing
		Functions: 0.06 + 0.0002, // 3,000 s per million * 2 GB * 0.00001, and 0.001 * 0.20
		Retention: 1,             // 50 GB per million * 0.02
	}
	want.Total = 0.002 + 0.01 + 0.012 + 0.0602
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(1e-12, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, pages := range []int64{0, -1} {
		if b := prices.PerMillion(counts, pages, 300); b != (ledger.Bill{}) {
			t.Errorf("%d pages cost %+v", pages, b)
		}
	}
	if b := prices.PerMillion(ledger.Counts{}, math.MaxInt64, 0); b != (ledger.Bill{}) {
		t.Errorf("nothing costs %+v", b)
	}
}

// TestPublishedMistake checks that one message, one write and one object per page cost dollars. If it fails,
// the price list is wrong by an order of magnitude.
func TestPublishedMistake(t *testing.T) {
	p, err := ledger.DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	const pages = 1_000_000
	b := p.PerMillion(ledger.Counts{QueueRequests: 3 * pages, KVWriteUnits: 4 * pages, BlobPuts: pages}, pages, 0)
	if b.Total < 5 || b.Total > 20 {
		t.Errorf("a call of each kind per page costs $%.2f a million", b.Total)
	}
}
