package metrics

import (
	"strings"
	"time"
)

// Namespace is the namespace of the metrics in CloudWatch. Their only dimension is "deployment".
const Namespace = "Orbweaver"

// MaxEMF bounds the metrics of a deployment in CloudWatch: an account has ten without a price.
const MaxEMF = 10

// emfHead tells CloudWatch which members of a log line are metrics:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html.
type emfHead struct {
	Timestamp         int64 // ms since 1970
	CloudWatchMetrics []emfDirective
}

type emfDirective struct {
	Namespace  string
	Dimensions [][]string
	Metrics    []emfMetric
}

type emfMetric struct{ Name, Unit string }

// EMF returns the attributes that make a JSON log line one of CloudWatch's embedded metrics. kind is the kind of the line,
// as in [Metric.EMF]; "" for the metrics of every line. A counter gets the difference between two figures, because
// CloudWatch adds values up, and a gauge the value of the later one.
func EMF(deployment, kind string, at time.Time, before, after *Figures) []any {
	var list []emfMetric
	line := []any{"deployment", deployment}
	for i := range All {
		m := &All[i]
		if m.EMF == "" || m.EMF != kind && m.EMF != "any" {
			continue
		}
		value := 0.0
		m.Read(after, func(v float64, _ string) { value += v })
		if m.Kind == Counter {
			m.Read(before, func(v float64, _ string) { value -= v })
		}
		unit := "Count"
		switch {
		case strings.Contains(m.Name, "_bytes"):
			unit = "Bytes"
		case strings.Contains(m.Name, "_dollars"):
			unit = "None"
		}
		list, line = append(list, emfMetric{m.Name, unit}), append(line, m.Name, value)
	}
	return append(line, "_aws", emfHead{at.UnixMilli(), []emfDirective{{Namespace, [][]string{{"deployment"}}, list}}})
}
