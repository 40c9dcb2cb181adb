package frontier

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// find adds a URL of a topic.
func (r *rig) find(url string, topic uint8) {
	r.t.Helper()
	r.queue(url, blobschema.Queued{Depth: 1, Topic: topic})
}

// mustAsk makes the next request, which must be for the given URL, and keeps the connection.
func (r *rig) mustAsk(url string) {
	r.t.Helper()
	task := r.mustNext(url)
	r.now = r.now.Add(r.took)
	r.f.Done(r.now, task, answer{keep: true}.reply(task, r.now.Add(-r.took), r.took))
	r.check()
}

// meet requests robots.txt and a first page of each host.
func (r *rig) meet(topic uint8, hosts ...string) {
	r.t.Helper()
	for _, h := range hosts {
		r.find("https://"+h+"/first", topic)
		r.mustAsk("https://" + h + "/robots.txt")
		r.mustAsk("https://" + h + "/first")
	}
}

// TestPriorities checks that a topic with a higher priority comes first between two requests. Interrupted visits continue
// after it, on their connections.
func TestPriorities(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 2}, {Priority: 1}}})
	r.find("https://low.example/1", 0)
	r.find("https://low.example/2", 0)
	r.find("https://low.example/3", 0)
	r.find("https://other.example/1", 0)
	r.mustAsk("https://low.example/robots.txt")
	r.mustAsk("https://low.example/1")
	r.find("https://middle.example/1", 2)
	r.find("https://high.example/1", 1)
	r.mustAsk("https://high.example/robots.txt")
	r.mustAsk("https://high.example/1")
	r.mustAsk("https://middle.example/robots.txt")
	if k := peek(r.f.schedule, "keys", "low.example"); !k.FieldByName("connected").Bool() || k.FieldByName("served").Int() != 2 {
		t.Error("the visit to low.example is over")
	}
	r.find("https://low.example/0", 1) // one host, in two topics
	r.mustAsk("https://low.example/0")
	r.mustAsk("https://middle.example/1")
	r.mustAsk("https://low.example/2")
	r.mustAsk("https://low.example/3")
	r.mustAsk("https://other.example/robots.txt")
	r.mustAsk("https://other.example/1")
	r.mustIdle()
}

// TestTopicTurns checks that topics of one priority get time in proportion to their slices.
func TestTopicTurns(t *testing.T) {
	for _, c := range []struct{ one, two time.Duration }{{time.Second, time.Second}, {time.Second, 3 * time.Second}, {0, blobschema.DefaultSlice}} {
		r := newRig(t, Config{Topics: []schedule.Topic{{}, {Slice: c.one}, {Slice: c.two}}})
		used := map[uint8]time.Duration{}
		turns, last, n := 0, uint8(0), 0
		for turns < 100 {
			for topic := uint8(1); topic <= 2; topic++ {
				for range 2 {
					n++
					r.find(fmt.Sprintf("https://h%d.example/%d/%d", n%5, topic, n), topic)
				}
			}
			task, ok := r.f.Next(r.now, false)
			if !ok {
				t.Fatal("no request is possible")
			}
			r.now = r.now.Add(r.took)
			used[task.Topic] += r.took
			if task.Topic != last {
				last = task.Topic
				turns++
			}
			r.f.Done(r.now, task, answer{keep: true}.reply(task, r.now, r.took))
		}
		r.check()
		want := cmp.Or(c.one, blobschema.DefaultSlice).Seconds() / c.two.Seconds()
		if got := used[1].Seconds() / used[2].Seconds(); got < want*0.9 || got > want*1.1 || used[0] != 0 {
			t.Errorf("slices of %v and %v: times %v", c.one, c.two, used)
		}
	}
}

