package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/otel"

	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/metrics/export"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

const metricsUsage = "serve metrics for Prometheus at this address, such as 127.0.0.1:9464: /metrics"

// startMetrics serves /metrics at an address, and sends metrics and spans where the variables of OpenTelemetry say so. Without
// both it starts nothing, and the exporter is nil. end sends what is left, for at most five seconds.
func startMetrics(ctx context.Context, addr string, log *slog.Logger) (e *export.Exporter, end func(), err error) {
	byMetrics, byTraces := export.Wanted(os.Getenv)
	end = func() {}
	if addr == "" && !byMetrics && !byTraces {
		return nil, end, nil
	}
	e = export.New()
	if addr != "" {
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", e.Handler())
		if end, err = serveAt(addr, "metrics", 5*time.Second, mux); err != nil {
			return nil, nil, err
		}
	}
	if !byMetrics && !byTraces {
		return e, end, nil
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("OpenTelemetry", "error", err) }))
	stop, err := e.Push(ctx, version, os.Getenv)
	if err != nil {
		end()
		return nil, nil, usagef("%w", err)
	}
	closeServer := end
	return e, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := stop(ctx); err != nil {
			log.Warn("send the last metrics", "error", err)
		}
		closeServer()
	}, nil
}

// figuresOf returns the figures of a crawl that this process owns.
func figuresOf(j *jobs.Jobs, prices ledger.Prices) func() metrics.Figures {
	return func() metrics.Figures {
		s, f := j.Snapshot(), metrics.FromReport(j.Report())
		if f.Crawl != "" {
			f.Totals = s.Totals // newer than the last commits
		}
		f.Active, f.Rest, f.Steps, f.Calls, f.Dollars = s.Active, s.Rest, s.Steps, s.Calls, prices.Dollars(s.Calls)
		return f
	}
}

// figuresOfStatus returns the figures of a crawl that was read from outside.
func figuresOfStatus(s *view.Status, prices ledger.Prices) metrics.Figures {
	return metrics.Figures{
		Crawl: s.Crawl.ID, Totals: s.Totals, Heads: s.Heads, Map: s.Map, Mail: s.Unread, Leased: s.Leased,
		Running: s.State == view.Running || s.State == view.Idle, Calls: s.Calls, Dollars: prices.Dollars(s.Calls),
	}
}

// figuresOfWorker returns the figures of a worker and of its crawl. Those of the crawl are of the worker's last coordinator run that
// read the heads.
func figuresOfWorker(w *service.Worker, prices ledger.Prices) func() metrics.Figures {
	var last metrics.Figures
	return func() metrics.Figures {
		s := w.Snapshot()
		if f := metrics.FromReport(s.Report); f.Crawl != "" || s.Crawl != last.Crawl {
			last = f
		}
		if s.Report != nil && s.Report.Idle {
			last.Running = false
		}
		f := last
		f.Active, f.Rest, f.Steps, f.Calls, f.Dollars = s.Active, s.Rest, len(s.AtWork), s.Calls, prices.Dollars(s.Calls)
		return f
	}
}
