package crawl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/partition"
)

// HostPack is a record of the hosts table: the estimates of some hosts of one
// partition. A host may stand in two packs; the one of the higher Commit is newer.
type HostPack struct {
	Partition partition.ID          `json:"partition"`
	Hosts     map[string]HostRecord `json:"hosts"`
}

// HostRecord is what the table says of a host.
type HostRecord struct {
	Commit        uint64        `json:"commit"` // of its partition, that observed it
	Connect       time.Duration `json:"connect_ns,omitempty"`
	Response      time.Duration `json:"response_ns,omitempty"`
	PerConnection float64       `json:"per_connection,omitempty"`
	Requests      uint64        `json:"requests,omitempty"`
	Failures      uint64        `json:"failures,omitempty"`
	Score         float64       `json:"score,omitempty"`
	Known         uint64        `json:"known,omitempty"`
	Pending       uint64        `json:"pending,omitempty"`
	Capped        uint64        `json:"capped,omitempty"`
}

// hostsPerPack keeps a record far below the 400 KB a table item may have.
const hostsPerPack = 1000

// HostPacks is the number of packs for a partition with that many hosts.
func HostPacks(hosts int64) int {
	n := 1
	for int64(n)*hostsPerPack < hosts {
		n *= 2
	}
	return n
}

// copyFor is how long one tick copies host estimates: each commit is a read, and a
// function has a minute.
const copyFor = 20 * time.Second

// copyHosts copies the owners' host estimates into the hosts table, by commit number:
// doing it twice changes nothing. all says that the table has those of all commits: else
// a later tick goes on.
func (k *Tick) copyHosts(t *actor.Task) (all bool, err error) {
	var behind []*blobschema.Head
	for i := range k.report.Heads {
		if h := &k.report.Heads[i]; h.Seq > k.record.Copied[h.Partition] {
			behind = append(behind, h)
		}
	}
	if len(behind) == 0 {
		return true, nil
	}
	if !k.over() && !k.passed(k.record.CopiedAt, k.cfg.HostsEvery) {
		return false, nil
	}
	until := k.Now().Mono + copyFor
	copied, dropped := map[partition.ID]uint64{}, []string{}
	all = true
	for _, h := range behind {
		upTo, unnamed, err := k.copyPartition(t, h, until)
		dropped = append(dropped, unnamed...)
		if err != nil {
			return false, fmt.Errorf("copy host estimates of partition %d: %w", h.Partition, err)
		}
		copied[h.Partition] = upTo
		if all = all && upTo == h.Seq; !all {
			break
		}
	}
	now := k.Now().Wall.UTC()
	k.learn(func(r *blobschema.TickRecord) {
		if all {
			r.CopiedAt = now
		}
		if r.Copied == nil {
			r.Copied = map[partition.ID]uint64{}
		}
		for p, seq := range copied {
			r.Copied[p] = max(r.Copied[p], seq)
		}
		candidates(r, dropped)
	})
	return all, nil
}

// passed reports whether d has passed since a time, or since the crawl began. A clock
// set back passes too.
func (k *Tick) passed(since time.Time, d time.Duration) bool {
	if c := k.report.Crawl.Created; since.Before(c) {
		since = c
	}
	past := k.Now().Wall.Sub(since)
	return past < 0 || past >= d
}

// learn keeps a change of the record for its end.
func (k *Tick) learn(change func(*blobschema.TickRecord)) { k.learnt = append(k.learnt, change) }

// remember changes the record that the next tick begins with, in whatever process, if
// there is anything new.
func (k *Tick) remember(t *actor.Task) error {
	if len(k.learnt) == 0 {
		return nil
	}
	spent := blobschema.Calls{}
	if k.cfg.Spent != nil {
		spent = k.cfg.Spent().Minus(k.told)
	}
	err := actor.Update(t, naming.TickKey(k.report.Crawl.ID), func(r *blobschema.TickRecord) bool {
		for _, change := range k.learnt {
			change(r)
		}
		r.Calls.Add(spent)
		return true
	})
	k.learnt = nil
	k.told.Add(spent)
	return err
}