// TestTurnsOfColdSteps checks that the shares of topics are within a tenth of their slices, over ten rounds of steps that live
// for a few minutes and have no memory.
func TestTurnsOfColdSteps(t *testing.T) {
	const life = 4*time.Minute + 30*time.Second
	for _, slices := range [][]time.Duration{
		{10 * time.Second, 10 * time.Second, 10 * time.Second}, {30 * time.Second, 10 * time.Second, 20 * time.Second},
		{3 * time.Minute, 3 * time.Minute, 3 * time.Minute}, {5 * time.Minute, 5 * time.Minute, 5 * time.Minute},
		{time.Hour, time.Hour, time.Hour}, {time.Hour, 10 * time.Minute, 20 * time.Minute},
	} {
		topics, round := []schedule.Topic{{}}, time.Duration(0)
		for _, s := range slices {
			topics, round = append(topics, schedule.Topic{Slice: s}), round+s
		}
		pages, n, now := map[uint8]int{}, 0, epoch
		for end := epoch.Add(10 * round); now.Before(end); {
			r := newRig(t, Config{Topics: topics})
			r.now = now
			add := func(topic uint8) {
				n++
				r.find(fmt.Sprintf("https://h%d.example/%d", n%5, n), topic)
			}
			for range 3 {
				for topic := range slices {
					add(uint8(topic + 1))
				}
			}
			for stop := now.Add(life); r.now.Before(stop) && r.now.Before(end); r.now = r.now.Add(time.Second) {
				task, ok := r.f.Next(r.now, false)
				if !ok {
					t.Fatal("no request is possible")
				}
				pages[task.Topic]++
				r.f.Done(r.now, task, answer{keep: true}.reply(task, r.now, r.took))
				add(task.Topic)
			}
			now = r.now
		}
		for i, s := range slices {
			if want, got := s.Seconds()*10, float64(pages[uint8(i+1)]); got < 0.9*want || got > 1.1*want {
				t.Errorf("slices of %v: topic %d has %v pages of %v", slices, i+1, got, want)
			}
		}
	}
}

// TestTurnIsShared checks that time that the current topic cannot use goes to the others of its priority, one request each,
// and then to lower ones.
func TestTurnIsShared(t *testing.T) {
	r := newRig(t, Config{Delay: 10 * time.Second, Topics: []schedule.Topic{{Priority: -1}, {}, {}, {}}, Hosts: map[string]schedule.HostRule{
		"two.example": {}, "three.example": {}, "zero.example": {},
	}})
	for topic, host := range []string{"zero.example", "one.example", "two.example", "three.example"} {
		for i := range 3 {
			r.find(fmt.Sprintf("https://%s/%d", host, i), uint8(topic))
		}
	}
	r.mustAsk("https://one.example/robots.txt")
	r.mustAsk("https://one.example/0") // now it has to wait
	r.mustAsk("https://two.example/robots.txt")
	r.mustAsk("https://three.example/robots.txt")
	for i := range 3 {
		r.mustAsk(fmt.Sprintf("https://two.example/%d", i))
		r.mustAsk(fmt.Sprintf("https://three.example/%d", i))
	}
	r.mustAsk("https://zero.example/robots.txt")
	r.now = r.now.Add(10 * time.Second)
	r.mustAsk("https://one.example/1")
	r.mustAsk("https://zero.example/0")
}

// TestUrgentBeforeTopics checks that requested URLs come before all topics.
func TestUrgentBeforeTopics(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 9}}})
	r.meet(1, "high.example")
	r.meet(0, "low.example")
	r.find("https://high.example/1", 1)
	r.find("https://low.example/1", 0)
	r.again("https://low.example/2", 1)
	if _, ok := r.f.Next(r.now, true); !ok {
		t.Fatal("no urgent request")
	}
	r.mustAsk("https://high.example/1")

	r = newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 9}}}) // of two urgent URLs, the one of the higher topic comes first
	r.meet(1, "high.example")
	r.meet(0, "low.example")
	r.find("https://high.example/1", 1)
	r.again("https://low.example/first", 1)
	r.again("https://high.example/1", 1)
	r.mustAsk("https://high.example/1")
	r.mustAsk("https://low.example/first")
}

