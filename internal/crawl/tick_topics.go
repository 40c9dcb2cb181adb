package crawl

import (
	"maps"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// minSlice is the shortest that the watcher makes a longer slice, and shrink what it divides it by.
const (
	minSlice = 100 * time.Millisecond
	shrink   = 8
)

// watchTopics is the watcher of topics (Fan, Li): one that has had its minimum of pages in its
// period has a shorter slice until the period ends, so that the others of its priority have
// more.
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
			if past < 2*length { // periods follow one another
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
	return k.tell(t, func(w *blobschema.Wish) bool {
		if maps.Equal(shrunk, w.Slices) {
			return false
		}
		w.Slices = shrunk
		return true
	})
}
