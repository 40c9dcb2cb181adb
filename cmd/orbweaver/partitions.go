package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

func newPartitions() *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:   "partitions",
		Short: "Show how a crawl is divided, and change it while it runs",
		Long: `Partitions shows which part of a crawl each of its partitions has, and with one of the
commands below changes that, whether or not the crawl runs. Hosts are dealt to slots for
ever; slots belong to partitions and can be moved: only what names their state is
written anew. A slot that is on the move is asked for nothing, for a second or so.

  slots     that the partition holds: it alone may ask for their URLs
  owed      of them, those that are to go to another partition
  awaited   those that are to come, and are held elsewhere or on their way
  fence     how often the partition was leased; epoch: the map that it knows

A partition without slots keeps its pages, and its number.`,
		Example: `  orbweaver partitions
  orbweaver partitions scale 8 --wait
  orbweaver partitions move 17,200-299 --to 3
  orbweaver partitions plan 8 --out plan.json && orbweaver partitions apply plan.json
  orbweaver partitions rollback
  orbweaver partitions --platform aws.json --json | jq '.partitions[].slots'`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.look(cmd.Context(), func(v *view.View) error { return showPartitions(cmd, &f, v) })
		},
	}
	f.register(cmd)
	for _, sub := range []func() *cobra.Command{newScale, newMove, newPlan, newApply, newRollback} {
		cmd.AddCommand(sub())
	}
	return cmd
}

// divided calls f with a view of the crawl, and with how many partitions it may have where
// it is: 0 for any number.
func (f *looking) divided(ctx context.Context, do func(v *view.View, most int) error) error {
	if err := f.settle(); err != nil {
		return err
	}
	if f.inCloud() {
		return f.visit(ctx, func(v *visit) error { return do(v.view, v.platform.Partitions) })
	}
	return f.look(ctx, func(v *view.View) error { return do(v, 0) })
}

// layoutReport is how a crawl is divided, as JSON.
type layoutReport struct {
	Crawl  string          `json:"crawl"`
	Data   string          `json:"data,omitempty"`
	Cloud  string          `json:"platform,omitempty"`
	Epoch  partition.Epoch `json:"epoch"`
	Slots  int             `json:"slots"`
	Owners int             `json:"owners"` // partitions with slots, by the map of Epoch
	Parts  []partReport    `json:"partitions"`
	Moves  []movesReport   `json:"moves,omitempty"`
	Target *targetReport   `json:"target,omitempty"` // what follows when the moves have ended
	place  *place
}

type partReport struct {
	Partition partition.ID    `json:"partition"`
	Slots     int             `json:"slots"` // held
	Owed      int             `json:"slots_owed,omitempty"`
	Awaited   int             `json:"slots_awaited,omitempty"`
	Wanted    int             `json:"slots_wanted"` // in the end
	Known     int64           `json:"known"`
	Pending   int64           `json:"pending"`
	Pages     int64           `json:"pages"`
	Commits   uint64          `json:"commits"`
	Due       time.Time       `json:"due,omitzero"`
	Lease     string          `json:"lease,omitempty"` // of whom
	Until     time.Time       `json:"lease_until,omitzero"`
	Epoch     partition.Epoch `json:"epoch"`
	Fence     uint64          `json:"fence"`
}

type movesReport struct {
	Epoch partition.Epoch `json:"epoch"`
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Slots partition.Slots `json:"slots"`
	Count int             `json:"count"`
	Given int             `json:"given"` // of them, by the one that had them
	Taken int             `json:"taken"`
	Since time.Time       `json:"since,omitzero"`
}

type targetReport struct {
	Owners int `json:"owners"`
	Slots  int `json:"slots"` // that are still to be moved
}

