package ui

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// heat is the data of the page of partitions: the load of all slots, by owner.
type heat struct {
	*view.Layout
	Rows   []heatRow
	Hidden int // partitions that are not drawn
	// Slots that are moving, and that will move later.
	Arriving, Later int64
	Parts           *table
	Flows           *table
}

type heatRow struct {
	Partition partition.ID
	Y         int
	Cells     []heatCell
}

// heatCell stands for some slots of one partition, in the order of their numbers.
type heatCell struct {
	X       int
	Opacity string // 0 to 1, by load
	Title   string
	Moving  bool
}

// Size of the drawing, in cells, and of a cell with the gap beside it.
const (
	heatColumns = 64
	heatRows    = 64
	heatLeft    = 36
	cellWidth   = 10
	cellHeight  = 13
)

// Width and Height are the size of the drawing.
func (h *heat) Width() int  { return heatLeft + cellWidth*heatColumns }
func (h *heat) Height() int { return cellHeight * len(h.Rows) }

// Slots and Partitions count what the map divides.
func (h *heat) Slots() int64      { return int64(h.Map.Slots()) }
func (h *heat) Partitions() int64 { return int64(len(h.Layout.Parts)) }

func (s *Server) partitions(ctx context.Context, v *view.View, r *http.Request) (string, string, any, error) {
	h, err := read(s, &s.layout, func() (*heat, error) {
		release, err := s.busy(ctx)
		if err != nil {
			return nil, err
		}
		defer release()
		l, err := v.Layout(ctx)
		if err != nil {
			return nil, err
		}
		loads, err := v.Loads(ctx)
		if err != nil {
			return nil, err
		}
		return newHeat(l, loads), nil
	})
	if err != nil {
		return "", "", nil, err
	}
	shown, q := *h, r.URL.Query()
	type part = view.Part
	figure := func(of func(p part) float64) func(part) float64 {
		return func(p part) float64 {
			if p.Head == nil {
				return 0
			}
			return of(p)
		}
	}
	shown.Parts = newTable(q, "partitions", "Partitions", "partition", h.Layout.Parts, []column[part]{
		{Name: "partition", Num: func(p part) float64 { return float64(p.Partition) }},
		{Name: "slots", Num: func(p part) float64 { return float64(p.Held) }},
		{Name: "leaving", Num: func(p part) float64 { return float64(p.Owes) }},
		{Name: "arriving", Num: func(p part) float64 { return float64(p.Awaits) }},
		{Name: "known", Num: figure(func(p part) float64 { return float64(p.Head.Totals.Known + p.Head.Totals.Unexamined) })},
		{Name: "pending", Num: figure(func(p part) float64 { return float64(queue(&p.Head.Totals)) })},
		{Name: "pages", Num: figure(func(p part) float64 { return float64(p.Head.Totals.Pages) })},
		{Name: "commits", Num: figure(func(p part) float64 { return float64(p.Head.Seq) })},
		{Name: "state", Fixed: true, Text: func(p part) string {
			switch {
			case p.Head == nil:
				return "not begun"
			case p.Head.Owner != "" && time.Now().Before(p.Head.LeaseUntil):
				return "at work"
			case !p.Head.Due.IsZero():
				return "due " + ago(p.Head.Due)
			}
			return "rests"
		}},
	})
	type move = view.Moves
	shown.Flows = newTable(q, "moves", "Moves", "", h.Layout.Moves, []column[move]{
		{Name: "from", Num: func(m move) float64 { return float64(m.From) }},
		{Name: "to", Num: func(m move) float64 { return float64(m.To) }},
		{Name: "slots", Num: func(m move) float64 { return float64(len(m.Slots)) }},
		{Name: "still there", Num: func(m move) float64 { return float64(m.Held) }},
		{Name: "under way", Num: func(m move) float64 { return float64(len(m.Slots) - m.Held - m.Taken) }},
		{Name: "arrived", Num: func(m move) float64 { return float64(m.Taken) }},
		{Name: "since", Num: func(m move) float64 { return float64(m.Since.Unix()) }, Text: func(m move) string { return ago(m.Since) }},
	})
	shown.Flows.Empty = "No slot is moving."
	return "partitions", "Partitions", &shown, nil
}

// newHeat draws the load of slots.
func newHeat(l *view.Layout, loads []float64) *heat {
	h := &heat{Layout: l, Hidden: max(0, len(l.Parts)-heatRows)}
	slots := make([]partition.Slots, len(l.Parts))
	for s := range partition.Slot(l.Map.Slots()) {
		if o := l.Map.Owner(s); int(o) < len(slots) {
			slots[o] = append(slots[o], s)
		}
	}
	moving := map[partition.Slot]bool{}
	for i := range l.Moves {
		for _, s := range l.Moves[i].Slots {
			moving[s] = true
		}
	}
	arriving, later := l.Left()
	h.Arriving, h.Later = int64(arriving), int64(later)
	var sums [][]float64
	most := 0.0
	for p, list := range slots[:min(len(slots), heatRows)] {
		row, sum := heatRow{Partition: partition.ID(p), Y: cellHeight * p}, []float64(nil)
		n := min(len(list), heatColumns)
		for x := range n {
			part := list[x*len(list)/n : (x+1)*len(list)/n]
			c, load := heatCell{X: heatLeft + cellWidth*x}, 0.0
			for _, s := range part {
				load += loads[s]
				c.Moving = c.Moving || moving[s]
			}
			c.Title = fmt.Sprintf("partition %d, slots %d to %d: %s URLs", p, part[0], part[len(part)-1], whole(load))
			if c.Moving {
				c.Title += ", on the move"
			}
			sum = append(sum, load)
			most = max(most, load)
			row.Cells = append(row.Cells, c)
		}
		h.Rows, sums = append(h.Rows, row), append(sums, sum)
	}
	for i := range h.Rows {
		for j := range h.Rows[i].Cells {
			h.Rows[i].Cells[j].Opacity = fmt.Sprintf("%.2f", math.Sqrt(sums[i][j]/max(most, 1)))
		}
	}
	return h
}
