package crawl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// seedsPerBatch is the largest number of seeds in a batch. Long URLs make smaller batches, so that each batch fits into one
// message.
const seedsPerBatch = 500

// Seed is a URL given to a crawl.
type Seed struct {
	URL   weburl.URL
	Topic uint8 // number of its topic in the settings; 0: none
	Retry bool  // it was given before, could not be fetched, and is to be retried
}

// Seeds returns seeds without a topic.
func Seeds(urls []weburl.URL) []Seed {
	seeds := make([]Seed, len(urls))
	for i, u := range urls {
		seeds[i].URL = u
	}
	return seeds
}

// Begin creates a crawl, or opens the existing one, and adds seeds to it. It is an [actor.Actor].
type Begin struct {
	actor.Procedure
	want    blobschema.Crawl // for a new crawl: everything that is frozen
	seeds   []Seed
	check   func(*blobschema.Crawl) error
	crawl   blobschema.Crawl
	created bool
	added   int
}

// NewBegin returns the actor. It calls check with the record of an existing crawl, perhaps several times. An error of check
// ends the actor. Changes by check are written, and steps hear of new seeds, topics and limits. check may also change the
// topics in the slice of seeds: their numbers are those of the record as check leaves it. A seed that the crawl already has
// keeps its topic. An actor with no seeds and an empty want.ID only opens the crawl.
func NewBegin(want blobschema.Crawl, seeds []Seed, check func(*blobschema.Crawl) error) *Begin {
	b := &Begin{want: want, seeds: seeds, check: check}
	b.Body = b.run
	return b
}

// NewAnother returns an actor that creates another crawl after the current one has ended: finished, at its limit or stopped
// by an order, and without a running step. Its errors are [ErrUnfinished], [ErrAtWork] and, if another crawl was created at
// the same time, [actor.ErrConflict]. exclusive means the same as in StepConfig: earlier leases are void. The stored data
// of the last crawl stays, and can be read by its id. The errors also include [blobschema.ErrUnknownCrawl] for the
// setting HostsFrom.
func NewAnother(want blobschema.Crawl, seeds []Seed, exclusive bool) *Begin {
	b := &Begin{want: want, seeds: seeds}
	b.Body = func(t *actor.Task) error { return b.another(t, exclusive) }
	return b
}

// Reasons why a crawl cannot be created.
var (
	// ErrUnfinished and ErrAtWork mean that another crawl cannot be created yet.
	ErrUnfinished = errors.New("the last crawl is neither finished nor stopped")
	ErrAtWork     = errors.New("steps of the last crawl are still running")
	// errNoRanks means that a new crawl needs the ranks of hosts and has none.
	errNoRanks = errors.New("the quality host-rank needs the ranks of hosts: give them with --host-ranks FILE, or compute them with --index")
	// ErrNoCrawl means that there is no crawl to resume, and no seeds to create one.
	ErrNoCrawl = errors.New("there is no crawl yet; give it a URL to begin with")
)

// Crawl returns the record, whether the crawl is new, and the number of seeds added.
func (b *Begin) Crawl() (c blobschema.Crawl, created bool, added int) {
	return b.crawl, b.created, b.added
}

// active is the record that names the current crawl of the deployment.
type active struct {
	Crawl string `json:"crawl"`
}

func (b *Begin) run(t *actor.Task) error {
	id, revision, err := readActive(t)
	switch {
	case err != nil:
		return err
	case revision == nil:
		return b.create(t, "", nil)
	}
	return b.open(t, id)
}

// readActive reads the id of the active crawl. The revision is nil if there is no record.
func readActive(t *actor.Task) (id string, revision actor.Revision, err error) {
	rec, err := t.Record(naming.ActiveKey)
	if err != nil {
		return "", nil, err
	}
	act, err := actor.DecodeFound[active](rec, "the active crawl")
	return act.Crawl, rec.Revision, err
}

func (b *Begin) another(t *actor.Task, exclusive bool) error {
	id, revision, err := readActive(t)
	if err != nil {
		return err
	}
	if revision != nil {
		if err := b.over(t, id, exclusive); err != nil {
			return err
		}
	}
	return b.create(t, id, revision)
}

