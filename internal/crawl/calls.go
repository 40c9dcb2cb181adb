package crawl

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

const day = 24 * time.Hour // period of the limit on function calls

// limitCalls pauses the crawl, with the reason, when its functions ran more often than DailyCalls since the period began. A
// period begins with the crawl, after a day, and when the operator pauses, stops or resumes the crawl. The limit protects
// the deployment from a defect that makes functions call each other forever.
func (k *Tick) limitCalls(t *actor.Task) error {
	w, limit := &k.report.Desired, k.cfg.DailyCalls
	if limit <= 0 || w.Pause || w.Stop {
		return nil
	}
	calls, since := k.functionCalls(), k.record.Day
	if since.Orders != w.Orders || k.passed(since.At, day) {
		begins := blobschema.CallDay{At: k.Now().Wall.UTC(), Calls: calls, Orders: w.Orders}
		k.learn(func(r *blobschema.TickRecord) { r.Day = begins })
		return nil
	}
	if calls-since.Calls < limit {
		return nil
	}
	why := fmt.Sprintf("its functions were called %d times within a day, and the daily limit of the deployment is %d", calls-since.Calls, limit)
	return k.setDesired(t, func(w *blobschema.DesiredState) bool {
		if w.Pause || w.Stop {
			return false
		}
		w.Pause, w.Why = true, why
		w.Orders++
		return true
	})
}

// functionCalls counts the function calls since the crawl began, except those for ranks, whose number is bounded by their
// rounds. A partition's fence also counts its crashed steps, which report no calls.
func (k *Tick) functionCalls() int64 {
	n := k.record.Calls.Functions + k.report.Requests.Calls.Functions + k.indexCalls
	for i := range k.report.Heads {
		h := &k.report.Heads[i]
		n += max(h.Calls.Functions, int64(h.Fence))
	}
	return n
}