// copyPartition copies the estimates of a partition's commits, oldest first, until a time
// on the monotonic clock, one commit at least. upTo is the last of them, dropped the runs
// that they name no more.
func (k *Tick) copyPartition(t *actor.Task, h *blobschema.Head, until time.Duration) (upTo uint64, dropped []string, err error) {
	man, err := stored.Manifest(t.Object, h.Commit)
	if err != nil {
		return 0, nil, err
	}
	packs := HostPacks(h.Totals.Hosts)
	fresh := make([]map[string]HostRecord, packs)
	for seq, name := range blobschema.CommitsAfter(man, k.record.Copied[h.Partition]) {
		if upTo > 0 && k.Now().Mono >= until {
			break
		}
		upTo = seq
		c, err := stored.Commit(t.Object, name)
		if err != nil {
			return 0, nil, err
		}
		m, err := c.Manifest()
		if err != nil {
			return 0, nil, err
		}
		dropped = append(dropped, m.Dropped...)
		hosts, err := c.Hosts()
		if err != nil {
			return 0, nil, err
		}
		for _, o := range hosts {
			n := int(o.Slot) / k.report.Crawl.Partitions % packs
			if fresh[n] == nil {
				fresh[n] = map[string]HostRecord{}
			}
			fresh[n][o.Host] = HostRecord{
				Commit: seq, Connect: o.Conn, Response: o.Resp, PerConnection: o.PerConnection, Requests: o.Requests,
				Failures: o.Failures, Score: o.Score, Known: o.Known, Pending: o.Pending, Capped: o.Capped,
			}
		}
	}
	for n, hosts := range fresh {
		if len(hosts) == 0 {
			continue
		}
		err := actor.Update(t, naming.HostsKey(k.report.Crawl.ID, h.Partition, n), func(p *HostPack) bool {
			changed := false
			p.Partition = h.Partition
			if p.Hosts == nil {
				p.Hosts = map[string]HostRecord{}
			}
			for host, rec := range hosts {
				if rec.Commit > p.Hosts[host].Commit {
					p.Hosts[host], changed = rec, true
				}
			}
			return changed
		})
		if err != nil {
			return 0, nil, err
		}
	}
	return upTo, dropped, nil
}

// manifestsAtOnce is how many commits a tick reads at once: they are read whole.
const manifestsAtOnce = 8

// eachManifest calls do with the manifest of each head that wanted picks, in their order.
// There may be thousands, and a function has a minute, so some are read at once.
func (k *Tick) eachManifest(t *actor.Task, wanted func(*blobschema.Head) bool, do func(*blobschema.Manifest)) error {
	var names []string
	for i := range k.report.Heads {
		if h := &k.report.Heads[i]; h.Commit != "" && wanted(h) {
			names = append(names, h.Commit)
		}
	}
	for some := range slices.Chunk(names, manifestsAtOnce) {
		mans, errs, left := make([]*blobschema.Manifest, len(some)), make([]error, len(some)), len(some)
		for i, name := range some {
			k.Spawn(func(t *actor.Task) error {
				mans[i], errs[i] = stored.Manifest(t.Object, name)
				left--
				return nil
			})
		}
		t.Await(func() bool { return left == 0 })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		for _, man := range mans {
			do(man)
		}
	}
	return nil
}

// busyAtOnce is of how many partitions with a step at work it is found out at once which mail they lack.
const busyAtOnce = 8

// resend sends mail again that is not applied, now and then: a queue
// may lose messages, or give up on those it delivered too often. Numbers and
// content are the same, so the receiver can tell. A partition with a step at work is
// taking its mail, as a rule: what it lacks is on its way. So that is looked for in few of them at a time, and
// what was committed just now is left to the queue.
func (k *Tick) resend(t *actor.Task) error {
	var short, busy []partition.ID
	for p := range partition.ID(k.report.Partitions()) {
		switch h := k.heads[p]; {
		case k.expected(p) <= k.applied(p):
		case h != nil && k.leased(h):
			busy = append(busy, p)
		default:
			short = append(short, p)
		}
	}
	if len(short)+len(busy) == 0 || !k.passed(k.record.ResentAt, k.cfg.ResendAfter) {
		return nil
	}
	now := k.Now().Wall.UTC()
	k.learn(func(r *blobschema.TickRecord) { r.ResentAt = now })
	if err := k.remember(t); err != nil { // before, so that a tick that dies over it is not followed by another at once
		return err
	}
	if turns := (len(busy) + busyAtOnce - 1) / busyAtOnce; turns > 1 {
		turn := int(now.UnixNano()/int64(k.cfg.ResendAfter)) % turns
		busy = busy[turn*busyAtOnce : min(len(busy), (turn+1)*busyAtOnce)]
	}
	for i, p := range append(short, busy...) {
		var before time.Time
		if i >= len(short) {
			before = now.Add(-k.cfg.ResendAfter)
		}
		applied := map[partition.ID]blobschema.Marks{}
		if h := k.heads[p]; h != nil && h.Commit != "" {
			man, err := stored.Manifest(t.Object, h.Commit)
			if err != nil {
				return err
			}
			applied = man.Applied
		}
		if err := k.resendTo(t, p, applied, before); err != nil {
			return fmt.Errorf("send mail to partition %d again: %w", p, err)
		}
	}
	return nil
}