// TestUnknownTopic checks that an unknown topic has priority 0.
func TestUnknownTopic(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 1}}})
	r.meet(0, "a.example")
	r.meet(255, "b.example")
	r.meet(1, "c.example")
	r.find("https://b.example/1", 255)
	r.find("https://a.example/1", 0)
	r.find("https://c.example/1", 1)
	r.mustAsk("https://c.example/1")
	r.now = r.now.Add(blobschema.DefaultSlice)
	var got []uint8
	for range 2 {
		task, ok := r.f.Next(r.now, false)
		if !ok {
			t.Fatalf("no request is possible after topics %d", got)
		}
		got = append(got, task.Topic)
		r.done(task, answer{})
		r.now = r.now.Add(blobschema.DefaultSlice)
	}
	if slices.Sort(got); !slices.Equal(got, []uint8{0, 255}) {
		t.Errorf("topics %d had turns", got)
	}
}

// TestSetTopics changes priorities and slices, and adds topics, while URLs wait.
func TestSetTopics(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 1}}})
	r.meet(0, "a.example", "b.example", "c.example")
	for i := range 4 {
		r.find(fmt.Sprintf("https://a.example/%d", i), 0)
		r.find(fmt.Sprintf("https://b.example/%d", i), 1)
		r.find(fmt.Sprintf("https://c.example/%d", i), 2)
	}
	r.mustAsk("https://b.example/0")
	r.f.SetTopics([]schedule.Topic{{Priority: 2}, {Priority: 1}, {}})
	r.mustAsk("https://a.example/0")
	r.f.SetTopics([]schedule.Topic{{Priority: 2}, {Priority: 1}, {Priority: 3}})
	r.mustAsk("https://c.example/0")
	r.f.SetTopics(nil)
	r.check()
	seen := map[uint8]int{}
	for range 9 {
		task, ok := r.f.Next(r.now, false)
		if !ok {
			t.Fatalf("no request is possible after %v", seen)
		}
		seen[task.Topic]++
		r.now = r.now.Add(blobschema.DefaultSlice)
		r.done(task, answer{})
	}
	if seen[0] != 3 || seen[1] != 3 || seen[2] != 3 {
		t.Errorf("requested %v", seen)
	}
	r.mustIdle()
}

// TestTopicOfAFind checks that a URL found in two topics belongs to the one with the lower number, wherever it waits.
func TestTopicOfAFind(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {Priority: 2}, {Priority: 1}}})
	r.meet(0, "a.example")
	r.find("https://a.example/x", 2)
	r.find("https://a.example/x", 1)
	r.find("https://a.example/x", 2)
	r.check()
	if n := [3]int64{r.f.PendingOf(0), r.f.PendingOf(1), r.f.PendingOf(2)}; n != [3]int64{0, 1, 0} {
		t.Errorf("pending by topic: %d", n)
	}
	task := r.mustNext("https://a.example/x")
	r.find("https://a.example/x", 0) // its request is under way and continues unchanged
	r.check()
	if task.Topic != 1 || r.done(task, answer{status: 500}) != schedule.Again || r.f.PendingOf(0) != 1 {
		t.Errorf("requested in topic %d; %d of topic 0 are pending", task.Topic, r.f.PendingOf(0))
	}
	r.check()
}

// TestDesiredHasATopic requests a URL again while its request is under way and fails. The URL then belongs to the topic of
// the new request.
func TestDesiredHasATopic(t *testing.T) {
	r := newRig(t, Config{Topics: []schedule.Topic{{}, {}, {}}})
	r.meet(2, "a.example")
	r.find("https://a.example/x", 2)
	task := r.mustNext("https://a.example/x")
	u := mustParse(t, "https://a.example/x")
	r.f.Add(r.now, r.link(u, blobschema.Queued{Key: "a.example", Generation: 1, Rank: 1, Topic: 1}))
	run, _ := r.f.Delta(1)
	r.f.Committed()
	if len(run.Queued) != 1 || run.Queued[0].Topic != 1 || r.done(task, answer{status: 500}) != schedule.Again {
		t.Fatalf("the run holds %+v", run.Queued)
	}
	run, _ = r.f.Delta(2)
	if r.check(); len(run.Queued) != 1 || run.Queued[0].Topic != 1 || r.f.PendingOf(1) != 1 {
		t.Errorf("the run holds %+v", run.Queued)
	}
}
