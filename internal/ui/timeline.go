package ui

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
)

// point is the state of a crawl at one time.
type point struct {
	Time   time.Time
	Totals blobschema.Totals
	Calls  blobschema.Calls // billed calls of steps; zero if commits do not count them
}

// timeline reads the history of a crawl from its commits. It keeps the points of the commits that it has read, so that
// reading a crawl that runs again reads new commits only. The zero value is ready; it is safe for concurrent use.
type timeline struct {
	mu   sync.Mutex
	seen map[string]point // by commit
}

// read returns the state of the crawl at n times at equal distances, from its creation to the last commit, the oldest
// first. It returns nothing if there is no commit. It ends earlier if a partition at work has not committed for longer,
// because the others alone would look like a slower crawl. Between two commits of a partition that it reads, the figures are
// interpolated. It reads the last commit of each partition and about n others, evenly chosen.
func (l *timeline) read(ctx context.Context, v *view.View, n int) ([]point, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	heads, err := v.Heads(ctx)
	if err != nil {
		return nil, err
	}
	c, err := v.Crawl(ctx)
	if err != nil {
		return nil, err
	}
	heads = slices.DeleteFunc(heads, func(h blobschema.Head) bool { return h.Commit == "" })
	if len(heads) == 0 {
		return nil, nil
	}
	each := max(1, n/len(heads))
	kept := map[string]point{}
	var parts [][]point
	for i := range heads {
		list, err := l.sample(ctx, v, &c, &heads[i], each, kept)
		if err != nil {
			return nil, err
		}
		parts = append(parts, list)
	}
	l.seen = kept
	var first, last, horizon time.Time
	for i, list := range parts {
		if first.IsZero() || list[0].Time.Before(first) {
			first = list[0].Time
		}
		end := list[len(list)-1].Time
		if end.After(last) {
			last = end
		}
		if atWork := time.Now().Before(heads[i].LeaseUntil); atWork && (horizon.IsZero() || end.Before(horizon)) {
			horizon = end
		}
	}
	if !horizon.IsZero() {
		last = horizon
	}
	out := make([]point, n)
	for i := range out {
		p := &out[i]
		p.Time = first.Add(last.Sub(first) * time.Duration(i) / time.Duration(max(n-1, 1)))
		for _, list := range parts {
			p.add(list)
		}
	}
	return out, nil
}

// readAhead is how many commits are read at once. Commits are small; eight of the largest are a few hundred MB.
const readAhead = 8

// sample returns the points of at most n+2 commits of a partition, the oldest first: the first one, those whose number
// is a multiple of a power of two, and the last one. So a later sample consists of the same commits and of later ones.
func (l *timeline) sample(ctx context.Context, v *view.View, c *blobschema.Crawl, h *blobschema.Head, n int, kept map[string]point) (list []point, err error) {
	last, err := blobschema.ReadManifest(blobschema.GetFrom(ctx, v.Store()), h.Commit)
	if err != nil {
		return nil, err
	}
	stride := uint64(1)
	for last.Seq/stride > uint64(n) {
		stride *= 2
	}
	var missing []string
	var names []string
	for seq, name := range blobschema.CommitsAfter(last, 0) {
		if len(names) > 0 && seq%stride != 0 && seq != last.Seq {
			continue
		}
		names = append(names, name)
		if p, ok := l.seen[name]; ok {
			kept[name] = p
		} else if name != h.Commit {
			missing = append(missing, name)
		}
	}
	kept[h.Commit] = pointOf(last)
	points := make([]point, len(missing))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(readAhead)
	for i, name := range missing {
		g.Go(func() error {
			m, err := blobschema.ReadManifest(blobschema.GetFrom(gctx, v.Store()), name)
			if err == nil {
				points[i] = pointOf(m)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i, name := range missing {
		kept[name] = points[i]
	}
	for _, name := range names {
		list = append(list, kept[name])
	}
	// The first partitions have begun with nothing; later ones begin with the slots that others gave them.
	if int(h.Partition) < c.Partitions && !c.Created.IsZero() && c.Created.Before(list[0].Time) {
		list = append([]point{{Time: c.Created}}, list...)
	}
	return list, nil
}

func pointOf(m *blobschema.Manifest) point { return point{m.Time, m.Totals, m.Calls} }

// add adds the figures of a partition at the time of p, between two of its points.
func (p *point) add(list []point) {
	i, _ := slices.BinarySearchFunc(list, p.Time, func(q point, t time.Time) int { return q.Time.Compare(t) })
	switch {
	case i == len(list):
		p.Totals.Add(&list[i-1].Totals)
		p.Calls.Add(list[i-1].Calls)
	case i == 0 && list[0].Time.After(p.Time): // before its first commit
	case i == 0 || list[i].Time.Equal(p.Time):
		p.Totals.Add(&list[i].Totals)
		p.Calls.Add(list[i].Calls)
	default:
		a, b := &list[i-1], &list[i]
		share := float64(p.Time.Sub(a.Time)) / float64(b.Time.Sub(a.Time))
		totals, calls := a.Totals.Toward(&b.Totals, share), a.Calls.Toward(b.Calls, share)
		p.Totals.Add(&totals)
		p.Calls.Add(calls)
	}
}
