package crawl

import (
	"maps"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

const (
	minSlice = 100 * time.Millisecond // shortest slice that the watcher sets
	shrink   = 8                      // divisor of a slice that the watcher shortens
)

// watchTopics is the watcher of topics (Fan, Li). A topic that has reached its minimum of pages in its period gets a
// shorter slice until the period ends, so that other topics of its priority get more.
func (k *Tick) watchTopics(t *actor.Task) error {
	set := &k.report.Crawl.Settings
	shrunk := map[uint8]time.Duration{}
	pages := map[string]int64{}
	for i := range set.Topics {
		pages[set.Topics[i].Name] += k.report.Totals.Topics[uint8(i+1)].Pages
	}
	now := k.Now().Wall.UTC()
	for i := range set.Topics {
		tp := &set.Topics[i]
		if tp.Minimum <= 0 {
			continue
		}
		length := tp.Period
		if length <= 0 {
			length = blobschema.DefaultPeriod
		}
		period := k.record.Topics[tp.Name]
		if past := now.Sub(period.Since); past < 0 || past >= length {
			next := blobschema.TopicPeriod{Since: now, Pages: pages[tp.Name]}
			if past < 2*length { // periods follow one another without a gap
				next.Since = period.Since.Add(length)
			}
			period = next
			k.learn(func(r *blobschema.TickRecord) {
				if r.Topics == nil {
					r.Topics = map[string]blobschema.TopicPeriod{}
				}
				r.Topics[tp.Name] = period
			})
		}
		if pages[tp.Name]-period.Pages >= tp.Minimum {
			whole := tp.Slice
			if whole <= 0 {
				whole = blobschema.DefaultSlice
			}
			shrunk[uint8(i+1)] = min(whole, max(minSlice, whole/shrink))
		}
	}
	return k.setDesired(t, func(w *blobschema.DesiredState) bool {
		if maps.Equal(shrunk, w.Slices) {
			return false
		}
		w.Slices = shrunk
		return true
	})
}
