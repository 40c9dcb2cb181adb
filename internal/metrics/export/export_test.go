package export

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/service"
)

// TestExporter checks the exposition with Prometheus' own linter: every metric of the list is there.
func TestExporter(t *testing.T) {
	e := New()
	f := metrics.Figures{
		Crawl: "c", Totals: blobschema.Totals{Pages: 7, Outcomes: map[string]int64{"ok": 7, "dns": 1}},
		Heads: []blobschema.Head{{Partition: 3, Totals: blobschema.Totals{Pages: 7}}}, Dollars: 0.5,
	}
	e.Read(func() metrics.Figures { return f })
	e.Observe(service.Done{Kind: "step", Took: time.Second, Pages: 7})
	e.Observe(service.Done{Kind: "step", Took: time.Second, Err: errors.New("no")})
	e.Observe(service.Done{Kind: "step", Err: crawl.ErrLeaseTaken})
	problems, err := testutil.GatherAndLint(e.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
	families, err := e.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, family := range families {
		there[family.GetName()] = true
	}
	for i := range metrics.All {
		if !there[metrics.All[i].Name] {
			t.Errorf("no %s", metrics.All[i].Name)
		}
	}
	compare := func(want, name string) {
		t.Helper()
		if err := testutil.GatherAndCompare(e.registry, strings.NewReader(want), name); err != nil {
			t.Error(err)
		}
	}
	pages := func(crawl, n string) string {
		return "# HELP orbweaver_pages_total pages that were fetched, without revisits\n# TYPE orbweaver_pages_total counter\norbweaver_pages_total{crawl=\"" + crawl + "\"} " + n + "\n"
	}
	compare(pages("c", "7"), "orbweaver_pages_total")
	compare("# HELP orbweaver_step_errors_total steps and coordinator runs that failed\n# TYPE orbweaver_step_errors_total counter\norbweaver_step_errors_total{kind=\"step\"} 1\n", metrics.StepErrors)
	f.Totals.Pages = 5 // a step failed
	compare(pages("c", "7"), "orbweaver_pages_total")
	f.Crawl = "d"
	compare(pages("d", "5"), "orbweaver_pages_total")
	f.Crawl = ""
	compare("", "orbweaver_pages_total")
}

// TestConcurrency checks that scrapes, steps and a change of the source may overlap; the race detector sees more.
func TestConcurrency(t *testing.T) {
	e := New()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				e.Read(func() metrics.Figures { return metrics.Figures{Crawl: "c"} })
				e.Observe(service.Done{Kind: "tick"})
				if _, err := e.registry.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func TestWanted(t *testing.T) {
	for _, c := range []struct {
		env               map[string]string
		byMetrics, traces bool
	}{
		{nil, false, false},
		{map[string]string{endpoint: "http://x"}, true, true},
		{map[string]string{endpoint: "http://x", "OTEL_TRACES_EXPORTER": "none"}, true, false},
		{map[string]string{traceEndpoint: "http://x"}, false, true},
		{map[string]string{metricEndpoint: "http://x"}, true, false},
		{map[string]string{endpoint: "http://x", "OTEL_SDK_DISABLED": "true"}, false, false},
	} {
		if m, s := Wanted(func(k string) string { return c.env[k] }); m != c.byMetrics || s != c.traces {
			t.Errorf("%v: metrics %v, spans %v", c.env, m, s)
		}
	}
}
