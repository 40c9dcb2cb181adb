package view_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestStartRanks has a folder's owner begin ranks.
func TestStartRanks(t *testing.T) {
	var asked []view.RankOrder
	var refuse error
	f := newOwned(t, view.Owner{
		StartRanks: func(_ context.Context, o view.RankOrder) (ranks.Job, bool, error) {
			asked = append(asked, o)
			return ranks.Job{Number: 7, Params: o.Params}, true, refuse
		},
	})
	v := f.view
	if now, err := v.Ranks(t.Context()); err != nil || now.Job.Number != 0 || now.Round != -1 {
		t.Errorf("before any: %+v, %v", now, err)
	}
	order := view.RankOrder{Params: ranks.DefaultParams(), Fresh: true}
	order.Params.Personal = []ranks.Weight{{Host: "a.example", Weight: 2}}
	job, begun, err := v.StartRanks(t.Context(), order)
	if err != nil || !begun || job.Number != 7 || len(asked) != 1 || fmt.Sprint(asked[0]) != fmt.Sprint(order) {
		t.Errorf("%v %v %+v, asked %+v", err, begun, job, asked)
	}
	for _, want := range []error{rank.ErrUnderWay, rank.ErrNothing, view.ErrNoOwner} {
		refuse = want
		if _, _, err := v.StartRanks(t.Context(), order); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	asked = nil
	f.refuses("/ranks", map[string]string{
		"no JSON": "a", "nothing": "", "no parameters": "{}", "an unknown field": `{"crawl": "x"}`,
		"unfit": `{"params": {"damping": 2, "tolerance": 0.1, "max_rounds": 1}}`, "too much": `{"x": "` + strings.Repeat("x", 1<<20) + `"}`,
	})
	if len(asked) > 0 {
		t.Errorf("the owner was asked for %+v", asked)
	}
	f.leave()
	if _, _, err := v.StartRanks(t.Context(), order); !errors.Is(err, view.ErrNoOwner) {
		t.Errorf("without an owner: %v", err)
	}
}
