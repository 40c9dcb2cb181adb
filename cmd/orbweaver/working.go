package main

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/service"
)

// joining is what is told when a worker joins.
type joining struct {
	Cloud string `json:"platform"`
	Steps int    `json:"steps"` // at most
	Ticks bool   `json:"ticks"`
}

func (s *joining) String() string {
	text := fmt.Sprintf("works in %s, on %s at once", drivers.ShortName(s.Cloud), plural(int64(s.Steps), "partition"))
	if !s.Ticks {
		text += ", without ticks"
	}
	return text
}

// workFigures are what is shown of a worker.
type workFigures struct {
	Seconds        float64 `json:"seconds"`
	Crawl          string  `json:"crawl,omitempty"` // "" while there is none
	State          string  `json:"state"`
	Pages          int64   `json:"pages"` // by this worker, here and below
	PagesPerSecond float64 `json:"pages_per_second"`
	Bytes          int64   `json:"bytes"`
	AtWork         int     `json:"partitions_at_work"`
	Steps          int     `json:"steps"`       // at most
	Ended          int64   `json:"steps_ended"` // well or not
	Failed         int64   `json:"steps_failed,omitempty"`
	Active         int     `json:"requests_active"`
	All            *whole  `json:"all,omitempty"` // as of the last tick; nil without
	SecondsLeft    float64 `json:"seconds_left,omitempty"`
}

// whole is what a tick knew of the crawl, all workers and functions together.
type whole struct {
	Pages  int64 `json:"pages"`
	Queue  int64 `json:"queue"`
	AtWork int   `json:"partitions_at_work"`
}

func workFiguresOf(s service.WorkSnapshot, m *meter, now time.Time) workFigures {
	t := blobschema.Totals{Outcomes: map[string]int64{blobschema.OutcomeOK.String(): s.Pages}}
	base := m.read(now, &service.Snapshot{Progress: crawl.Progress{Totals: t}})
	f := workFigures{
		Seconds: base.Seconds, Crawl: s.Crawl, State: workState(&s), Pages: s.Pages, PagesPerSecond: base.PagesPerSecond, Bytes: s.Bytes,
		AtWork: len(s.AtWork), Steps: s.MostSteps, Ended: s.Worked.Steps, Failed: s.Failed, Active: s.Active, SecondsLeft: base.SecondsLeft,
	}
	if r := s.Report; r != nil && !r.Idle {
		f.All = &whole{Pages: r.Totals.Pages, Queue: r.Totals.Pending + r.Totals.Unexamined, AtWork: r.Leased}
	}
	return f
}

// workState is how the crawl is, as far as the worker knows.
func workState(s *service.WorkSnapshot) string {
	r := s.Report
	switch {
	case s.Crawl == "":
		return "no crawl yet"
	case r == nil:
		return "crawling"
	case r.Wish.Stop:
		return "stopped"
	case r.Wish.Pause:
		return "paused"
	case r.Finished && len(s.AtWork) == 0:
		return "finished"
	case r.Limited && len(s.AtWork) == 0:
		return "limit"
	}
	return "crawling"
}

func (f *workFigures) String() string {
	s := span(f.Seconds) + ": "
	if f.Crawl == "" {
		return s + "no crawl yet: 'orbweaver crawl' begins one"
	}
	if f.State != "crawling" {
		s += f.State + ", "
	}
	s += fmt.Sprintf("%s (%.1f/s), %d of %s, %s under way, %s received", plural(f.Pages, "page"), f.PagesPerSecond,
		f.AtWork, plural(int64(f.Steps), "partition"), plural(int64(f.Active), "request"), size(f.Bytes))
	if f.Failed > 0 {
		s += fmt.Sprintf(", %s failed", plural(f.Failed, "step"))
	}
	if a := f.All; a != nil {
		s += fmt.Sprintf("; all together: %s, queue %s, %s at work", plural(a.Pages, "page"), count(a.Queue), plural(int64(a.AtWork), "partition"))
	}
	return s
}

// frame is the block that shows a worker.
func (f *workFigures) frame() []string {
	name := f.Crawl
	if name == "" {
		name = "no crawl yet: 'orbweaver crawl' begins one"
	} else if f.State != "crawling" {
		name += ", " + f.State
	}
	lines := []string{
		fmt.Sprintf("orbweaver work · %s · %s", name, span(f.Seconds)),
		fmt.Sprintf("  pages  %-12s %8.1f/s     received  %s", count(f.Pages), f.PagesPerSecond, size(f.Bytes)),
		fmt.Sprintf("  work   %d of %s, %s under way", f.AtWork, plural(int64(f.Steps), "partition"), plural(int64(f.Active), "request")),
	}
	if a := f.All; a != nil {
		lines = append(lines, fmt.Sprintf("  all    %s, queue %s, %s at work", plural(a.Pages, "page"), count(a.Queue), plural(int64(a.AtWork), "partition")))
	}
	if f.Failed > 0 {
		lines = append(lines, fmt.Sprintf("  failed %s", plural(f.Failed, "step")))
	}
	if f.SecondsLeft > 0 {
		lines = append(lines, fmt.Sprintf("  left   %s to --for", span(f.SecondsLeft)))
	}
	return lines
}

// leaving is what is told when a worker leaves.
type leaving struct {
	Cloud          string           `json:"platform"`
	Crawl          string           `json:"crawl,omitempty"`
	State          string           `json:"state"`
	Seconds        float64          `json:"seconds"`
	Pages          int64            `json:"pages"`
	PagesPerSecond float64          `json:"pages_per_second"`
	Bytes          int64            `json:"bytes"`
	Steps          int64            `json:"steps_ended"`
	Failed         int64            `json:"steps_failed,omitempty"`
	Calls          blobschema.Calls `json:"calls"`
}

func newLeaving(cloud string, s service.WorkSnapshot, took time.Duration) *leaving {
	e := &leaving{
		Cloud: cloud, Crawl: s.Crawl, State: workState(&s), Seconds: took.Seconds(),
		Pages: s.Pages, Bytes: s.Bytes, Steps: s.Worked.Steps, Failed: s.Failed, Calls: s.Calls,
	}
	if e.Seconds > 0 {
		e.PagesPerSecond = float64(e.Pages) / e.Seconds
	}
	return e
}

func (e *leaving) event() string { return "left" }

func (e *leaving) String() string {
	s := fmt.Sprintf("left %s after %s: %s (%.1f/s) in %s", drivers.ShortName(e.Cloud), span(e.Seconds), plural(e.Pages, "page"), e.PagesPerSecond,
		plural(e.Steps, "step"))
	if e.Failed > 0 {
		s += fmt.Sprintf(", %d of them failed", e.Failed)
	}
	return s
}
