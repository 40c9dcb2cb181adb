package crawl

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// TestWakesWhateverBecomesOfPlans checks that partitions are woken even if reading their loads fails or takes longer than a
// run may, and that the next run does not try again at once.
func TestWakesWhateverBecomesOfPlans(t *testing.T) {
	w, c := newWorld(t), newCrawl(1)
	c.Settings.MostPartitions = 4
	host := ofPartition(t, c, 0)
	w.web = site(t, host, 1, func(int) (links []string) {
		for i := range 2 * wakeURLs {
			links = append(links, fmt.Sprintf("https://%s/%d", host, 1+i))
		}
		return links
	})
	c = w.begin(c, "https://"+host+"/0")
	w.step(StepConfig{Crawl: c, Process: "p", Deadline: 5 * time.Second}, nil)
	w.Mono += time.Hour
	tick := func() (map[string]int, error) {
		return w.run(NewTick(TickConfig{Crawl: c.ID, HostsEvery: 24 * time.Hour}, nil))
	}
	commit := w.head(c.ID, 0).Commit
	w.fault = func(e actor.Effect) (error, error) {
		if get, ok := e.(actor.GetObject); ok && get.Name == commit {
			return errors.New("it cannot be read"), nil
		}
		return nil, nil
	}
	counts, err := tick()
	if err == nil || counts["Send"] != 1 {
		t.Errorf("a tick that cannot plan wakes by %d messages: %v", counts["Send"], err)
	}
	if counts, err := tick(); err != nil || counts["GetObject"] != 0 {
		t.Errorf("the next tick reads %d objects: %v", counts["GetObject"], err)
	}
	w.fault = nil
	w.Mono += time.Hour
	if counts, err := tick(); err != nil || counts["GetObject"] == 0 {
		t.Errorf("an hour later a tick reads %d objects: %v", counts["GetObject"], err)
	}
}

// TestPartitionsFollowTheLoad checks that the number of partitions follows the work, within the operator's bounds. A
// politeness key counts only as many URLs as its pace allows.
func TestPartitionsFollowTheLoad(t *testing.T) {
	const slots = 10 // slots with URLs, alternating between partitions 0 and 1
	for _, k := range []struct {
		name        string
		set         func(w *world, s *scene)
		least, most int
		load        uint32 // of each slot
		want        int    // number of partitions that own slots in the end
	}{
		{"not requested", nil, 0, 0, 1000, 2},
		{"much", nil, 0, 8, 300, 4},
		{"more than there may be", nil, 0, 3, 300, 3},
		{"more than there are mailboxes", func(_ *world, s *scene) { s.cfg.Mailboxes = 3 }, 0, 8, 300, 3},
		{"mailboxes in plenty", func(_ *world, s *scene) { s.cfg.Mailboxes = 30 }, 0, 8, 300, 4},
		{"as much as their pace allows", func(_ *world, s *scene) { s.crawl.Settings.Delay = 2 * time.Second }, 0, 20, 1e6, 4},
		{"as fast as they answer", func(_ *world, s *scene) { s.crawl.Settings.Delay = 0 }, 0, 20, 1e6, slots},
		{"enough for those there are", nil, 0, 8, 130, 2},
		{"little", nil, 0, 8, 40, 1},
		{"little, and a least number", nil, 2, 8, 40, 2},
		{"hardly anything", nil, 0, 8, 19, 2},
		{"hardly anything for so many", nil, 3, 8, 59, 2},
		{"unexamined", func(_ *world, s *scene) { s.heads[0].Totals.Pending, s.heads[0].Totals.Unexamined = 0, 1 }, 0, 8, 300, 4},
		{"a stop", func(_ *world, s *scene) { s.desired.Stop = true }, 0, 8, 300, 2},
		{"slots on the move", func(_ *world, s *scene) {
			moving := blobschema.Moving{Epoch: 2, From: 0, To: 1, Slots: partition.Slots{20}}
			s.moves, s.desired.Map = blobschema.MapRecord{Version: 1, Epoch: 1, Partitions: 2, Moving: []blobschema.Moving{moving}}, 1
		}, 0, 8, 300, 2},
		{"looked at just now", func(w *world, s *scene) { s.record.PlannedAt = w.in(-110 * time.Second) }, 0, 8, 300, 2},
		{"looked at before", func(w *world, s *scene) { s.record.PlannedAt = w.in(-2 * time.Minute) }, 0, 8, 300, 4},
	} {
		t.Run(k.name, func(t *testing.T) {
			w, s := newScene(t)
			set := &s.crawl.Settings
			set.MostPartitions, set.LeastPartitions, set.Delay, s.cfg.Capacity = k.most, k.least, time.Second, 1000
			for p, h := range s.heads {
				man := blobschema.Manifest{Partition: h.Partition, Fence: h.Fence, Seq: h.Seq, Epoch: 1}
				for i := p; i < slots; i += 2 { // half of it is unexamined, and each slot is in parts
					half := blobschema.SlotSummary{Slot: partition.Slot(i), Pending: k.load / 2}
					rest := blobschema.SlotSummary{Slot: partition.Slot(i), Unexamined: k.load - k.load/2}
					half.Part, rest.Part = half.Part.Halves()[0], half.Part.Halves()[1]
					man.Slots = append(man.Slots, half, rest)
				}
				h.Commit, h.Totals.Pending = w.stored(s.crawl, blobschema.Commit{Manifest: man}), int64(k.load*slots/2)
			}
			if k.set != nil {
				k.set(w, s)
			}
			s.write(w)
			rep := s.tick(w)
			r := ReadPartitioning(s.crawl.ID)
			if _, err := w.run(r); err != nil {
				t.Fatal(err)
			}
			_, p := r.Result()
			if got := p.Target.Partitions(); len(got) != k.want || len(rep.Map.Moving) != len(p.Record.Moving) {
				t.Errorf("partitions %v are to own slots, want %d; %+v, %+v", got, k.want, rep.Map, p.Record)
			}
			w.Mono += time.Minute
			w.counts = nil
			if s.tick(w); s.record.PlannedAt.IsZero() && w.counts["GetObject"] > 0 {
				t.Errorf("a minute later it looks again: %v", w.counts)
			}
		})
	}
}