func missing(m blobschema.Marks, n uint64) bool {
	if n <= m.Low {
		return false
	}
	for _, a := range m.Above {
		if a == n {
			return false
		}
	}
	return true
}

// resendTo sends what a partition has not applied; of partitions what they committed before a time, if that is not zero.
func (k *Tick) resendTo(t *actor.Task, p partition.ID, applied map[partition.ID]blobschema.Marks, before time.Time) error {
	c := &k.report.Crawl
	links, err := mapping(c)
	if err != nil {
		return err
	}
	queue := naming.MailboxQueue(p)
	for i := range c.SeedBatches {
		if int(p) >= c.Partitions || !missing(applied[partition.Intake], uint64(i+1)) {
			continue
		}
		mails, err := seedMail(t, c, k.first, links, i, k.cfg.Policy)
		if err != nil {
			return err
		}
		if _, err := t.Do(actor.Send{Queue: queue, Bodies: [][]byte{mails[p]}}); err != nil {
			return err
		}
	}
	for _, m := range k.report.Requests.Outbox {
		if m.To != p || !missing(applied[partition.Requests], m.Number) {
			continue
		}
		urls, err := stored.URLs(t.Object, m.Object)
		if err != nil {
			return err
		}
		body, err := blobschema.EncodeMail(requestMail(c.ID, m, urls))
		if err != nil {
			return err
		}
		if _, err := t.Do(actor.Send{Queue: queue, Bodies: [][]byte{body}}); err != nil {
			return err
		}
	}
	for i := range k.report.Heads {
		from := &k.report.Heads[i]
		if int(p) >= len(from.Sent) || !anyMissing(applied[from.Partition], from.Sent[p]) {
			continue
		}
		if err := k.resendFrom(t, from, p, applied[from.Partition], before); err != nil {
			return err
		}
	}
	return nil
}

// resendFrom sends what a partition's commits have for another and it has not applied.
func (k *Tick) resendFrom(t *actor.Task, from *blobschema.Head, p partition.ID, marks blobschema.Marks, before time.Time) error {
	man, err := stored.Manifest(t.Object, from.Commit)
	if err != nil {
		return err
	}
	left := 0
	for n := marks.Low + 1; n <= from.Sent[p]; n++ {
		if missing(marks, n) {
			left++
		}
	}
	// Newest first: what is missing is young as a rule, and a crawl may be years old.
	for _, name := range slices.Backward(slices.Collect(blobschema.CommitNames(man))) {
		if left == 0 {
			break
		}
		r, err := stored.Commit(t.Object, name)
		if err != nil {
			return err
		}
		outbox, err := r.Outbox()
		if err != nil {
			return err
		}
		young := false
		if !before.IsZero() {
			of, err := r.Manifest()
			if err != nil {
				return err
			}
			young = of.Time.After(before)
		}
		for _, m := range outbox {
			if m.To != p || !missing(marks, m.Number) {
				continue
			}
			if left--; young {
				continue
			}
			if _, err := t.Do(actor.Send{Queue: naming.MailboxQueue(p), Bodies: [][]byte{m.Body}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// pruneRequests forgets the requests that their receivers have applied.
func (k *Tick) pruneRequests(t *actor.Task) error {
	applied := func(m blobschema.RequestMail) bool {
		h := k.heads[m.To]
		return h != nil && m.Number <= h.Requests
	}
	if !slices.ContainsFunc(k.report.Requests.Outbox, applied) {
		return nil
	}
	return actor.Update(t, naming.RequestsKey(k.report.Crawl.ID), func(r *blobschema.Requests) bool {
		n := len(r.Outbox)
		r.Outbox = slices.DeleteFunc(r.Outbox, applied)
		return len(r.Outbox) < n
	})
}

func anyMissing(m blobschema.Marks, sent uint64) bool {
	return m.Low+uint64(len(m.Above)) < sent
}
