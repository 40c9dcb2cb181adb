package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/orbweaver/orbweaver/blobschema"
)

// receiver takes metrics and spans by OTLP over HTTP.
type receiver struct {
	mu    sync.Mutex
	last  map[string]float64 // values without labels of the last request, by name
	spans []string           // names
	pages int64              // of the spans
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, err := io.ReadAll(req.Body)
	var m metricspb.ExportMetricsServiceRequest
	var s tracepb.ExportTraceServiceRequest
	switch {
	case err != nil:
	case req.URL.Path == "/v1/metrics":
		err = proto.Unmarshal(body, &m)
	case req.URL.Path == "/v1/traces":
		err = proto.Unmarshal(body, &s)
	default:
		err = fmt.Errorf("unknown path %s", req.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	for _, of := range m.GetResourceMetrics() {
		for _, scope := range of.GetScopeMetrics() {
			for _, metric := range scope.GetMetrics() {
				for _, p := range append(metric.GetSum().GetDataPoints(), metric.GetGauge().GetDataPoints()...) {
					r.last[metric.GetName()] = p.GetAsDouble()
				}
			}
		}
	}
	for _, of := range s.GetResourceSpans() {
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans = append(r.spans, span.GetName())
				for _, a := range span.GetAttributes() {
					if a.GetKey() == "orbweaver.pages" {
						r.pages += a.GetValue().GetIntValue()
					}
				}
			}
		}
	}
}

// scrape returns the exposition at an address; "" before it is served.
func scrape(t *testing.T, addr string) string {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, b)
	}
	return string(b)
}

// valueOf returns the first value of a metric in an exposition; -1 for none.
func valueOf(text, name string) float64 {
	m := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}\n]*\})? (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		return -1
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return -1
	}
	return v
}

// totalsOf returns the totals that the status command reports.
func totalsOf(t *testing.T, dir string) (totals blobschema.Totals) {
	t.Helper()
	status, out := runCommand(t.Context(), "status", "--json", "--data", dir)
	if status != exitOK {
		t.Fatalf("status %d: %s", status, out)
	}
	var r struct{ Totals blobschema.Totals }
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	return r.Totals
}

// TestMetrics crawls a site, and compares the metrics of the running process with status, and the last ones that it sends by OTLP
// with the status after the crawl.
func TestMetrics(t *testing.T) {
	s := newSite()
	defer s.close()
	got := &receiver{last: map[string]float64{}}
	srv := httptest.NewServer(got)
	defer srv.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", srv.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
	dir, addr := t.TempDir(), freeAddress(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var crawl sync.WaitGroup
	crawl.Go(func() {
		if status, errOut := runCommand(ctx, "crawl", "--data", dir, "--allow-net", "127.0.0.1", "--delay", "40ms", "--metrics", addr, "--quiet", s.url+"/0"); status != exitOK {
			t.Errorf("crawl: status %d: %s", status, errOut)
		}
	})
	var text string
	for valueOf(text, "orbweaver_pages_total") < 3 {
		if ctx.Err() != nil {
			t.Fatalf("no pages:\n%s", text)
		}
		time.Sleep(10 * time.Millisecond)
		text = scrape(t, addr)
	}
	now, later := totalsOf(t, dir), scrape(t, addr)
	before, after := int64(valueOf(text, "orbweaver_pages_total")), int64(valueOf(later, "orbweaver_pages_total"))
	if before > now.Pages || now.Pages > after {
		t.Errorf("metrics say %d and then %d pages, status between them %d", before, after, now.Pages)
	}
	if problems, err := promlint.New(strings.NewReader(later)).Lint(); err != nil || len(problems) > 0 {
		t.Errorf("%v %v\n%s", problems, err, later)
	}
	if cost := valueOf(later, "orbweaver_cost_dollars_total"); cost <= 0 || cost > 0.01 {
		t.Errorf("the calls cost $%g", cost)
	}
	for _, name := range []string{"orbweaver_running", "orbweaver_running_steps", "orbweaver_known_urls"} {
		if valueOf(later, name) < 1 {
			t.Errorf("%s is %v", name, valueOf(later, name))
		}
	}
	if strings.Contains(later, "127.0.0.1") {
		t.Errorf("a host's name is in the metrics:\n%s", later)
	}
	crawl.Wait()
	got.mu.Lock()
	defer got.mu.Unlock()
	end := totalsOf(t, dir)
	for name, want := range map[string]int64{
		"orbweaver_pages_total": end.Pages, "orbweaver_received_bytes_total": end.Bytes, "orbweaver_pending_urls": 0, "orbweaver_running": 0,
	} {
		if int64(got.last[name]) != want {
			t.Errorf("the last %s by OTLP is %v, want %d", name, got.last[name], want)
		}
	}
	steps := 0
	for _, name := range got.spans {
		if name == "step" {
			steps++
		}
	}
	if steps == 0 || got.pages != end.Pages || int64(steps) >= end.Pages {
		t.Errorf("%d spans of steps with %d pages, want %d", steps, got.pages, end.Pages)
	}
}

// TestCloudWorkMetrics checks the metrics of a worker, and of a command that follows a crawl.
func TestCloudWorkMetrics(t *testing.T) {
	c := memoryCloud(t)
	addr, followed := freeAddress(t), freeAddress(t)
	w := c.worker("--metrics", addr)
	var follow sync.WaitGroup
	follow.Go(func() {
		c.run("crawl", "--delay", "50ms", "--every", "50ms", "--metrics", followed, c.site.url+"/0").ends(exitOK, `^Finished: nothing is left to do, 40 pages\.$`)
	})
	seen := false
	for begin := time.Now(); valueOf(scrape(t, addr), "orbweaver_pages_total") != 40; time.Sleep(20 * time.Millisecond) {
		seen = seen || valueOf(scrape(t, followed), "orbweaver_running") == 1
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("not all pages:\n%s", scrape(t, addr))
		}
	}
	follow.Wait()
	if text := scrape(t, addr); !seen || valueOf(text, `orbweaver_step_seconds_count`) < 1 {
		t.Errorf("figures of the followed crawl seen: %v; of the worker:\n%s", seen, text)
	}
	w.leave()
	w.ends(exitOK)
}

func TestMetricsRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().String()
	dir := t.TempDir()
	if status, errOut := runCommand(t.Context(), "crawl", "--data", dir, "--metrics", addr, "http://example.org/"); status != exitUsage || !strings.Contains(errOut, "cannot serve metrics at "+addr) {
		t.Errorf("a taken address: %d %s", status, errOut)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if status, errOut := runCommand(t.Context(), "crawl", "--data", dir, "http://example.org/"); status != exitUsage || !strings.Contains(errOut, "only http/protobuf") {
		t.Errorf("another protocol: %d %s", status, errOut)
	}
}
