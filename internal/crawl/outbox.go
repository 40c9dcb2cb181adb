package crawl

import (
	"cmp"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

const (
	// mailRaw bounds the bytes of URLs in one mail, so that a message fits into one billing unit of 64 KB even if it does
	// not compress.
	mailRaw = 45 << 10
	// flushURLs is the number of buffered links for one partition that justify a mail by themselves.
	flushURLs = 3000
)

// buffers holds the links for other partitions that are in no mail yet, by owner.
type buffers map[partition.ID]*buffer

type buffer struct {
	links  []blobschema.Queued
	stored int    // number of links that are in commits already
	since  uint64 // first commit that holds some of them, if stored > 0
}

func (b buffers) of(p partition.ID) *buffer {
	if b[p] == nil {
		b[p] = &buffer{}
	}
	return b[p]
}

// links returns the number of buffered links.
func (b buffers) links() (n int64) {
	for _, o := range b {
		n += int64(len(o.links))
	}
	return n
}

// take removes the links for the partitions that flush selects, as mail of commit c. The other links stay buffered; those
// that no commit holds yet go into c.
func (b buffers) take(c *blobschema.Commit, flush func(partition.ID, int) bool) map[partition.ID][]blobschema.Queued {
	mail := map[partition.ID][]blobschema.Queued{}
	c.Buffered = map[partition.ID][]blobschema.Queued{}
	for p, o := range b {
		switch {
		case len(o.links) == 0:
			continue
		case flush(p, len(o.links)):
			mail[p] = o.links
			*o = buffer{}
			continue
		case o.stored < len(o.links):
			c.Buffered[p] = slices.Clone(o.links[o.stored:])
			if o.stored == 0 {
				o.since = c.Manifest.Seq
			}
			o.stored = len(o.links)
		}
		c.Manifest.BufferedFrom[p] = o.since
	}
	c.Manifest.Totals.Buffered = b.links()
	return mail
}

// restore adds the links that a commit holds and no mail has. since names the first such commit of each receiver.
func (b buffers) restore(seq uint64, held map[partition.ID][]blobschema.Queued, since map[partition.ID]uint64) {
	for p, links := range held {
		if from, ok := since[p]; !ok || seq < from {
			continue
		}
		o := b.of(p)
		if len(o.links) == 0 {
			o.since = seq
		}
		o.links = append(o.links, links...)
		o.stored = len(o.links)
	}
}

// outbox sends the mail of commits, and records what the step knows of the receivers.
type outbox struct {
	lease      *lease
	unsent     []uint64                   // commits whose mail is not sent yet
	publishing int                        // sends and acknowledgements under way
	mailedAt   time.Time                  // time of the last commit with mail
	demands    []Demand                   // demand of the partitions, by ID; shared with other steps
	mailed     map[partition.ID]int       // links mailed to each partition since the step last considered waking it
	awake      map[partition.ID]time.Time // time until which a partition has a step or a wake under way
}

func newOutbox(l *lease) outbox {
	return outbox{lease: l, mailed: map[partition.ID]int{}, awake: map[partition.ID]time.Time{}}
}

// demand returns the demand of another partition, as told last.
func (o *outbox) demand(p partition.ID) Demand {
	if int(p) < len(o.demands) {
		return o.demands[p]
	}
	return NoDemand
}

// flushes reports whether the links for a partition should go into mail with this commit.
func (o *outbox) flushes(p partition.ID, links int, now time.Time) bool {
	return o.demand(p) != NoDemand || links >= flushURLs || now.Sub(o.mailedAt) >= o.lease.cfg.young(o.lease.cfg.MailEvery, now)
}

// publish sends the mail of a commit and wakes the partitions that got many links. If it fails, the manifest still names
// the outbox, and the next step sends the same numbers with the same content.
func (o *outbox) publish(seq uint64, mail []blobschema.OutMail, wakes func(*actor.Task)) {
	if len(mail) == 0 {
		o.sent(seq)
		return
	}
	o.publishing++
	o.lease.Spawn(func(t *actor.Task) error {
		defer func() { o.publishing-- }()
		for len(mail) > 0 {
			to := mail[0].To
			n := 1
			for n < len(mail) && n < 10 && mail[n].To == to {
				n++
			}
			var bodies [][]byte
			for _, m := range mail[:n] {
				bodies = append(bodies, m.Body)
			}
			for try := 0; ; try++ {
				_, err := t.Do(actor.Send{Queue: naming.MailboxQueue(to), Bodies: bodies})
				if err == nil {
					break
				}
				if try == 4 || o.lease.hurry {
					return nil
				}
				t.Sleep(time.Second << try)
			}
			mail = mail[n:]
		}
		o.sent(seq)
		wakes(t)
		return nil
	})
}

// sent records that the mail of a commit is sent.
func (o *outbox) sent(seq uint64) {
	o.unsent = slices.DeleteFunc(o.unsent, func(u uint64) bool { return u == seq })
}

// published returns the last commit up to which all mail is sent; seq is the last commit.
func (o *outbox) published(seq uint64) uint64 {
	if len(o.unsent) > 0 {
		return slices.Min(o.unsent) - 1
	}
	return seq
}

// acknowledge deletes mail whose effect is committed. If an acknowledgement is lost, the mail comes again.
func (o *outbox) acknowledge(receipts []actor.Receipt) {
	if len(receipts) == 0 {
		return
	}
	o.publishing++
	o.lease.Issue(actor.Acknowledge{Queue: naming.MailboxQueue(o.lease.cfg.Partition), Receipts: receipts}, func(actor.Reply) { o.publishing-- })
}

// wakeMailed wakes the partitions that were mailed many links and have no step. For the others the coordinator is soon
// enough.
func (o *outbox) wakeMailed(t *actor.Task, partitions int) {
	now := o.lease.Now().Wall
	var ps []partition.ID
	for p := range partition.ID(partitions) {
		if o.mailed[p] >= wakeURLs && !now.Before(o.awake[p]) {
			ps = append(ps, p)
			o.mailed[p] = 0
		}
	}
	heads, err := readHeads(t, o.lease.cfg.Crawl.ID, ps...)
	if err != nil {
		return // the next step of a partition reports its damage
	}
	var asleep []partition.ID
	for i, p := range ps {
		h := cmp.Or(heads[i], &blobschema.Head{})
		switch {
		case h.Owner != "" && now.Before(h.LeaseUntil):
			o.awake[p] = h.LeaseUntil
		case h.WakeAt.After(now) && h.WakeAt.Before(now.Add(wakeSlip)):
		default:
			o.awake[p] = now.Add(wakeWait)
			asleep = append(asleep, p)
		}
	}
	o.wake(t, 0, asleep...)
}

// wake wakes partitions after a delay. If it fails, the coordinator wakes them.
func (o *outbox) wake(t *actor.Task, delay time.Duration, ps ...partition.ID) {
	_ = sendWakes(t, o.lease.cfg.Crawl.ID, delay, ps)
}