// over checks that a crawl has ended, by the same rules as a coordinator run.
func (b *Begin) over(t *actor.Task, id string, exclusive bool) error {
	if _, err := readCrawl(t, id); err != nil {
		return err
	}
	k := NewTick(TickConfig{Crawl: id, Exclusive: exclusive}, &TickMemory{})
	k.Advance(b.Now())
	if err := k.readAll(t); err != nil {
		return err
	}
	_ = k.finished(t) // it only evaluates what was read
	switch r := &k.report; {
	case !r.Quiet && !r.Limited && !r.Desired.Stop: // one run that finds it quiet is enough: no step is running
		return fmt.Errorf("crawl %s: %w", id, ErrUnfinished)
	case r.Leased > 0:
		return fmt.Errorf("crawl %s: %w: %d", id, ErrAtWork, r.Leased)
	}
	return nil
}

// create creates a crawl and makes it the active one, in place of the last one. It replaces the record of active crawls at
// that revision; nil: there is none.
func (b *Begin) create(t *actor.Task, last string, revision actor.Revision) error {
	if len(b.seeds) == 0 {
		return ErrNoCrawl
	}
	c := b.want
	if c.Settings.Quality == schedule.HostRank && c.Settings.HostRanks == "" && !c.Settings.Index {
		return errNoRanks
	}
	c.Version = wire.Version
	if _, err := partition.NewMap(c.Slots, c.Partitions); err != nil {
		return err
	}
	if err := putSeeds(t, &c, b.seeds); err != nil {
		return err
	}
	if err := putKnownHosts(t, &c, last); err != nil {
		return err
	}
	if c.Settings.MaxPages > 0 {
		g := blobschema.Grants{Limit: c.Settings.MaxPages}
		if err := t.Write(naming.GrantsKey(c.ID), g, nil); err != nil {
			return err
		}
	}
	// The crawl exists after the second of these writes. A crash before the third leaves a crawl that is not active: no
	// step works on it, and the next attempt creates another.
	if err := t.Write(naming.CrawlKey(c.ID), c, nil); err != nil {
		return err
	}
	if err := t.Write(naming.ActiveKey, active{Crawl: c.ID}, revision); err != nil {
		return err
	}
	b.crawl, b.created, b.added = c, true, len(b.seeds)
	return nil
}

// putSeeds stores seeds in batches and adds their names to the record.
func putSeeds(t *actor.Task, c *blobschema.Crawl, seeds []Seed) error {
	for some := range slices.Chunk(seeds, seedsPerBatch) {
		var urls []blobschema.Queued
		for _, s := range some {
			if int(s.Topic) > len(c.Settings.Topics) {
				return fmt.Errorf("seed %s has topic %d, but there are only %d topics", s.URL, s.Topic, len(c.Settings.Topics))
			}
			q := blobschema.Queued{URL: s.URL.String(), Flags: blobschema.FlagSeed, Topic: s.Topic}
			if s.Retry {
				q.Flags |= blobschema.FlagAgain
			}
			urls = append(urls, q)
		}
		for _, part := range blobschema.SplitMail(urls, mailRaw) {
			data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: uint64(len(c.SeedBatches) + 1), URLs: part})
			if err != nil {
				return err
			}
			name := naming.Seeds(c.ID, data)
			if err := t.Put(name, data); err != nil {
				return err
			}
			c.SeedBatches = append(c.SeedBatches, name)
		}
	}
	return nil
}

// open opens an existing crawl and adds the seeds that are new.
func (b *Begin) open(t *actor.Task, id string) error {
	news := false
	err := actor.Revise(t, naming.CrawlKey(id), func(c *blobschema.Crawl) (bool, error) {
		if err := checkRecord(id, c); err != nil {
			return false, err
		}
		old, obeyed := string(actor.Encode(c)), atOnce(&c.Settings)
		if b.check != nil {
			if err := b.check(c); err != nil {
				return false, err
			}
		}
		fresh, err := b.newSeeds(t, c)
		if err != nil {
			return false, err
		}
		if err := putSeeds(t, c, fresh); err != nil {
			return false, err
		}
		b.crawl, b.added = *c, max(b.added, len(fresh)) // after a lost race with the same seeds, none is new any more
		news = news || b.added > 0 || atOnce(&c.Settings) != obeyed
		return string(actor.Encode(c)) != old, nil
	})
	if err != nil || b.check == nil && len(b.seeds) == 0 { // nothing could have changed
		return err
	}
	return b.announce(t, &b.crawl, news)
}

