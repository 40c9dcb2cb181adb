package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// rig drives a schedule of one group of two pools. Tests of whole frontiers are in package frontier.
type rig struct {
	t     testing.TB
	s     *Schedule
	hash  partition.Hash
	group *Group
	pools []*Pool
	now   time.Time
	at    map[uint64]spot // pending URLs by fingerprint
	tasks []Task
}

func newRig(t testing.TB, cfg Config) *rig {
	t.Helper()
	h, err := partition.NewHash([16]byte{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Hash = h
	cfg.Token = "bot"
	r := &rig{t: t, s: New(cfg), hash: h, group: &Group{}, now: epoch, at: map[uint64]spot{}}
	for range 2 {
		p := NewPool(r.group)
		r.pools = append(r.pools, &p)
	}
	return r
}

func mustParse(t testing.TB, raw string) weburl.URL {
	t.Helper()
	u, err := weburl.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// add adds a URL to a pool.
func (r *rig) add(p *Pool, raw string, q blobschema.Queued) {
	r.t.Helper()
	u := mustParse(r.t, raw)
	fp := r.hash.Fingerprint(u.String())
	if w, ok := r.at[fp]; ok {
		r.s.Join(r.now, w.pool, w.item, &q, Outside)
		return
	}
	r.at[fp] = spot{p, r.s.Insert(r.now, p, r.s.Key(r.group, q.Key), u, fp, &q, Outside)}
}

// end ends a task with an outcome.
func (r *rig) end(t Task, o *actor.Outcome) {
	r.t.Helper()
	_, next := r.s.Answered(r.now, &t, o)
	r.drop()
	if next != nil {
		r.at[t.Fingerprint()] = spot{t.Pool(), r.s.Insert(r.now, t.Pool(), t.Key(), t.Request.URL, t.Fingerprint(), next, Outside)}
		t.Pool().Visited(r.at[t.Fingerprint()].item, next, r.now)
	}
	r.s.Close(r.now, &t, o)
	r.drop()
}

// drop forgets the URLs that ended.
func (r *rig) drop() {
	for _, e := range r.s.Ended() {
		r.at[e.Fingerprint].pool.Drop(e.Item)
		delete(r.at, e.Fingerprint)
	}
}

// someOutcome returns a random outcome of a request.
func (r *rig) someOutcome(rng *rand.Rand, t Task) *actor.Outcome {
	o := &actor.Outcome{Started: r.now, Response: 100 * time.Millisecond, Closed: rng.IntN(3) == 0}
	o.Page.Time, o.Page.Status = r.now, 200
	switch rng.IntN(12) {
	case 0:
		o.Page.Outcome, o.Temporary = blobschema.OutcomeTimeout, true
	case 1:
		o.Page.Outcome, o.Page.Status, o.Temporary = blobschema.OutcomeServerError, 503, true
	case 2:
		o.Page.Outcome = blobschema.OutcomeAborted
	case 3:
		o.Page.Outcome, o.Page.Status = blobschema.OutcomeClientError, 404
	default:
		o.Page.Outcome = blobschema.OutcomeOK
		if t.Request.Robots && rng.IntN(4) == 0 {
			o.Body = []byte("User-agent: *\nDisallow: /7\nCrawl-delay: 2\n")
		}
	}
	return o
}

// TestSchedules checks after random additions and ends that every URL and key is in the right queue.
func TestSchedules(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, Config{
			Delay: time.Second, Revisits: seed%2 == 0, Retry: polite.Retry{Attempts: 3, Wait: 10 * time.Second, HostFailures: 4},
			Topics: []Topic{{}, {Priority: 1}, {Slice: time.Second}},
			Hosts:  map[string]HostRule{"a.example": {Connections: 3, Delay: time.Second}}, Queues: 4, QueueBy: blobschema.QueueByBKDR,
		})
		for range 600 {
			switch n := rng.IntN(20); {
			case n < 6:
				host := fmt.Sprintf("%c.example", 'a'+rng.IntN(4))
				q := blobschema.Queued{Key: host, Rank: uint32(rng.IntN(5)), Topic: uint8(rng.IntN(3)), Depth: 3, Generation: uint32(rng.IntN(2))}
				if rng.IntN(4) == 0 {
					q.NotBefore = r.now.Add(time.Duration(rng.IntN(60)) * time.Second).UnixMilli()
				}
				q.Rank = r.s.Rank(q.Generation, q.Rank)
				r.add(r.pools[rng.IntN(2)], fmt.Sprintf("https://%s%s/%d", []string{"", "www."}[rng.IntN(2)], host, rng.IntN(90)), q)
			case n < 12:
				if task, ok := r.s.Next(r.now, false); ok {
					r.drop()
					r.tasks = append(r.tasks, task)
					if rng.IntN(2) == 0 {
						r.s.Begun(r.now, task)
					}
				}
				r.drop()
			case n < 17:
				if len(r.tasks) > 0 {
					i := rng.IntN(len(r.tasks))
					task := r.tasks[i]
					r.tasks = slices.Delete(r.tasks, i, i+1)
					r.end(task, r.someOutcome(rng, task))
				}
			case n < 18:
				run := &blobschema.Run{}
				r.s.Delta(run)
			case n == 18 && rng.IntN(5) == 0:
				if p := r.pools[rng.IntN(2)]; p.InFlight() == 0 {
					for fp, w := range r.at {
						if w.pool == p {
							delete(r.at, fp)
						}
					}
					urgent := p.Urgent()
					r.s.Empty(p, false)
					r.s.CountUrgent(p, -urgent)
				}
			default:
				r.now = r.now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			}
			r.check()
		}
	}
}
