package crawl

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// Index and ranks follow a crawl by jobs: the coordinator sends one for each partition whose index is behind its commits.
// Jobs may be lost, so they are sent again. The receiver reads the records first, so a repeated job is harmless.

const (
	indexEvery    = 2 * time.Minute  // least time between two jobs of a partition while the crawl runs
	indexSoon     = 5 * time.Second  // the same, with a TickMemory
	ranksEvery    = time.Hour        // least time between two rank jobs while the crawl runs
	maxFollowWait = 15 * time.Minute // longest time before a job is sent again
	grown         = 1.2              // growth in pages since the last ranks that justifies new ones
)

// Following reports whether the index or the ranks do not yet cover everything that was crawled.
func (r *Report) Following() bool { return r.Indexing > 0 || r.WantsRanks || r.Ranking }

// followsNow reports whether index and ranks should follow at once, because nothing more comes for now.
func (k *Tick) followsNow() bool {
	return k.cfg.FollowNow || k.report.Finished || k.report.Limited || k.over()
}

// readRankJob reads the record of the last rank job, if there is one.
func (k *Tick) readRankJob(t *actor.Task) error {
	recs, err := t.Records(naming.RankKey(k.report.Crawl.ID))
	if err != nil || !recs[0].Found {
		return err
	}
	k.ranks, err = actor.Decode[ranks.Job](recs[0], "rank job")
	return err
}

// follow starts what makes the crawl searchable: index jobs and rank jobs.
func (k *Tick) follow(t *actor.Task) error {
	c := &k.report.Crawl
	if !c.Settings.Index {
		return nil
	}
	keys := []string{naming.RankKey(c.ID)}
	for i := range k.report.Heads {
		keys = append(keys, naming.IndexKey(c.ID, k.report.Heads[i].Partition))
	}
	recs, err := t.Records(keys...)
	if err != nil {
		return err
	}
	if k.ranks, err = actor.DecodeFound[ranks.Job](recs[0], "rank job"); err != nil {
		return err
	}
	indexes := make([]blobschema.IndexHead, len(k.report.Heads))
	for i, rec := range recs[1:] {
		if indexes[i], err = actor.DecodeFound[blobschema.IndexHead](rec, "index head"); err != nil {
			return err
		}
		k.indexCalls += indexes[i].Calls.Functions
	}
	k.followRanks()
	if err := k.setRanks(t); err != nil {
		return err
	}
	return k.followIndex(t, indexes)
}

// followIndex sends a job for each index that is behind.
func (k *Tick) followIndex(t *actor.Task, indexes []blobschema.IndexHead) error {
	done := uint64(0)
	if j := k.ranks.Finished(); j != nil {
		done = j.Number
	}
	sent := map[partition.ID]blobschema.Waking{}
	var bodies [][]byte
	for i := range k.report.Heads {
		h, x := &k.report.Heads[i], &indexes[i]
		if h.Seq <= x.Seq && x.Anchors >= done {
			continue
		}
		k.report.Indexing++
		// A job covers everything committed so far. The next job for the partition waits a while.
		behind := blobschema.Waking{Fence: h.Seq + done, At: k.Now().Wall.UTC(), Times: 1}
		if was, ok := k.notes.Indexing[h.Partition]; ok {
			wait := indexEvery
			if k.mem != nil {
				wait = indexSoon
			}
			switch {
			case was.Fence == behind.Fence:
				wait = min(maxFollowWait, k.cfg.WakeAgain<<min(was.Times, 10))
				behind.Times = was.Times + 1
			case k.followsNow():
				wait = 0
			}
			if past := k.Now().Wall.Sub(was.At); past >= 0 && past < wait {
				sent[h.Partition] = was
				continue
			}
		}
		sent[h.Partition] = behind
		bodies = append(bodies, blobschema.EncodeJob(k.report.Crawl.ID, h.Partition))
	}
	if len(bodies) > 0 {
		if _, err := t.Do(actor.Send{Queue: naming.IndexQueue, Bodies: bodies}); err != nil {
			return fmt.Errorf("send index jobs: %w", err)
		}
	}
	if len(sent) > 0 || len(k.notes.Indexing) > 0 {
		k.note(func(n *blobschema.TickNotes) { n.Indexing = sent })
	}
	return nil
}

// followRanks decides whether a rank job should begin: when the crawl is over, and now and then while it runs and grows.
func (k *Tick) followRanks() {
	job := &k.ranks
	if job.Number > 0 && job.Done.IsZero() {
		k.report.Ranking = true
		return
	}
	news, commits := false, false
	inputs := map[partition.ID]uint64{}
	for _, in := range job.Inputs {
		inputs[in.Partition] = in.Seq
	}
	for i := range k.report.Heads {
		h := &k.report.Heads[i]
		news, commits = news || h.Seq > inputs[h.Partition], commits || h.Seq > 0
	}
	switch {
	case !news || !commits || k.report.Totals.Pages == 0:
	case k.followsNow():
		k.report.WantsRanks = true
	default:
		k.report.WantsRanks = k.passed(job.Started, ranksEvery) &&
			float64(k.report.Totals.Pages) >= grown*float64(job.Totals.Crawled)
	}
}

// setRanks makes steps use the newest ranks of hosts, if the crawl goes by computed ranks.
func (k *Tick) setRanks(t *actor.Task) error {
	set, done := &k.report.Crawl.Settings, k.ranks.Finished()
	if done == nil || set.Quality != schedule.HostRank || set.HostRanks != "" {
		return nil
	}
	return k.setDesired(t, func(w *blobschema.DesiredState) bool {
		if w.HostRanks == done.HostRanks {
			return false
		}
		w.HostRanks = done.HostRanks
		return true
	})
}