func newLayoutReport(p *place, crawl string, l *view.Layout) *layoutReport {
	r := &layoutReport{Crawl: crawl, Epoch: l.Record.Epoch, Slots: l.Map.Slots(), Owners: len(l.Map.Partitions()), place: p}
	if p.inCloud() {
		r.Cloud = p.cloud
	} else {
		r.Data = p.data
	}
	for i := range l.Parts {
		s := &l.Parts[i]
		line := partReport{Partition: s.Partition, Slots: s.Held, Owed: s.Owes, Awaited: s.Awaits, Wanted: s.Wanted}
		if h := s.Head; h != nil {
			line.Known, line.Pending, line.Pages = h.Totals.Known+h.Totals.Unexamined, h.Totals.Pending+h.Totals.Unexamined, h.Totals.Pages
			line.Commits, line.Due, line.Lease, line.Epoch, line.Fence = h.Seq, h.Due, h.Owner, h.Epoch, h.Fence
			if h.Owner != "" {
				line.Until = h.LeaseUntil
			}
		}
		r.Parts = append(r.Parts, line)
	}
	for _, m := range l.Moves {
		r.Moves = append(r.Moves, movesReport{
			Epoch: m.Epoch, From: m.From, To: m.To, Slots: m.Slots, Count: len(m.Slots), Given: len(m.Slots) - m.Held, Taken: m.Taken, Since: m.Since,
		})
	}
	if _, later := l.Left(); later > 0 {
		r.Target = &targetReport{Owners: len(l.Target.Partitions()), Slots: later}
	}
	return r
}

func showPartitions(cmd *cobra.Command, f *looking, v *view.View) error {
	l, err := v.Layout(cmd.Context())
	if err != nil {
		return err
	}
	r := newLayoutReport(&f.place, v.ID(), l)
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.print(cmd.OutOrStdout())
}

// print writes the report for people, in one write.
func (r *layoutReport) print(out io.Writer) error {
	var b strings.Builder
	rows := newRows(&b)
	rows.add("crawl", "%s in %s", r.Crawl, r.place)
	rows.add("map", "%s of %s, epoch %d", plural(int64(r.Slots), "slot"), plural(int64(r.Owners), "partition"), r.Epoch)
	moving := 0
	for _, m := range r.Moves {
		moving += m.Count - m.Taken
	}
	if moving > 0 {
		rows.add("moving", "%s", plural(int64(moving), "slot"))
	}
	if t := r.Target; t != nil {
		rows.add("target", "%s; %s when those on the move have arrived", plural(int64(t.Owners), "partition"), follow(t.Slots))
	}
	rows.w.Flush() // into memory: it cannot fail
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "\npartition\tslots\towed\tawaited\tknown\tpending\tpages\tdue\tlease\tfence\tepoch\t\n")
	var sum partReport
	line := func(name string, p *partReport, due, lease, fence, epoch string) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", name, count(int64(p.Slots)), count(int64(p.Owed)), count(int64(p.Awaited)),
			count(p.Known), count(p.Pending), count(p.Pages), due, lease, fence, epoch)
	}
	for i := range r.Parts {
		p := &r.Parts[i]
		lease := "-"
		if p.Lease != "" {
			lease = p.Lease + " " + when(p.Until)
		}
		line(fmt.Sprint(p.Partition), p, when(p.Due), lease, fmt.Sprint(p.Fence), fmt.Sprint(p.Epoch))
		sum.Slots += p.Slots
		sum.Owed += p.Owed
		sum.Awaited += p.Awaited
		sum.Known += p.Known
		sum.Pending += p.Pending
		sum.Pages += p.Pages
	}
	line("all", &sum, "", "", "", "")
	if len(r.Moves) > 0 {
		fmt.Fprint(w, "\nepoch\tfrom\tto\tslots\tgiven\ttaken\tsince\t\n")
		for _, m := range r.Moves {
			since := "-"
			if !m.Since.IsZero() {
				since = span(max(0, time.Since(m.Since).Seconds()))
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%s\t%s\t%s\t%s\t\n", m.Epoch, m.From, m.To, count(int64(m.Count)), count(int64(m.Given)), count(int64(m.Taken)), since)
		}
	}
	w.Flush() // into memory: it cannot fail
	_, err := io.WriteString(out, b.String())
	return err
}

// follow says that slots are moved later.
func follow(n int) string {
	if n == 1 {
		return "1 slot follows"
	}
	return plural(int64(n), "slot") + " follow"
}
