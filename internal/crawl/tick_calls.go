package crawl

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// day is the period of the limit on function calls.
const day = 24 * time.Hour

// limitCalls pauses the crawl, and says why, when its functions ran more often than DailyCalls since the period began. A
// period begins with the crawl, after a day, and whenever the operator pauses, stops or resumes the crawl. It is the
// deployment's fuse against a defect that makes functions call each other for ever.
func (k *Tick) limitCalls(t *actor.Task) error {
	w, limit := &k.report.Wish, k.cfg.DailyCalls
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
	return k.tell(t, func(w *blobschema.Wish) bool {
		if w.Pause || w.Stop {
			return false
		}
		w.Pause, w.Why = true, why
		w.Orders++
		return true
	})
}

// functionCalls counts the function calls since the crawl began, without those for ranks, whose number their rounds bound.
// A partition's fence counts its crashed steps too, which report nothing.
func (k *Tick) functionCalls() int64 {
	n := k.record.Calls.Functions + k.report.Requests.Calls.Functions + k.indexCalls
	for i := range k.report.Heads {
		h := &k.report.Heads[i]
		n += max(h.Calls.Functions, int64(h.Fence))
	}
	return n
}
