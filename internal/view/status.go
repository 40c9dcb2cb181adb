package view

import (
	"context"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// State is the state of a crawl.
type State string

// The states.
const (
	Running  State = "running"
	Finished State = "finished" // nothing is left to do
	Limited  State = "limit"    // the page limit is reached
	Paused   State = "paused"   // by an order; work is left, and no process runs
	Stopped  State = "stopped"  // work is left, and no process runs
	Idle     State = "idle"     // of a shared platform: work is left, but not for now
)

// Status is a crawl as a whole.
type Status struct {
	Crawl blobschema.Crawl
	State State
	Live  *control.Live // figures of the process that owns the folder; nil if none does
	// Totals are the totals of the last commits, with the slots that are handed over and not yet taken.
	Totals  blobschema.Totals
	Heads   []blobschema.Head
	Desired blobschema.DesiredState
	Map     blobschema.MapRecord
	Owners  int   // partitions that own slots
	Unread  int64 // mail sent and not applied
	// Requests counts the mail made of requests from outside; Unasked is the part that is not
	// applied yet.
	Requests, Unapplied uint64
	// Index are the heads of the index, by partition; none if the crawl has no index. Ranks is
	// the progress of the last rank job.
	Index []blobschema.IndexHead
	Ranks rank.Progress
	// DeadRequests counts requests from outside, or URLs of them, that could not be read.
	DeadRequests int64

	// Of a platform that processes share:

	Leased int                   // partitions that a step holds the lease of
	Due    time.Time             // when the first partition has a URL to request; zero if none has
	Tick   blobschema.TickRecord // state of the coordinator
	// Calls are the calls of steps, ticks, intake, index and ranks that records count; see Calls
	// of Head, TickRecord, Requests, IndexHead and RankHead.
	Calls blobschema.Calls
}

// Status reads records: those of the platform in one call, and those of index and ranks in
// another. It reads each map once, and manifests only while slots are on the move.
func (v *View) Status(ctx context.Context) (s Status, err error) {
	s.Live = v.Live(ctx)
	var requests blobschema.Requests
	s.Heads, s.Map, err = v.headsAnd(ctx,
		[]string{naming.CrawlKey(v.id), naming.DesiredKey(v.id), naming.RequestsKey(v.id), naming.TickKey(v.id), naming.RankKey(v.id)},
		[]any{&s.Crawl, &s.Desired, &requests, &s.Tick, &s.Ranks.Job})
	if err != nil {
		return s, err
	}
	m, err := v.mapOf(ctx, &s.Map, s.Map.Object)
	if err != nil {
		return s, err
	}
	s.Owners = len(m.Partitions())
	sent, applied := uint64(len(s.Crawl.SeedBatches)*s.Crawl.Partitions), uint64(0)
	for _, n := range requests.Sent {
		s.Requests += n
	}
	s.Unapplied = s.Requests
	sent += s.Requests
	s.DeadRequests = requests.Dead
	s.Calls.Add(requests.Calls)
	s.Calls.Add(s.Tick.Calls)
	for i := range s.Heads {
		h := &s.Heads[i]
		s.Totals.Add(&h.Totals)
		s.Calls.Add(h.Calls)
		applied += h.Applied
		s.Unapplied -= min(s.Unapplied, h.Requests)
		for _, n := range h.Sent {
			sent += n
		}
		if !h.Due.IsZero() && (s.Due.IsZero() || h.Due.Before(s.Due)) {
			s.Due = h.Due
		}
	}
	s.Unread = int64(sent) - int64(applied)
	if err := v.addFollowers(ctx, &s); err != nil {
		return s, err
	}
	if err := v.addGiven(ctx, s.Heads, &s.Totals); err != nil {
		return s, err
	}
	now := time.Now()
	if v.shared() {
		for i := range s.Heads {
			if h := &s.Heads[i]; h.Owner != "" && now.Before(h.LeaseUntil) {
				s.Leased++
			}
		}
	}
	s.State = s.state(v.shared(), now)
	return s, nil
}

// addFollowers adds index and ranks, which follow the crawl.
func (v *View) addFollowers(ctx context.Context, s *Status) error {
	var keys []string
	var to []any
	heads := make([]ranks.Head, min(len(s.Ranks.Job.Inputs), partition.MaxPartitions))
	for p := range heads {
		keys, to = append(keys, naming.RankHeadKey(v.id, partition.ID(p))), append(to, &heads[p])
	}
	index := make([]blobschema.IndexHead, len(s.Heads))
	if s.Crawl.Settings.Index {
		for i := range index {
			keys, to = append(keys, naming.IndexKey(v.id, s.Heads[i].Partition)), append(to, &index[i])
		}
	}
	if _, err := blobschema.ReadRecords(ctx, v.store, keys, to); err != nil {
		return err
	}
	for i := range index {
		if index[i].Number > 0 {
			s.Index = append(s.Index, index[i])
			s.Calls.Add(index[i].Calls)
		}
	}
	for i := range heads {
		s.Calls.Add(heads[i].Calls)
	}
	s.Ranks = rank.NewProgress(s.Ranks.Job, heads)
	return nil
}

// Behind counts the commits that are not in the index yet.
func (s *Status) Behind() (commits uint64) {
	seqs := map[partition.ID]uint64{}
	for i := range s.Index {
		seqs[s.Index[i].Partition] = s.Index[i].Seq
	}
	for i := range s.Heads {
		if h := &s.Heads[i]; h.Seq > seqs[h.Partition] { // the index may have got further since
			commits += h.Seq - seqs[h.Partition]
		}
	}
	return commits
}

// addGiven adds the slots that were given away and not taken yet: the totals of no partition
// have them.
func (v *View) addGiven(ctx context.Context, heads []blobschema.Head, t *blobschema.Totals) error {
	var ids, takers []partition.ID
	for i := range heads {
		for to, epoch := range heads[i].Gives {
			if !confirmed(headOf(heads, to), epoch) {
				ids = append(ids, heads[i].Partition)
				break
			}
		}
	}
	from, err := v.partsAt(ctx, ids, heads)
	if err != nil {
		return err
	}
	for _, p := range from {
		for i := range p.Given {
			takers = append(takers, p.Given[i].To)
		}
	}
	to, err := v.partsAt(ctx, takers, heads)
	if err != nil {
		return err
	}
	for _, p := range from {
		for i := range p.Given {
			g := &p.Given[i]
			for _, s := range g.State {
				if g.Epoch > to[g.To].holding.Seen(s.Slot) {
					t.Known += int64(s.Known)
					t.Pending += int64(s.Pending)
					t.Unexamined += int64(s.Unexamined)
					t.Urgent += int64(s.Urgent)
				}
			}
		}
	}
	return nil
}

// confirmed reports whether a partition has taken all slots of the maps up to an epoch.
func confirmed(h *blobschema.Head, epoch partition.Epoch) bool {
	return h != nil && h.Epoch >= epoch && (h.Awaits == 0 || h.Awaits > epoch)
}

func (s *Status) state(shared bool, now time.Time) State {
	left := s.Totals.Pending + s.Totals.Unexamined + s.Totals.Buffered + s.Unread
	limit := s.Crawl.Settings.MaxPages
	switch {
	case s.Live != nil || s.Leased > 0:
		return Running
	case left == 0 && s.Crawl.Published == len(s.Crawl.SeedBatches):
		return Finished
	case limit > 0 && s.Totals.Pages >= limit && (!shared || s.Totals.Urgent == 0 && s.Unapplied == 0):
		return Limited
	case s.Desired.Stop:
		return Stopped
	case s.Desired.Pause:
		return Paused
	case !shared:
		return Stopped
	case s.work(now):
		return Running
	}
	return Idle
}

// work reports whether a step would have something to do now.
func (s *Status) work(now time.Time) bool {
	if s.Unread != 0 || s.Crawl.Published < len(s.Crawl.SeedBatches) || !s.Due.IsZero() && !s.Due.After(now) {
		return true
	}
	for i := range s.Heads {
		if h := &s.Heads[i]; h.Owner != "" || h.Published < h.Seq || h.Owes > 0 || h.Awaits > 0 || h.Totals.Buffered+h.Totals.Unexamined > 0 || h.Desired != s.Desired.Version {
			return true
		}
	}
	return false
}

// shared reports whether other processes may work on the crawl, so that only its records show
// who does.
func (v *View) shared() bool {
	p := v.platform()
	return p != nil && !p.Exclusive
}
