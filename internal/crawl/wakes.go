package crawl

import (
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// wake sends a wake to every partition that has something to do and no running step.
func (k *Tick) wake(t *actor.Task) error {
	now := k.Now().Wall
	woken := map[partition.ID]blobschema.Waking{}
	for p := range partition.ID(k.report.Partitions()) {
		if !k.needsStep(p) {
			continue
		}
		fence := uint64(0)
		if h := k.heads[p]; h != nil {
			fence = h.Fence
		}
		// A wake that was sent and not answered is resent only after a while.
		times := 0
		if last, ok := k.notes.Woken[p]; ok && last.Fence == fence {
			wait := min(maxDelay, k.cfg.WakeAgain<<min(max(last.Times, 1)-1, 10))
			if now.Sub(last.At) < wait && !now.Before(last.At) {
				woken[p] = last
				continue // a wake is on its way
			}
			times = last.Times
		}
		woken[p] = blobschema.Waking{Fence: fence, At: now.UTC(), Times: times + 1}
		k.report.Woken = append(k.report.Woken, p)
	}
	if len(k.report.Woken) == 0 {
		return nil
	}
	if err := sendWakes(t, k.report.Crawl.ID, 0, k.report.Woken); err != nil {
		return err
	}
	k.note(func(n *blobschema.TickNotes) { n.Woken = woken })
	return nil
}

// sendWakes wakes partitions after a delay, ten at once: a queue takes no more.
func sendWakes(t *actor.Task, crawl string, delay time.Duration, ps []partition.ID) error {
	for some := range slices.Chunk(ps, 10) {
		var bodies [][]byte
		for _, p := range some {
			bodies = append(bodies, blobschema.EncodeWake(crawl, p))
		}
		if _, err := t.Do(actor.Send{Queue: naming.WakesQueue, Bodies: bodies, Delay: delay}); err != nil {
			return fmt.Errorf("send wakes: %w", err)
		}
	}
	return nil
}

// needsStep reports whether a partition has something to do and no running step.
func (k *Tick) needsStep(p partition.ID) bool {
	h := k.heads[p]
	if h != nil && k.leased(h) || k.report.Desired.Stop {
		return false
	}
	mail := k.expected(p) > k.applied(p)
	// Without a head, only mail or a move makes work.
	if k.hasMoves(p) || h == nil {
		return mail || k.hasMoves(p)
	}
	// Mail to apply, or something to obey, send or release, always needs a step.
	behind := h.Desired != k.report.Desired.Version || h.Published < h.Seq || h.Totals.Buffered > 0 || h.Owner != ""
	if mail || behind || revisits(&k.report.Crawl.Settings) && stale(h, k.report.Desired.Threshold) && !k.report.Desired.Pause {
		return true
	}
	if k.free() == 0 && k.grants.Granted[p] > h.Totals.Pages {
		return true // other partitions may need its grant; a step uses it or gives it back
	}
	// Due URLs need a step if it may fetch them.
	due := !h.Due.IsZero() && !h.Due.After(k.Now().Wall) || h.Totals.Unexamined > 0 && h.Awaits == 0
	switch {
	case !due || k.report.Desired.Pause:
		return false
	case k.free() != 0 || h.Totals.Urgent > 0:
		return true
	}
	return revisits(&k.report.Crawl.Settings) && !h.RevisitsDue.After(k.Now().Wall)
}

// expected returns the number of mails that a partition must apply in the end.
func (k *Tick) expected(p partition.ID) uint64 {
	n := k.report.Requests.Sent[p]
	if int(p) < k.report.Crawl.Partitions { // seeds go by the map of epoch 1
		n += uint64(len(k.report.Crawl.SeedBatches))
	}
	for i := range k.report.Heads {
		if sent := k.report.Heads[i].Sent; int(p) < len(sent) {
			n += sent[p]
		}
	}
	return n
}

func (k *Tick) applied(p partition.ID) uint64 {
	if h := k.heads[p]; h != nil {
		return h.Applied
	}
	return 0
}

// free returns the pages of the limit that are granted to nobody; -1: there is no limit.
func (k *Tick) free() int64 {
	if k.report.Crawl.Settings.MaxPages == 0 {
		return -1
	}
	free := k.grants.Limit
	for _, n := range k.grants.Granted {
		free -= n
	}
	return free
}
