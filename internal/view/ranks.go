package view

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// Ranks reads the progress of the last rank job.
func (v *View) Ranks(ctx context.Context) (rank.Progress, error) {
	var job ranks.Job
	if found, err := v.record(ctx, naming.RankKey(v.id), &job); err != nil || !found {
		return rank.NewProgress(job, nil), err
	}
	heads, keys, to := v.rankHeads(&job)
	if _, err := blobschema.ReadRecords(ctx, v.store, keys, to); err != nil {
		return rank.Progress{}, err
	}
	return rank.NewProgress(job, heads), nil
}

// rankHeads returns room for the heads that the partitions of a job have, and their keys.
func (v *View) rankHeads(job *ranks.Job) (heads []ranks.Head, keys []string, to []any) {
	heads = make([]ranks.Head, min(len(job.Inputs), partition.MaxPartitions))
	for p := range heads {
		keys, to = append(keys, naming.RankHeadKey(v.id, partition.ID(p))), append(to, &heads[p])
	}
	return heads, keys, to
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
