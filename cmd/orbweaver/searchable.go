package main

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/view"
)

// indexReport says how much of a crawl is searchable.
type indexReport struct {
	Partitions int `json:"partitions"` // with an index
	blobschema.IndexTotals
	Answers int64   `json:"answers"` // page records, without robots.txt; Pages of them are in the index, or left out for a reason
	Share   float64 `json:"share"`   // Pages of Answers
	Behind  uint64  `json:"behind"`  // commits
	Bytes   int64   `json:"bytes"`
}

// newIndexReport returns nil for a crawl without an index.
func newIndexReport(s *view.Status) *indexReport {
	if !s.Crawl.Settings.Index {
		return nil
	}
	r := &indexReport{Partitions: len(s.Index), Behind: s.Behind(), Share: 1}
	for i := range s.Index {
		r.IndexTotals.Add(&s.Index[i].Totals)
		r.Bytes += s.Index[i].Bytes
	}
	for _, n := range s.Totals.Outcomes {
		r.Answers += n
	}
	if r.Answers > 0 {
		r.Share = min(1, float64(r.Pages)/float64(r.Answers))
	}
	return r
}

func (r *indexReport) print(out *output) {
	if r == nil {
		return
	}
	how := "all that is crawled is in it"
	if r.Behind > 0 {
		how = fmt.Sprintf("%s behind, with %s of the answers", plural(int64(r.Behind), "commit"), percent(r.Share))
	}
	out.row("index", "%s searchable, %s; %s", plural(r.Documents, "page"), size(r.Bytes), how)
	left := parts(some(r.NoIndex, count(r.NoIndex)+" asked for it"), some(r.NoText, count(r.NoText)+" without text"),
		some(r.Damaged, count(r.Damaged)+" could not be read"))
	if left != "" {
		out.row("", "left out: %s", left)
	}
}

// ranksReport says how far the ranks of a crawl are.
type ranksReport struct {
	Job    uint64       `json:"job,omitempty"` // the last finished one
	Done   time.Time    `json:"done,omitzero"`
	Rounds int          `json:"rounds,omitempty"`
	Totals ranks.Totals `json:"totals,omitzero"`
	Behind uint64       `json:"behind,omitempty"` // commits since
	// Running is the job under way, Round its last round that all partitions have finished.
	Running uint64    `json:"running,omitempty"`
	Round   int       `json:"round,omitempty"`
	Started time.Time `json:"started,omitzero"`
	Failed  string    `json:"failed,omitempty"` // why the last job has no result
}

// newRanksReport returns nil if no ranks were ever computed.
func newRanksReport(s *view.Status) *ranksReport {
	job := &s.Ranks.Job
	if job.Number == 0 {
		return nil
	}
	r := &ranksReport{Failed: job.Failed}
	if job.Done.IsZero() {
		r.Running, r.Round, r.Started = job.Number, s.Ranks.Round, job.Started
	}
	if done := job.Finished(); done != nil {
		r.Job, r.Done, r.Rounds, r.Totals = done.Number, done.Done, done.Rounds, done.Totals
		for i := range s.Heads {
			for _, in := range done.Inputs {
				if h := &s.Heads[i]; h.Partition == in.Partition && h.Seq > in.Seq {
					r.Behind += h.Seq - in.Seq
				}
			}
		}
	}
	return r
}

func (r *ranksReport) print(out *output) {
	if r == nil {
		return
	}
	const minute = "2006-01-02 15:04 MST"
	name := "ranks"
	if r.Job > 0 {
		behind := ""
		if r.Behind > 0 {
			behind = fmt.Sprintf("; %s behind", plural(int64(r.Behind), "commit"))
		}
		out.row(name, "of %s and %s, after %s, %s%s", plural(r.Totals.Pages, "URL"), plural(r.Totals.Hosts, "host"), plural(int64(r.Rounds), "round"),
			r.Done.UTC().Format(minute), behind)
		name = ""
	}
	switch {
	case r.Running > 0:
		out.row(name, "job %d is under way since %s, %s done", r.Running, r.Started.UTC().Format(minute), plural(int64(r.Round+1), "round"))
	case r.Failed != "":
		out.row(name, "the last job has failed: %s", r.Failed)
	}
}
