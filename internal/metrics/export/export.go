// Package export serves the figures of package metrics to Prometheus, and sends them and spans by OTLP. It is apart from
// that package because functions must not link its libraries.
package export

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/trace"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/service"
)

// Exporter holds the metrics of a process. Its methods are safe for concurrent use.
type Exporter struct {
	registry *prometheus.Registry
	figures  *collector
	seconds  *prometheus.HistogramVec
	failed   *prometheus.CounterVec
	pages    *prometheus.CounterVec
	tracer   trace.Tracer // nil without OTLP
}

// Bounds of the duration of a step in seconds: a coordinator run takes some milliseconds, a step up to several minutes.
var stepBuckets = []float64{.01, .03, .1, .3, 1, 3, 10, 30, 60, 120, 300, 900}

// New returns an exporter.
func New() *Exporter {
	c := &collector{highest: map[string]float64{}}
	e := &Exporter{registry: prometheus.NewRegistry(), figures: c}
	byKind := []string{"kind"}
	for i := range metrics.All {
		m := &metrics.All[i]
		switch {
		case m.Read != nil:
			c.list = append(c.list, described{m, prometheus.NewDesc(m.Name, m.Help, labels(m), nil)})
		case m.Kind == metrics.Histogram:
			e.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: stepBuckets}, byKind)
		case m.Name == metrics.StepErrors:
			e.failed = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, byKind)
		default:
			e.pages = prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, byKind)
		}
	}
	e.registry.MustRegister(c, e.seconds, e.failed, e.pages, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return e
}

// Read makes each scrape read the figures from read, one scrape at a time. Before, there are only those of [Exporter.Observe].
func (e *Exporter) Read(read func() metrics.Figures) {
	e.figures.mu.Lock()
	defer e.figures.mu.Unlock()
	e.figures.read = read
}

// labels returns the names of a metric's labels.
func labels(m *metrics.Metric) (names []string) {
	if !m.Process {
		names = append(names, "crawl")
	}
	if m.Label != "" {
		names = append(names, m.Label)
	}
	return names
}

// Handler returns the handler of /metrics.
func (e *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 5 * time.Second})
}

// Observe counts a step, coordinator run or job that has ended, and makes a span of it if spans are sent. A step that another
// process was faster to begin does not count.
func (e *Exporter) Observe(d service.Done) {
	if errors.Is(d.Err, crawl.ErrLeaseTaken) {
		return
	}
	e.seconds.WithLabelValues(d.Kind).Observe(d.Took.Seconds())
	failed := e.failed.WithLabelValues(d.Kind) // a counter that exists shows its first increase
	if d.Err != nil {
		failed.Inc()
	}
	e.pages.WithLabelValues(d.Kind).Add(float64(max(0, d.Pages)))
	if e.tracer != nil {
		e.span(&d)
	}
}

// collector reads all figures at each scrape.
type collector struct {
	list []described

	mu      sync.Mutex
	read    func() metrics.Figures // nil for none
	crawl   string
	highest map[string]float64 // value of each counter at the last scrape
}

type described struct {
	*metrics.Metric
	desc *prometheus.Desc
}

// Describe is of [prometheus.Collector].
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, m := range c.list {
		to <- m.desc
	}
}

// Collect is of [prometheus.Collector]. The figures of a failed step fall back to its last commit, but a counter may not
// fall: Prometheus would take that for a restart from zero. So it keeps its highest value.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.read == nil {
		return
	}
	f := c.read()
	if f.Crawl != "" && f.Crawl != c.crawl {
		c.crawl = f.Crawl
		clear(c.highest)
	}
	for _, m := range c.list {
		if !m.Process && f.Crawl == "" {
			continue
		}
		kind := prometheus.GaugeValue
		if m.Kind == metrics.Counter {
			kind = prometheus.CounterValue
		}
		m.Read(&f, func(v float64, label string) {
			if m.Kind == metrics.Counter {
				series := m.Name + " " + label
				v = max(v, c.highest[series])
				c.highest[series] = v
			}
			var values []string
			if !m.Process {
				values = append(values, f.Crawl)
			}
			if m.Label != "" {
				values = append(values, label)
			}
			to <- prometheus.MustNewConstMetric(m.desc, kind, v, values...)
		})
	}
}
