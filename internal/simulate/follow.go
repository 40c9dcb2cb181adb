package simulate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/index"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/partition"
)

// pollJobs is the trigger of index and rank jobs: every message of a queue starts a process, even if one is running for the
// same partition. The message is acknowledged when the process has ended well.
func (w *world) pollJobs(queue, kind string, begin func(*proc) (actor.Actor, error)) {
	w.After(w.poll.between(200*time.Millisecond, 2*time.Second), func() { w.pollJobs(queue, kind, begin) })
	got, err := w.queues.Receive(w.Wall(), queue, 10)
	if err != nil {
		w.fail(err)
		return
	}
	for _, d := range got {
		_, part, err := blobschema.DecodeJob(d.Body)
		if err != nil {
			w.fail(err)
			return
		}
		p := w.newProc(kind, part)
		if p.actor, err = begin(p); err != nil {
			w.fail(err)
			return
		}
		p.onEnd = func(err error) {
			switch {
			case p.dead || errors.Is(err, errInjected) || errors.Is(err, actor.ErrNotFound): // a faster process dropped what this one read
				return // the message comes again
			case err != nil:
				w.fail(fmt.Errorf("%s fails: partition %d at %v: %w", kind, part, w.Mono, err))
				return
			}
			if err := w.queues.Ack(w.Wall(), queue, d.Receipt); err != nil {
				w.note(kind, "was late") // the message was delivered to another process meanwhile
			}
		}
		w.After(p.between(0, 500*time.Millisecond), p.start)
	}
}

// indexStep returns an index step with so little memory and time that it merges often.
func (w *world) indexStep(p *proc) (actor.Actor, error) {
	cfg := index.Config{
		Crawl: w.crawl, Partition: p.part, Processors: 1 + p.rng.IntN(3), BatchSize: 1 + p.rng.IntN(60), FanIn: 2 + p.rng.IntN(3),
		Memory: []int{1 << 14, 1 << 20}[p.rng.IntN(2)], Grace: w.cfg.IndexGrace,
	}
	if p.rng.IntN(4) == 0 {
		cfg.Deadline = p.between(time.Second, time.Minute)
	}
	return index.NewStep(cfg)
}

// rankStep returns a rank step.
func (w *world) rankStep(p *proc) (actor.Actor, error) {
	cfg := rank.StepConfig{Crawl: w.crawl, Partition: p.part}
	if p.rng.IntN(4) == 0 {
		cfg.Deadline = p.between(time.Second, time.Minute)
	}
	return rank.NewStep(cfg, nil), nil
}

// remindAfter is the time between two reminders of the steps of a rank job, whose messages may be lost.
const remindAfter = 10 * time.Minute

// startRanks starts or reminds a rank job if the coordinator wants it, as package jobs does.
func (w *world) startRanks(rep *crawl.Report) {
	p := w.newProc("ranks", 0)
	switch {
	case rep.WantsRanks:
		params := ranks.DefaultParams()
		params.MaxRounds = 1 + int(w.cfg.Seed%16) // few rounds, because most of the simulation would otherwise be rounds without faults
		p.actor = rank.NewStart(rank.StartConfig{Crawl: w.crawl, Params: params, Same: true})
	case rep.Ranking && w.Mono-w.reminded >= remindAfter:
		p.actor = rank.NewRemind(w.crawl.ID, 0)
	default:
		return
	}
	w.reminded = w.Mono
	p.onEnd = func(err error) {
		if err != nil && !p.dead && !errors.Is(err, errInjected) && !errors.Is(err, rank.ErrUnderWay) && !errors.Is(err, rank.ErrNothing) {
			w.fail(fmt.Errorf("ranks fail at %v: %w", w.Mono, err))
		}
	}
	p.start()
}

// document identifies a document.
type document struct {
	fp   uint64
	slot partition.Slot
}

// indexed reads the index: the generation of each document by URL.
func (w *world) indexed() (map[string]uint32, error) {
	type version struct {
		url        string
		generation uint32
	}
	shown, removed := map[document]version{}, map[document]uint32{}
	for p := range partition.ID(w.partitions()) {
		r := w.Table[naming.IndexKey(w.crawl.ID, p)]
		if !r.Found {
			continue
		}
		head, err := actor.Decode[blobschema.IndexHead](r, "index head")
		if err != nil {
			return nil, err
		}
		if head.Manifest == "" {
			continue // a step has claimed the partition but stored nothing yet
		}
		man, err := blobschema.DecodeIndexManifest(w.Objects[head.Manifest])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", head.Manifest, err)
		}
		for _, d := range man.Removed {
			removed[document{d.Fingerprint, d.Slot}] = max(d.Generation, removed[document{d.Fingerprint, d.Slot}])
		}
		here := map[document]bool{}
		for i := range man.Segments {
			docs, err := w.documents(&man.Segments[i])
			if err != nil {
				return nil, err
			}
			for _, d := range docs {
				id := document{d.Fingerprint, d.Slot}
				if here[id] {
					return nil, broken("I11", "%s is twice in the index of partition %d", d.URL, p)
				}
				here[id] = true
				if was, ok := shown[id]; !ok || d.Generation > was.generation {
					shown[id] = version{d.URL, d.Generation}
				}
			}
		}
	}
	out := map[string]uint32{}
	for id, v := range shown {
		if g, gone := removed[id]; !gone || g < v.generation {
			out[v.url] = v.generation
		}
	}
	return out, nil
}

// documents reads the current documents of a segment.
func (w *world) documents(ref *blobschema.SegmentRef) (out []segment.Document, err error) {
	r, err := segment.Open(segment.InMemory(w.Objects[ref.Object]), ref.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Object, err)
	}
	deleted, err := segment.DecodeSet(ref.Deleted, int(ref.Documents))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref.Object, err)
	}
	for i := range uint32(r.Documents()) {
		if deleted.Has(i) {
			continue
		}
		d, err := r.Document(i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", ref.Object, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// checkIndex compares the index with the page records (I11).
func (w *world) checkIndex(all map[string][]blobschema.Page) error {
	got, err := w.indexed()
	if err != nil {
		return err
	}
	for url, pages := range all {
		pages = slices.Clone(pages)
		slices.SortFunc(pages, func(a, b blobschema.Page) int { return cmp.Compare(a.Generation, b.Generation) })
		var want *blobschema.Page
		for i := range pages {
			switch p := &pages[i]; p.Outcome {
			case blobschema.OutcomeOK:
				if want = p; p.NoIndex || p.MIME != "text/html" && p.MIME != "text/plain" {
					want = nil
				}
			case blobschema.OutcomeRedirect, blobschema.OutcomeClientError, blobschema.OutcomeRobots, blobschema.OutcomeForbidden:
				want = nil
			}
		}
		generation, there := got[url]
		switch {
		case want == nil && there:
			return broken("I11", "%s is in the index, and should not be: %+v", url, pages)
		case want != nil && !there:
			return broken("I11", "%s is not in the index: %+v", url, pages)
		case want != nil && generation < want.Generation && want.Original == nil:
			return broken("I11", "%s is in the index as of generation %d: %+v", url, generation, pages)
		}
		delete(got, url)
	}
	for url := range got {
		return broken("I11", "%s is in the index, and has no page record", url)
	}
	return nil
}