// atOnce returns the settings whose change raises the version of the desired state: topics, which running steps read with
// their next commit, and settings that the next step of each partition reads.
func atOnce(s *blobschema.Settings) string {
	return string(actor.Encode(blobschema.Settings{
		Topics: s.Topics, Hosts: s.Hosts, QueueBy: s.QueueBy, Queues: s.Queues, RecrawlPerHour: s.RecrawlPerHour,
	}))
}

// readCrawl reads the record of a crawl and checks its version.
func readCrawl(t *actor.Task, id string) (c blobschema.Crawl, err error) {
	rec, err := t.Record(naming.CrawlKey(id))
	if err != nil {
		return c, err
	}
	if c, err = actor.DecodeFound[blobschema.Crawl](rec, "crawl"); err != nil {
		return c, err
	}
	return c, checkRecord(id, &c)
}

// checkRecord refuses a crawl that has no record, or one of another version.
func checkRecord(id string, c *blobschema.Crawl) error {
	switch {
	case c.ID == "":
		return fmt.Errorf("crawl %s is named as active but has no record", id)
	case c.Version != wire.Version:
		return fmt.Errorf("crawl %s: %w: version %d created it, and this is version %d", id, wire.ErrVersion, c.Version, wire.Version)
	}
	return nil
}

// announce passes a change on to steps and coordinator runs: the page limit and, if there is news, that seeds or settings have
// changed. It checks the limit even if the record did not change, because a process that changed the record may have died
// before it told.
func (b *Begin) announce(t *actor.Task, c *blobschema.Crawl, news bool) error {
	if err := announceLimit(t, c); err != nil || !news {
		return err
	}
	return raiseDesired(t, c.ID)
}

// raiseDesired makes steps read the crawl record again with their next commit. If a crash prevents that, the next step reads
// it when it begins.
func raiseDesired(t *actor.Task, crawl string) error {
	return actor.Update(t, naming.DesiredKey(crawl), func(w *blobschema.DesiredState) bool {
		w.Version++
		return true
	})
}

func announceLimit(t *actor.Task, c *blobschema.Crawl) error {
	return actor.Revise(t, naming.GrantsKey(c.ID), func(g *blobschema.Grants) (bool, error) {
		if g.Limit == c.Settings.MaxPages {
			return false, nil
		}
		heads, err := allHeads(t, c)
		if err != nil {
			return false, err
		}
		g.Limit = c.Settings.MaxPages
		if g.Granted == nil {
			g.Granted = map[partition.ID]int64{}
		}
		for i, h := range heads { // stored pages count, whether or not they were limited
			if p := partition.ID(i); h != nil {
				g.Granted[p] = max(g.Granted[p], h.Totals.Pages)
			}
		}
		return true, nil
	})
}

// newSeeds returns the wanted seeds that no batch holds, and those to be retried.
func (b *Begin) newSeeds(t *actor.Task, c *blobschema.Crawl) ([]Seed, error) {
	if len(b.seeds) == 0 {
		return nil, nil
	}
	have := map[string]bool{}
	for _, name := range c.SeedBatches {
		urls, err := blobschema.ReadSeeds(t.Object, name)
		if err != nil {
			return nil, err
		}
		for _, q := range urls {
			have[q.URL] = true
		}
	}
	var fresh []Seed
	for _, s := range b.seeds {
		if u := s.URL.String(); s.Retry || !have[u] {
			have[u] = true
			fresh = append(fresh, s)
		}
	}
	return fresh, nil
}

// CrawlID returns the id of a crawl created at a time. Ids sort by time and are readable in names.
func CrawlID(t time.Time) string { return t.UTC().Format("20060102-150405") }
