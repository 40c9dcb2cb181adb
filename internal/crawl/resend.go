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

// busyAtOnce bounds how many partitions with a running step one coordinator run checks for missing mail.
const busyAtOnce = 8

// resend sends unapplied mail again, at most every ResendAfter: a queue may lose messages, or give up on those it delivered
// too often. Numbers and content stay the same, so the receiver recognises repeats. A partition with a running step usually
// has its missing mail on the way. So a run checks only a few such partitions, and leaves mail that was committed recently
// to the queue.
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
	if err := k.remember(t); err != nil { // first, so that a crash in the resend is not followed by another at once
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
			man, err := blobschema.ReadManifest(t.Object, h.Commit)
			if err != nil {
				return err
			}
			applied = man.Applied
		}
		if err := k.resendTo(t, p, applied, before); err != nil {
			return fmt.Errorf("resend mail to partition %d: %w", p, err)
		}
	}
	return nil
}

// resendTo resends the mail that a partition has not applied; if before is not zero, only mail that other partitions
// committed before that time.
func (k *Tick) resendTo(t *actor.Task, p partition.ID, applied map[partition.ID]blobschema.Marks, before time.Time) error {
	c := &k.report.Crawl
	links, err := mapping(c)
	if err != nil {
		return err
	}
	queue := naming.MailboxQueue(p)
	// Seeds went by the map of epoch 1, only to the initial partitions.
	for i := range c.SeedBatches {
		if int(p) >= c.Partitions || applied[partition.Intake].Has(uint64(i+1)) {
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
	// Requests are numbered in their own record.
	for _, m := range k.report.Requests.Outbox {
		if m.To != p || applied[partition.Requests].Has(m.Number) {
			continue
		}
		urls, err := blobschema.ReadSeeds(t.Object, m.Object)
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
	// The other mail is in the commits of its senders.
	for i := range k.report.Heads {
		from := &k.report.Heads[i]
		if int(p) >= len(from.Sent) || applied[from.Partition].Count() >= from.Sent[p] {
			continue
		}
		if err := k.resendFrom(t, from, p, applied[from.Partition], before); err != nil {
			return err
		}
	}
	return nil
}

// resendFrom resends the mail of one partition's commits that another has not applied.
func (k *Tick) resendFrom(t *actor.Task, from *blobschema.Head, p partition.ID, marks blobschema.Marks, before time.Time) error {
	man, err := blobschema.ReadManifest(t.Object, from.Commit)
	if err != nil {
		return err
	}
	left := from.Sent[p] - marks.Count()
	// Newest first: missing mail is usually recent, and a crawl may be years old.
	for _, name := range slices.Backward(slices.Collect(blobschema.CommitNames(man))) {
		if left == 0 {
			break
		}
		r, err := blobschema.ReadCommit(t.Object, name)
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
			if m.To != p || marks.Has(m.Number) {
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

// pruneRequests removes the requests that their receivers have applied from the record.
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
