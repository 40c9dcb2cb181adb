package frontier

import (
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
)

// several returns a rig whose host allows three concurrent requests, 500 ms apart, with URLs in four queues.
func several(t testing.TB) *rig {
	r := newRig(t, Config{
		Delay: 10 * time.Second, Hosts: map[string]schedule.HostRule{"a.example": {Connections: 3, Delay: 500 * time.Millisecond}},
		QueueBy: blobschema.QueueByBKDR, Queues: 4,
	})
	r.add(0, "https://a.example/")
	robots := r.mustNext("https://a.example/robots.txt")
	r.f.Begun(r.now, robots)
	r.done(robots, answer{keep: true})
	r.now = r.now.Add(499 * time.Millisecond)
	r.mustIdle() // the first page waits for the pace, because another request may have begun after robots.txt
	r.now = r.now.Add(time.Millisecond)
	page := r.mustNext("https://a.example/")
	r.f.Begun(r.now, page)
	r.done(page, answer{keep: true})
	r.now = r.now.Add(500 * time.Millisecond)
	r.check()
	return r
}

// dealt returns n URLs for each of the four queues.
func dealt(t testing.TB, n int) (urls [4][]string) {
	for i, left := 0, 4*n; left > 0; i++ {
		url := fmt.Sprintf("https://a.example/%d", i)
		if sub := schedule.Reduce(schedule.HashString(blobschema.QueueByBKDR, url), 4); len(urls[sub]) < n {
			urls[sub] = append(urls[sub], url)
			left--
		}
	}
	return urls
}

// TestSeveralConnections checks that at most three requests run at once, one per queue, and that each starts only after the
// previous one has begun and its pace has passed.
func TestSeveralConnections(t *testing.T) {
	r := several(t)
	urls := dealt(t, 2)
	for _, list := range urls {
		r.add(1, list...)
	}
	r.check()
	var tasks []schedule.Task
	start := r.now
	for i := range 3 {
		task, ok := r.f.Next(r.now, false)
		if !ok {
			t.Fatalf("request %d is not possible after %v", i, r.now.Sub(start))
		}
		r.check()
		r.now = r.now.Add(200 * time.Millisecond)
		r.mustIdle() // it has not begun
		if !r.f.NextAt().IsZero() {
			t.Errorf("request %d has not begun, and the next one is due at %v", i, r.f.NextAt().Sub(start))
		}
		began := r.now
		r.f.Begun(began, task)
		r.check()
		for _, other := range tasks {
			if laneOf(other) == laneOf(task) {
				t.Errorf("%s and %s are in one queue", other.Request.URL, task.Request.URL)
			}
		}
		if tasks = append(tasks, task); len(tasks) == 3 {
			break
		}
		if at := r.f.NextAt(); !at.Equal(began.Add(500 * time.Millisecond)) {
			t.Fatalf("the request after %d is due %v after its start", i, at.Sub(began))
		}
		r.mustIdle()
		r.now = r.f.NextAt()
	}
	r.now = r.now.Add(time.Hour)
	r.mustIdle() // three are under way
	first := tasks[0]
	r.f.Done(r.now, first, answer{keep: true}.reply(first, start, r.now.Sub(start)))
	r.check()
	task, ok := r.f.Next(r.now, false)
	if !ok || laneOf(task) == laneOf(tasks[1]) || laneOf(task) == laneOf(tasks[2]) {
		t.Errorf("after the end of %s comes %s (%v)", first.Request.URL, task.Request.URL, ok)
	}
	for _, task := range append(tasks[1:], task) {
		r.done(task, answer{keep: true})
		r.check()
	}
	r.run(nil)
	if n := r.f.Counts(); n.Pending != 0 || n.InFlight != 0 {
		t.Errorf("counts are %+v", n)
	}
}

// TestConnectionsWithoutQueues checks that a host that allows several requests gets them even if the crawl has no setting for
// queues.
func TestConnectionsWithoutQueues(t *testing.T) {
	r := newRig(t, Config{Hosts: map[string]schedule.HostRule{"a.example": {Connections: 3, Delay: time.Millisecond}}})
	for i := range 40 {
		r.add(0, fmt.Sprintf("https://a.example/%d", i))
	}
	robots := r.mustNext("https://a.example/robots.txt")
	r.f.Begun(r.now, robots)
	r.done(robots, answer{})
	under := 0
	for range 10 {
		r.now = r.now.Add(time.Second)
		if task, ok := r.f.Next(r.now, false); ok {
			r.f.Begun(r.now, task)
			under++
		}
	}
	if under != 3 {
		t.Errorf("%d requests at once, want 3", under)
	}
}

// TestOneQueueOneConnection checks that the URLs of one queue are requested one after another.
func TestOneQueueOneConnection(t *testing.T) {
	r := several(t)
	list := dealt(t, 3)[2]
	r.add(1, list...)
	task := r.mustNext(list[0])
	r.f.Begun(r.now, task)
	r.now = r.now.Add(time.Minute)
	r.mustIdle()
	r.add(1, dealt(t, 1)[0]...)
	other := r.mustNext(dealt(t, 1)[0][0])
	r.f.Begun(r.now, other)
	r.done(other, answer{})
	r.done(task, answer{})
	r.check()
	r.now = r.now.Add(time.Minute)
	r.mustNext(list[1])
}

// TestConnectionsAcrossTopicsAndParts checks that topics have separate queues, and that they and the other origin share the
// limit of the host.
func TestConnectionsAcrossTopicsAndParts(t *testing.T) {
	r := several(t)
	list := dealt(t, 3)[1]
	for topic, u := range list {
		r.find(u, uint8(topic))
	}
	for i, u := range list {
		task := r.mustNext(u)
		if int(task.Topic) != i {
			t.Errorf("%s is requested in topic %d", u, task.Topic)
		}
		r.f.Begun(r.now, task)
		r.now = r.now.Add(500 * time.Millisecond)
		r.check()
	}
	r.add(0, "http://a.example/")
	r.mustIdle()
}

// TestRobotsWhilePages checks that other origins of a site continue while one robots.txt is requested, and that its end does
// not shorten the pace.
func TestRobotsWhilePages(t *testing.T) {
	r := several(t)
	r.add(0, "http://a.example/x")
	robots := r.mustNext("http://a.example/robots.txt")
	r.f.Begun(r.now, robots)
	r.add(0, "https://a.example/x")
	r.now = r.now.Add(500 * time.Millisecond)
	page := r.mustNext("https://a.example/x")
	r.f.Begun(r.now, page)
	began := r.now
	r.now = r.now.Add(10 * time.Millisecond)
	r.f.Done(r.now, robots, answer{status: 404}.reply(robots, began.Add(-500*time.Millisecond), 510*time.Millisecond))
	r.check()
	r.mustIdle()
	if at := r.f.NextAt(); !at.Equal(began.Add(500 * time.Millisecond)) {
		t.Fatalf("the next request is due %v after the last", at.Sub(began))
	}
	r.now = r.f.NextAt()
	r.mustNext("http://a.example/x")
}
