// Package metrics lists the figures by which an operator watches a crawl, and writes them as CloudWatch embedded metrics.
//
// [All] is the only list: names, help texts and how each figure is read from [Figures]. Package export serves it to
// Prometheus and sends it by OTLP; functions write a part of it, at most ten figures, into the line that they log anyway
// ([EMF]). docs/howto/metrics.md, the dashboards and the alarms are compared with the list by tests.
//
// Names follow Prometheus: a unit in the name, and _total for counters. No label has a value that a web page or a crawled
// host could choose: labels are outcomes, kinds of calls and partitions, and all of them are bounded.
package metrics

import (
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// MaxPartitions is the largest number of partitions that have metrics of their own; beyond it there are only sums.
const MaxPartitions = 64

// Figures are what metrics are read from. Fields that the reader does not know are zero.
type Figures struct {
	Crawl   string // id; "": no crawl, so that only metrics of the process have values
	Totals  blobschema.Totals
	Heads   []blobschema.Head
	Map     blobschema.MapRecord
	Mail    int64 // sent and not applied
	Leased  int   // partitions with a running step
	Running bool  // neither paused, stopped, finished nor at its limit
	Rest    schedule.Rest
	Active  int // requests under way
	Steps   int // running
	Calls   blobschema.Calls
	Dollars float64 // price of Calls
}

// FromReport returns the figures of a coordinator run. The result of an idle run, which reads no heads, has no crawl.
func FromReport(r *crawl.Report) (f Figures) {
	if r == nil || r.Idle {
		return f
	}
	f = Figures{
		Crawl: r.Crawl.ID, Totals: r.Totals, Heads: r.Heads, Map: r.Map, Leased: r.Leased,
		Running: !r.Desired.Pause && !r.Desired.Stop && !r.Finished && !r.Limited,
	}
	sent, applied := uint64(len(r.Crawl.SeedBatches)*r.Crawl.Partitions), uint64(0)
	for _, n := range r.Requests.Sent {
		sent += n
	}
	for i := range r.Heads {
		applied += r.Heads[i].Applied
		for _, n := range r.Heads[i].Sent {
			sent += n
		}
	}
	f.Mail = int64(sent) - int64(applied)
	return f
}

// Kind is the type of a metric.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Metric is one figure.
type Metric struct {
	Name string
	Kind Kind
	Help string
	// Label is the name of the label, or "". Metrics of a crawl also have the label "crawl".
	Label string
	// Process means that the metric is of this process, so that those of several processes add up. All other metrics are
	// of the whole crawl.
	Process bool
	// EMF is the kind of log line in which functions write the metric: "step", "tick", "any" or "" for none.
	EMF string
	// Read passes each value with its label to put. It is nil for metrics that package export counts.
	Read func(f *Figures, put func(value float64, label string))
}

// The metrics that package export counts, because they are of events.
const (
	StepSeconds = "orbweaver_step_seconds"
	StepErrors  = "orbweaver_step_errors_total"
	StepPages   = "orbweaver_step_pages_total"
)

// All lists the metrics.
var All = []Metric{
	total("orbweaver_pages_total", "step", "pages that were fetched, without revisits", func(f *Figures) int64 { return f.Totals.Pages }),
	total("orbweaver_requisites_total", "", "style sheets, scripts, images and media that were fetched because pages need them", func(f *Figures) int64 { return f.Totals.Requisites }),
	total("orbweaver_fetches_total", "step", "URLs that got an outcome, revisits included", fetches),
	{Name: "orbweaver_outcomes_total", Kind: Counter, Label: "outcome", Help: "URLs that got an outcome, by outcome", Read: outcomes},
	total("orbweaver_received_bytes_total", "step", "bytes received from web servers", func(f *Figures) int64 { return f.Totals.Bytes }),
	total("orbweaver_stored_bytes_total", "", "bytes of WARC objects", func(f *Figures) int64 { return f.Totals.Stored }),
	total("orbweaver_retries_total", "step", "requests that failed and are sent again later", func(f *Figures) int64 { return f.Totals.Retries }),
	total("orbweaver_revisits_total", "", "pages fetched again because they may have changed", func(f *Figures) int64 { return f.Totals.Again }),
	total("orbweaver_changed_revisits_total", "", "revisits whose page had changed", func(f *Figures) int64 { return f.Totals.Changed }),
	total("orbweaver_duplicates_total", "", "answers whose payload was stored already", func(f *Figures) int64 { return f.Totals.Duplicates }),
	total("orbweaver_connections_total", "", "connections opened to web servers", func(f *Figures) int64 { return f.Totals.Connections }),
	total("orbweaver_dead_mail_total", "", "mail that could not be read", func(f *Figures) int64 { return f.Totals.DeadMail }),
	total("orbweaver_commits_total", "", "commits of all partitions", sum(func(h *blobschema.Head) int64 { return int64(h.Seq) })),
	total("orbweaver_applied_mail_total", "", "mail that partitions have applied", sum(func(h *blobschema.Head) int64 { return int64(h.Applied) })),

	gauge("orbweaver_known_urls", "tick", "URLs that the crawl knows", func(f *Figures) int64 { return f.Totals.Known + f.Totals.Unexamined }),
	gauge("orbweaver_pending_urls", "tick", "URLs that are known and not settled", func(f *Figures) int64 { return f.Totals.Pending + f.Totals.Unexamined }),
	gauge("orbweaver_known_hosts", "", "hosts that the crawl knows", func(f *Figures) int64 { return f.Totals.Hosts }),
	gauge("orbweaver_unread_mail", "tick", "mail that was sent and is not applied", func(f *Figures) int64 { return f.Mail }),
	gauge("orbweaver_running", "tick", "1 while the crawl is neither paused, stopped, finished nor at its limit", running),
	gauge("orbweaver_leased_partitions", "", "partitions with a running step", func(f *Figures) int64 { return int64(f.Leased) }),
	gauge("orbweaver_map_epoch", "", "version of the map of slots to partitions", func(f *Figures) int64 { return int64(f.Map.Epoch) }),
	gauge("orbweaver_moving_slots", "", "slots on the way to another partition", moving),
	byPartition("orbweaver_partition_pages_total", Counter, "pages of a partition", func(h *blobschema.Head) int64 { return h.Totals.Pages }),
	byPartition("orbweaver_partition_pending_urls", Gauge, "pending URLs of a partition", func(h *blobschema.Head) int64 { return h.Totals.Pending + h.Totals.Unexamined }),

	process("orbweaver_active_requests", Gauge, "", "requests under way", func(f *Figures) int64 { return int64(f.Active) }),
	process("orbweaver_waiting_hosts", Gauge, "", "hosts with URLs that may not be requested sooner", func(f *Figures) int64 { return int64(f.Rest.Keys - f.Rest.Failed - f.Rest.Silent) }),
	process("orbweaver_refusing_hosts", Gauge, "step", "hosts that failed or demanded a pause", func(f *Figures) int64 { return int64(f.Rest.Failed) }),
	process("orbweaver_silent_hosts", Gauge, "", "hosts that did not answer", func(f *Figures) int64 { return int64(f.Rest.Silent) }),
	process("orbweaver_running_steps", Gauge, "", "running steps", func(f *Figures) int64 { return int64(f.Steps) }),
	{Name: "orbweaver_calls_total", Kind: Counter, Label: "call", Process: true, Help: "calls of queues, table and bucket, in billed units", Read: calls},
	{Name: "orbweaver_cost_dollars_total", Kind: Counter, Process: true, EMF: "any", Help: "price of the calls, and of the time of functions, at list prices of AWS",
		Read: func(f *Figures, put func(float64, string)) { put(f.Dollars, "") }},
	{Name: StepSeconds, Kind: Histogram, Label: "kind", Process: true, Help: "duration of steps and coordinator runs"},
	{Name: StepErrors, Kind: Counter, Label: "kind", Process: true, Help: "steps and coordinator runs that failed"},
	{Name: StepPages, Kind: Counter, Label: "kind", Process: true, Help: "pages of the steps that have ended"},
}

func of(read func(*Figures) int64) func(*Figures, func(float64, string)) {
	return func(f *Figures, put func(float64, string)) { put(float64(read(f)), "") }
}

func total(name, emf, help string, read func(*Figures) int64) Metric {
	return Metric{Name: name, Kind: Counter, Help: help, EMF: emf, Read: of(read)}
}

func gauge(name, emf, help string, read func(*Figures) int64) Metric {
	return Metric{Name: name, Kind: Gauge, Help: help, EMF: emf, Read: of(read)}
}

func process(name string, kind Kind, emf, help string, read func(*Figures) int64) Metric {
	return Metric{Name: name, Kind: kind, Help: help, Process: true, EMF: emf, Read: of(read)}
}

func byPartition(name string, kind Kind, help string, read func(*blobschema.Head) int64) Metric {
	return Metric{Name: name, Kind: kind, Help: help, Label: "partition", Read: func(f *Figures, put func(float64, string)) {
		if len(f.Heads) > MaxPartitions {
			return
		}
		for i := range f.Heads {
			put(float64(read(&f.Heads[i])), strconv.Itoa(int(f.Heads[i].Partition)))
		}
	}}
}

func sum(read func(*blobschema.Head) int64) func(*Figures) int64 {
	return func(f *Figures) (n int64) {
		for i := range f.Heads {
			n += read(&f.Heads[i])
		}
		return n
	}
}

func fetches(f *Figures) (n int64) {
	for _, of := range f.Totals.Outcomes {
		n += of
	}
	return n
}

func outcomes(f *Figures, put func(float64, string)) {
	for outcome, n := range f.Totals.Outcomes {
		put(float64(n), outcome)
	}
}

func running(f *Figures) int64 {
	if f.Running {
		return 1
	}
	return 0
}

func moving(f *Figures) (n int64) {
	for i := range f.Map.Moving {
		n += int64(len(f.Map.Moving[i].Slots))
	}
	return n
}

func calls(f *Figures, put func(float64, string)) {
	c := &f.Calls
	for call, n := range map[string]int64{
		"queue_request": c.QueueRequests, "table_read": c.KVReadUnits, "table_write": c.KVWriteUnits, "blob_put": c.BlobPuts,
		"blob_get": c.BlobGets, "function": c.Functions,
	} {
		put(float64(n), call)
	}
}
