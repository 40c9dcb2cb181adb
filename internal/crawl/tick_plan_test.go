package crawl

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// TestWakesWhateverBecomesOfPlans: reading what all partitions have to do may fail, or last
// longer than a tick may. Partitions are woken all the same, and the next tick does not try
// it again at once.
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
	w.now += time.Hour
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
	w.now += time.Hour
	if counts, err := tick(); err != nil || counts["GetObject"] == 0 {
		t.Errorf("an hour later a tick reads %d objects: %v", counts["GetObject"], err)
	}
}
