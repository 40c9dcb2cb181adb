package crawl

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// Times of the steering of revisits.
const (
	steerEvery = time.Minute
	// mostUnseen is the longest pause between two runs after which the revisits counted meanwhile still steer.
	mostUnseen = time.Hour
)

// steerRevisits changes the threshold of revisits so that their number per hour meets the crawl's budget. The desired state
// holds the counts it starts from, so two runs at once count nothing twice.
func (k *Tick) steerRevisits(t *actor.Task) error {
	set := &k.report.Crawl.Settings
	pages := k.report.Totals.Pages
	if !revisits(set) || pages == 0 {
		return nil
	}
	now, again := k.Now().Wall.UTC(), k.report.Totals.Again
	change := func(w *blobschema.DesiredState) bool {
		was, since := w.Revisits, now.Sub(w.Revisits.At)
		if w.Threshold > 0 && since >= 0 && since < steerEvery {
			return false
		}
		w.Revisits = blobschema.RevisitCounts{At: now, Again: again, Pages: pages}
		first := schedule.FirstThreshold(float64(pages), set.RecrawlPerHour)
		switch {
		case w.Threshold <= 0:
			w.Threshold = first
		case since < 0 || since > mostUnseen || w.Pause || w.Stop:
		default:
			w.Threshold *= first / schedule.FirstThreshold(float64(was.Pages), set.RecrawlPerHour)
			excess := float64(again-was.Again) - float64(set.RecrawlPerHour*since.Hours())
			w.Threshold = schedule.SteerThreshold(w.Threshold, float64(pages), excess)
		}
		return true
	}
	return k.setDesired(t, change)
}
