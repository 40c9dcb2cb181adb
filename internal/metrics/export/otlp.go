package export

import (
	"context"
	"errors"
	"fmt"

	promproducer "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/orbweaver/orbweaver/internal/service"
)

// The variables of https://opentelemetry.io/docs/specs/otel/protocol/exporter/ that start OTLP. The SDK reads all others.
const (
	endpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	metricEndpoint = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	traceEndpoint  = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
)

// Wanted reports whether the environment says where to send metrics, and where to send spans.
func Wanted(getenv func(string) string) (byMetrics, byTraces bool) {
	if getenv("OTEL_SDK_DISABLED") == "true" {
		return false, false
	}
	wanted := func(own, signal string) bool {
		return (getenv(endpoint) != "" || getenv(own) != "") && getenv(signal) != "none"
	}
	return wanted(metricEndpoint, "OTEL_METRICS_EXPORTER"), wanted(traceEndpoint, "OTEL_TRACES_EXPORTER")
}

// Push sends the metrics periodically, and a span for each [Exporter.Observe], where the environment says so. Call it before
// the first Observe. stop sends what is left, until its context ends.
func (e *Exporter) Push(ctx context.Context, version string, getenv func(string) string) (stop func(context.Context) error, err error) {
	byMetrics, byTraces := Wanted(getenv)
	for _, v := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"} {
		if p := getenv(v); p != "" && p != "http/protobuf" {
			return nil, fmt.Errorf("%s is %q: only http/protobuf is supported, whose usual port is 4318", v, p)
		}
	}
	about, err := resource.New(ctx, resource.WithService(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "orbweaver"), attribute.String("service.version", version)), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	var ends []func(context.Context) error
	if byMetrics {
		to, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("send metrics by OTLP: %w", err)
		}
		reader := metric.NewPeriodicReader(to, metric.WithProducer(promproducer.NewMetricProducer(promproducer.WithGatherer(e.registry))))
		ends = append(ends, metric.NewMeterProvider(metric.WithResource(about), metric.WithReader(reader)).Shutdown)
	}
	if byTraces {
		to, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("send spans by OTLP: %w", err)
		}
		spans := sdktrace.NewTracerProvider(sdktrace.WithResource(about), sdktrace.WithBatcher(to))
		e.tracer = spans.Tracer("github.com/orbweaver/orbweaver")
		ends = append(ends, spans.Shutdown)
	}
	return func(ctx context.Context) (err error) {
		for _, end := range ends {
			err = errors.Join(err, end(ctx))
		}
		return err
	}, nil
}

// span records a span for work that has ended.
func (e *Exporter) span(d *service.Done) {
	_, s := e.tracer.Start(context.Background(), d.Kind, trace.WithTimestamp(d.Began), trace.WithAttributes(
		attribute.String("orbweaver.crawl", d.Crawl), attribute.Int("orbweaver.partition", int(d.Partition)),
		attribute.Int64("orbweaver.pages", d.Pages), attribute.Int64("orbweaver.received_bytes", d.Bytes)))
	if d.Err != nil {
		s.SetStatus(codes.Error, d.Err.Error())
	}
	s.End(trace.WithTimestamp(d.Began.Add(d.Took)))
}
