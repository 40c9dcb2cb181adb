package main

import (
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

// TestSummaryFigures checks that the cost of a run is divided by all fetched pages, including known ones. The total waiting
// time of hosts is shown as a number of hosts, because it may be longer than the run.
func TestSummaryFigures(t *testing.T) {
	s := &summary{
		where:  where{at: folderTarget("d")},
		before: blobschema.Totals{Pages: 42, Outcomes: map[string]int64{"ok": 42}, Hosts: 2, WaitMillis: 60_000},
		Totals: blobschema.Totals{Pages: 43, Outcomes: map[string]int64{"ok": 62, "unchanged": 30, "client-error": 2}, Hosts: 2, WaitMillis: 85_000},
	}
	s.measure(&s.before, 18*time.Second)
	calls := ledger.Counts{QueueRequests: 500, KVReadUnits: 300, KVWriteUnits: 40, BlobPuts: 30, BlobGets: 20, BlobPutBytes: 1 << 20}
	prices, err := ledger.DefaultPrices()
	if err != nil {
		t.Fatal(err)
	}
	s.price(prices, calls, time.Second)
	if want := prices.PerMillion(calls, 50, 1); s.Cost != want {
		t.Errorf("cost %+v, want %+v", s.Cost, want)
	}
	text := text("summary", s)
	for _, want := range []string{
		"  pages      43; this run 1 in 18 s, 0.1/s\n", "  recrawled  49 further answers\n", "  outcomes   ok 62 · unchanged 30 · client-error 2\n",
		"  hosts      2; on average 1.4 of them waited for their pace\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
