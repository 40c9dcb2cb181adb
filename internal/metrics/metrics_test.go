package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// find returns the metric of a name; nil for none. A histogram also has the names of its series.
func find(name string) *Metric {
	for i := range All {
		m := &All[i]
		if m.Name == name || m.Kind == Histogram && slices.Contains([]string{m.Name + "_bucket", m.Name + "_sum", m.Name + "_count"}, name) {
			return m
		}
	}
	return nil
}

func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile("../../" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var named = regexp.MustCompile(`\borbweaver_[a-z_]+`)

// TestReaders checks that the documents, dashboards and alarms name metrics that exist, and that CloudWatch has those that are
// shown from it.
func TestReaders(t *testing.T) {
	for _, file := range []string{"docs/howto/metrics.md", "infra/grafana/orbweaver.json", "infra/aws/watch/dashboard.tf"} {
		names := named.FindAllString(read(t, file), -1)
		if len(names) < 15 {
			t.Errorf("%s names %d metrics: the pattern misses them", file, len(names))
		}
		for _, name := range names {
			switch m := find(name); {
			case m == nil:
				t.Errorf("%s: there is no %s", file, name)
			case strings.HasSuffix(file, ".tf") && m.EMF == "":
				t.Errorf("%s: functions do not write %s", file, name)
			}
		}
	}
	if find("orbweaver_nothing_total") != nil || find("orbweaver_step_seconds_sum") == nil {
		t.Error("names are not looked up")
	}
}

// TestTable checks that the page has a row for each metric.
func TestTable(t *testing.T) {
	page, emf := read(t, "docs/howto/metrics.md"), 0
	for i := range All {
		m := &All[i]
		scope, label, cloud := "crawl", "", ""
		if m.Process {
			scope = "process"
		}
		if m.Label != "" {
			label = "`" + m.Label + "`"
		}
		if m.EMF != "" {
			cloud = "yes"
			emf++
		}
		row := fmt.Sprintf("| `%s` | %s | %s | %s | %s | %s |\n", m.Name, m.Kind, scope, label, m.Help, cloud)
		if !strings.Contains(page, row) {
			t.Errorf("docs/howto/metrics.md lacks the row\n%s", row)
		}
	}
	if emf != MaxEMF {
		t.Errorf("functions write %d metrics: each beyond %d costs money", emf, MaxEMF)
	}
}

// TestEMF checks a log line against CloudWatch's rules: every metric and dimension that _aws names is a member of the line with a
// number or text, and the time is in milliseconds.
func TestEMF(t *testing.T) {
	at := time.UnixMilli(1_800_000_000_123)
	before := Figures{Totals: blobschema.Totals{Pages: 10, Outcomes: map[string]int64{"ok": 10}, Bytes: 100}}
	after := Figures{
		Totals: blobschema.Totals{Pages: 12, Outcomes: map[string]int64{"ok": 12, "timeout": 3}, Bytes: 350, Pending: 7},
		Rest:   schedule.Rest{Keys: 5, Failed: 2}, Dollars: 0.001, Running: true,
	}
	for kind, want := range map[string]map[string]float64{
		"step": {
			"orbweaver_pages_total": 2, "orbweaver_fetches_total": 5, "orbweaver_received_bytes_total": 250, "orbweaver_retries_total": 0,
			"orbweaver_refusing_hosts": 2, "orbweaver_cost_dollars_total": 0.001,
		},
		"tick": {
			"orbweaver_known_urls": 0, "orbweaver_pending_urls": 7, "orbweaver_unread_mail": 0, "orbweaver_running": 1,
			"orbweaver_cost_dollars_total": 0.001,
		},
		"": {"orbweaver_cost_dollars_total": 0.001},
	} {
		var b bytes.Buffer
		slog.New(slog.NewJSONHandler(&b, nil)).Info("line", EMF("mine", kind, at, &before, &after)...)
		if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1 {
			t.Errorf("%d lines", n)
		}
		var line map[string]json.RawMessage
		var head emfHead
		if err := json.Unmarshal(b.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(line["_aws"], &head); err != nil || head.Timestamp != at.UnixMilli() || len(head.CloudWatchMetrics) != 1 {
			t.Fatalf("%v %+v", err, head)
		}
		d := head.CloudWatchMetrics[0]
		if d.Namespace != Namespace || len(d.Dimensions) != 1 || len(d.Dimensions[0]) != 1 || string(line[d.Dimensions[0][0]]) != `"mine"` {
			t.Errorf("%+v in %s", d, b.Bytes())
		}
		got := map[string]float64{}
		for _, m := range d.Metrics {
			var v float64
			if err := json.Unmarshal(line[m.Name], &v); err != nil || !slices.Contains([]string{"Count", "Bytes", "None"}, m.Unit) {
				t.Errorf("%s: %v, unit %q", m.Name, err, m.Unit)
			}
			got[m.Name] = v
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %v, want %v", kind, got, want)
		}
	}
}

// TestFromReport checks the figures that no record has as they are.
func TestFromReport(t *testing.T) {
	r := crawl.Report{
		Crawl:    blobschema.Crawl{ID: "c", Partitions: 2, SeedBatches: make([]string, 1)},
		Heads:    []blobschema.Head{{Applied: 4, Sent: []uint64{0, 5}}, {Partition: 1, Applied: 2}},
		Requests: blobschema.Requests{Sent: map[partition.ID]uint64{0: 3}},
	}
	if f := FromReport(&r); f.Mail != 2+5+3-6 || !f.Running || f.Crawl != "c" {
		t.Errorf("%+v", f)
	}
	r.Desired.Pause = true
	if FromReport(&r).Running {
		t.Error("a paused crawl is running")
	}
	if r.Idle = true; FromReport(&r).Crawl != "" || FromReport(nil).Crawl != "" {
		t.Error("figures of a run that read no heads")
	}
}

// TestPartitions checks that partitions have metrics only while they are few.
func TestPartitions(t *testing.T) {
	m := find("orbweaver_partition_pages_total")
	for _, n := range []int{MaxPartitions, MaxPartitions + 1} {
		count := 0
		m.Read(&Figures{Heads: make([]blobschema.Head, n)}, func(float64, string) { count++ })
		if n <= MaxPartitions && count != n || n > MaxPartitions && count != 0 {
			t.Errorf("%d values of %d partitions", count, n)
		}
	}
}
