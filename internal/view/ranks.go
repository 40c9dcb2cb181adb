package view

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/rank"
)

// Ranks reads the progress of the last rank job.
func (v *View) Ranks(ctx context.Context) (rank.Progress, error) {
	var s Status
	_, err := v.record(ctx, naming.RankKey(v.id), &s.Ranks.Job)
	if err == nil {
		err = v.addFollowers(ctx, &s)
	}
	return s.Ranks, err
}

// Ranked is a line of a table of ranks: a host or URL, and its rank as a multiple of the mean.
type Ranked struct {
	Name string  `json:"name"`
	Rank float64 `json:"rank"`
}

// RankTable reads the best lines of a table of a rank job; all of them if most is 0.
func (v *View) RankTable(ctx context.Context, object string, most int) ([]Ranked, error) {
	if object == "" {
		return nil, nil
	}
	data, err := v.store.Object(ctx, object, 0, -1)
	if err != nil {
		return nil, err
	}
	var out []Ranked
	for line := range bytes.Lines(data) {
		if most > 0 && len(out) == most {
			break
		}
		name, number, _ := bytes.Cut(bytes.TrimSuffix(line, []byte("\n")), []byte("\t"))
		r, err := strconv.ParseFloat(string(number), 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: line %.100q", object, wire.ErrDamaged, line)
		}
		out = append(out, Ranked{string(name), r})
	}
	return out, nil
}
