package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

func newPartitions() *cobra.Command {
	var f reading
	cmd := f.newCommand("partitions", noSuchCommand, func(cmd *cobra.Command, _ []string) error {
		return f.read(cmd.Context(), func(v *view.View) error {
			l, err := v.Layout(cmd.Context())
			if err != nil {
				return err
			}
			r := newLayoutReport(f.where(v.ID()), l)
			return f.report(cmd, r, r.print)
		})
	})
	for _, sub := range []func() *cobra.Command{newScale, newMove, newRollback} {
		cmd.AddCommand(sub())
	}
	return cmd
}

// layoutReport says how a crawl is divided.
type layoutReport struct {
	where
	Epoch  partition.Epoch `json:"epoch"`
	Slots  int             `json:"slots"`
	Owners int             `json:"owners"` // partitions with slots, by the map of Epoch
	Parts  []partReport    `json:"partitions"`
	Moves  []movesReport   `json:"moves,omitempty"`
	Target *targetReport   `json:"target,omitempty"` // the division when the moves have ended
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
	Given int             `json:"given"` // of them, by the previous owner
	Taken int             `json:"taken"`
	Since time.Time       `json:"since,omitzero"`
}

type targetReport struct {
	Owners int `json:"owners"`
	Slots  int `json:"slots"` // that are still to be moved
}

func newLayoutReport(w where, l *view.Layout) *layoutReport {
	r := &layoutReport{where: w, Epoch: l.Record.Epoch, Slots: l.Map.Slots(), Owners: len(l.Map.Partitions())}
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
		r.Moves = append(r.Moves, movesReport{m.Epoch, m.From, m.To, m.Slots, len(m.Slots), len(m.Slots) - m.Held, m.Taken, m.Since})
	}
	if _, later := l.Left(); later > 0 {
		r.Target = &targetReport{Owners: len(l.Target.Partitions()), Slots: later}
	}
	return r
}

func (r *layoutReport) print(out *output) {
	out.row("crawl", "%s in %s", r.Crawl, r.at)
	out.row("map", "%s of %s, epoch %d", plural(int64(r.Slots), "slot"), plural(int64(r.Owners), "partition"), r.Epoch)
	moving := 0
	for _, m := range r.Moves {
		moving += m.Count - m.Taken
	}
	if moving > 0 {
		out.row("moving", "%s", plural(int64(moving), "slot"))
	}
	if t := r.Target; t != nil {
		out.row("target", "%s; %s when those on the move have arrived", plural(int64(t.Owners), "partition"), follow(t.Slots))
	}
	var lines [][]any
	var sum partReport
	for i := range r.Parts {
		p := &r.Parts[i]
		lease := "-"
		if p.Lease != "" {
			lease = p.Lease + " " + when(p.Until)
		}
		lines = append(lines, []any{p.Partition, p.Slots, p.Owed, p.Awaited, p.Known, p.Pending, p.Pages, when(p.Due), lease, fmt.Sprint(p.Fence), p.Epoch})
		sum.Slots += p.Slots
		sum.Owed += p.Owed
		sum.Awaited += p.Awaited
		sum.Known += p.Known
		sum.Pending += p.Pending
		sum.Pages += p.Pages
	}
	lines = append(lines, []any{"all", sum.Slots, sum.Owed, sum.Awaited, sum.Known, sum.Pending, sum.Pages, "", "", "", ""})
	out.line("")
	out.table(numbers, "partition|slots|owed|awaited|known|pending|pages|due|lease|fence|epoch", lines)
	if len(r.Moves) == 0 {
		return
	}
	lines = nil
	for _, m := range r.Moves {
		since := "-"
		if !m.Since.IsZero() {
			since = span(max(0, time.Since(m.Since).Seconds()))
		}
		lines = append(lines, []any{m.Epoch, m.From, m.To, m.Count, m.Given, m.Taken, since})
	}
	out.line("")
	out.table(numbers, "epoch|from|to|slots|given|taken|since", lines)
}
