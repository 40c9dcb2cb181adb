package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// Ranks is how far the rank job is that was begun last.
func (v *View) Ranks(ctx context.Context) (rank.Progress, error) {
	var job blobschema.RankJob
	if found, err := v.record(ctx, naming.RankKey(v.id), &job); err != nil || !found {
		return rank.NewProgress(job, nil), err
	}
	heads := make([]blobschema.RankHead, min(len(job.Inputs), partition.MaxPartitions))
	keys, to := make([]string, len(heads)), make([]any, len(heads))
	for p := range heads {
		keys[p], to[p] = naming.RankHeadKey(v.id, partition.ID(p)), &heads[p]
	}
	if _, err := v.records(ctx, keys, to); err != nil {
		return rank.Progress{}, err
	}
	return rank.NewProgress(job, heads), nil
}

// Ranked is a line of a table of ranks: a host or a URL, and how many times the mean its rank is.
type Ranked struct {
	Name string  `json:"name"`
	Rank float64 `json:"rank"`
}

// RankTable reads the first lines of a table of a rank job, the best; all of them if most is 0.
func (v *View) RankTable(ctx context.Context, object string, most int) ([]Ranked, error) {
	if object == "" {
		return nil, nil
	}
	data, err := v.store.Object(ctx, object)
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
			return nil, fmt.Errorf("%s: %w: line %.100q", object, blobschema.ErrDamaged, line)
		}
		out = append(out, Ranked{string(name), r})
	}
	return out, nil
}

// RankOrder is what is asked of POST /ranks.
type RankOrder struct {
	Params blobschema.RankParams `json:"params"`
	Join   bool                  `json:"join,omitempty"` // see [rank.StartConfig]
	Fresh  bool                  `json:"fresh,omitempty"`
	Force  bool                  `json:"force,omitempty"`
}

type rankStarted struct {
	Job   blobschema.RankJob `json:"job"`
	Begun bool               `json:"begun"`
}

// maxRankOrder is above what [blobschema.RankParams] may have.
const maxRankOrder = 256 << 10

// StartRanks has the process that works on the view's folder begin a rank job, and run it beside the
// crawl. The errors are [ErrNoOwner], as for [View.Order], [rank.ErrUnderWay] and [rank.ErrNothing].
func (v *View) StartRanks(ctx context.Context, o RankOrder) (job blobschema.RankJob, begun bool, err error) {
	s, ok := v.store.(*folderStore)
	if !ok || s.live(ctx) == nil {
		return job, false, ErrNoOwner
	}
	body, err := json.Marshal(o)
	if err != nil {
		return job, false, err
	}
	status, body, err := s.owner.do(ctx, http.MethodPost, "/ranks", body)
	if err != nil {
		return job, false, err
	}
	if err := rankErrors()[status]; err != nil {
		return job, false, err
	}
	if status != http.StatusOK {
		return job, false, errOwner(status, string(bytes.TrimSpace(body)))
	}
	var answer rankStarted
	if err := json.Unmarshal(body, &answer); err != nil {
		return job, false, fmt.Errorf("ask the folder's owner: %w", err)
	}
	return answer.Job, answer.Begun, nil
}

// rankErrors are those that whoever asks tells apart, by the status of the answer.
func rankErrors() map[int]error {
	return map[int]error{http.StatusLocked: rank.ErrUnderWay, http.StatusUnprocessableEntity: rank.ErrNothing}
}

// ranks answers POST /ranks.
func (o *Owner) ranks(w http.ResponseWriter, r *http.Request) {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRankOrder))
	d.DisallowUnknownFields()
	var what RankOrder
	err := d.Decode(&what)
	if err == nil {
		err = what.Params.Check()
	}
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	case o.StartRanks == nil:
		http.Error(w, "ranks are not computed here", http.StatusServiceUnavailable)
		return
	}
	job, begun, err := o.StartRanks(r.Context(), what)
	if err != nil {
		status := http.StatusServiceUnavailable
		for s, e := range rankErrors() {
			if errors.Is(err, e) {
				status = s
			}
		}
		http.Error(w, err.Error(), status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(rankStarted{job, begun}) // whoever asked may be gone
}
