package crawl

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// batchesAtOnce is the number of seed batches that are sent before the record says so: as many as fit into one request to a
// queue, and few enough for the time of a function.
const batchesAtOnce = 10

// publishSeeds sends each batch of seeds to every partition as mail: batch i is number i+1 from Intake, so sending it again
// is harmless. A crash before the record is updated makes the next run send the same numbers.
func (k *Tick) publishSeeds(t *actor.Task) error {
	c := &k.report.Crawl
	if c.Published >= len(c.SeedBatches) {
		return nil
	}
	links, err := mapping(c)
	if err != nil {
		return err
	}
	for c.Published < len(c.SeedBatches) {
		upTo := min(len(c.SeedBatches), c.Published+batchesAtOnce)
		mails := make([][][]byte, c.Partitions)
		for i := c.Published; i < upTo; i++ {
			batch, err := seedMail(t, c, k.first, links, i, k.cfg.Policy)
			if err != nil {
				return err
			}
			for p, body := range batch {
				mails[p] = append(mails[p], body)
			}
		}
		sends := make([]actor.Effect, len(mails))
		for p, bodies := range mails {
			sends[p] = actor.Send{Queue: naming.MailboxQueue(partition.ID(p)), Bodies: bodies}
		}
		err := t.All(len(sends), sends, func(_ int, _ any, err error) error { return err })
		if err != nil {
			return fmt.Errorf("send seeds: %w", err)
		}
		err = actor.Update(t, naming.CrawlKey(c.ID), func(rec *blobschema.Crawl) bool {
			if rec.Published >= upTo {
				return false
			}
			rec.Published = upTo
			return true
		})
		if err != nil {
			return err
		}
		c.Published = upTo
	}
	return nil
}

// seedMail returns the mail of one batch by partition. It always uses the map of epoch 1, so every call returns the same
// content.
func seedMail(t *actor.Task, c *blobschema.Crawl, pmap *partition.Map, links frontier.Mapping, i int, policy schedule.Policy) ([][]byte, error) {
	urls, err := blobschema.ReadSeeds(t.Object, c.SeedBatches[i])
	if err != nil {
		return nil, err
	}
	if policy, err = policyOf(c, policy); err != nil {
		return nil, err
	}
	shares := make([][]blobschema.Queued, c.Partitions)
	for i := range urls {
		l, ok := links.Stored(&urls[i])
		if !ok {
			continue
		}
		l.Flags |= blobschema.FlagSeed
		l.Rank = seedRank(policy, l)
		p := pmap.Owner(l.Slot)
		shares[p] = append(shares[p], l.Queued())
	}
	mails := make([][]byte, c.Partitions)
	for p, urls := range shares {
		m := blobschema.Mail{Crawl: c.ID, From: partition.Intake, To: partition.ID(p), Number: uint64(i + 1), Epoch: pmap.Epoch(), URLs: urls}
		if mails[p], err = blobschema.EncodeMail(m); err != nil {
			return nil, err
		}
	}
	return mails, nil
}
