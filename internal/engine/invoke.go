package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// An engine that does not [Engine.Run] does single pieces of work, each on the call of
// somebody: that is what functions do, and commands beside them. Begin comes first.
// Nothing that these methods start outlives the call. They must not be called at the
// same time.

// Open makes the engine work for the active crawl, and returns its record as it is now.
// crawl.ErrNoCrawl if there is none.
func (e *Engine) Open() (blobschema.Crawl, error) {
	c, err := e.active()
	if err == nil {
		e.crawl = c
	}
	return c, err
}

// active reads the record of the active crawl.
func (e *Engine) active() (blobschema.Crawl, error) {
	b := crawl.NewBegin(blobschema.Crawl{}, nil, nil)
	if err := e.newRunner(b).run(); err != nil {
		return blobschema.Crawl{}, err
	}
	c, _, _ := b.Crawl()
	return c, nil
}

// Use makes the engine work for a crawl whose record was read just now.
func (e *Engine) Use(c blobschema.Crawl) { e.crawl = c }

// Crawl is the record of the crawl that the engine works for, as it was read last.
func (e *Engine) Crawl() blobschema.Crawl { return e.crawl }

// StepReport is what a step did.
type StepReport struct {
	Worked bool  // false: another step held the lease, or took it
	Pages  int64 // stored
	Totals blobschema.Totals
}

// Step runs one step of a partition, from lease to release, of at most that length; 0
// is without bound. It is no error if another step holds the lease, or has taken it from
// this one. What the step knew at its end is kept for the next one of the same partition.
func (e *Engine) Step(p partition.ID, atMost time.Duration) (did StepReport, err error) {
	if !e.mayHave(p) {
		return did, fmt.Errorf("there can be no partition %d", p)
	}
	spent, done := e.meter()
	defer done()
	cfg := e.cfg.Step
	cfg.Crawl, cfg.Partition, cfg.Process, cfg.Exclusive = e.crawl, p, e.process, e.platform.Exclusive
	cfg.Connections, cfg.MaxResident = e.cfg.Connections, e.cfg.MaxResident
	cfg.Deadline, cfg.Spent = atMost, spent
	warm := e.warm[p]
	clear(e.warm) // another partition's would be memory for nothing, most likely
	s, err := crawl.NewStep(cfg, warm)
	if err != nil {
		return did, err
	}
	switch err := e.newRunner(s).run(); {
	case errors.Is(err, crawl.ErrLeaseTaken), errors.Is(err, crawl.ErrLeaseLost):
		return did, nil
	case err != nil:
		return did, fmt.Errorf("step of partition %d: %w", p, err)
	}
	e.warm[p] = s.Warm()
	did.Worked, did.Pages = true, s.Pages()
	if pr, ok := s.Progress(); ok {
		did.Totals = pr.Totals
	}
	return did, nil
}

// CloseIdle closes the connections to web servers that nothing is asked over.
func (e *Engine) CloseIdle() { e.client.CloseIdle() }

// Tick runs the coordinator once, as one of many processes that do.
func (e *Engine) Tick() (crawl.Report, error) {
	spent, done := e.meter()
	defer done()
	return e.runTick(nil, spent)
}

// Take turns messages of the intake queue into mail. If it returns no error they may be
// acknowledged.
func (e *Engine) Take(msgs []actor.Message) error {
	spent, done := e.meter()
	defer done()
	return e.newRunner(crawl.NewIntake(crawl.IntakeConfig{Crawl: e.crawl.ID, Bucket: e.cfg.Bucket, Spent: spent}, msgs)).run()
}

// Command gives the crawl an order, and reports whether it was news. Steps of this
// process obey at once, those of others with their next commit.
func (e *Engine) Command(o crawl.Order) (changed bool, err error) {
	c := crawl.NewCommand(e.crawl.ID, o)
	if err := e.newRunner(c).run(); err != nil {
		return false, err
	}
	e.look()
	e.askTick()
	return c.Changed(), nil
}

// ChangeTopic changes a topic, and returns it as it is since, and whether that was news; see
// [crawl.NewChangeTopic]. Steps of this process obey at once, those of others with their next
// commit.
func (e *Engine) ChangeTopic(name string, change crawl.TopicChange) (now blobschema.Topic, changed bool, err error) {
	c := crawl.NewChangeTopic(e.crawl.ID, name, change)
	if err := e.newRunner(c).run(); err != nil {
		return now, false, err
	}
	e.look()
	e.askTick()
	now, changed = c.Topic()
	return now, changed, nil
}

// Partitioning is which partitions own which slots.
func (e *Engine) Partitioning() (crawl.Partitioning, error) {
	r := crawl.ReadPartitioning(e.crawl.ID)
	err := e.newRunner(r).run()
	_, now := r.Result()
	return now, err
}

// Repartition changes which partitions are wanted to own the slots; see
// [crawl.NewRepartition]. It makes sure that they have queues, as far as the platform
// makes queues. Steps of this process obey at once, those of others with their next commit.
func (e *Engine) Repartition(want func(crawl.Partitioning) (*partition.Map, error)) (before, after crawl.Partitioning, err error) {
	r := crawl.NewRepartition(e.crawl.ID, func(now crawl.Partitioning) (*partition.Map, error) {
		m, err := want(now)
		if err != nil || m == nil {
			return nil, err
		}
		owners := m.Partitions()
		return m, e.platform.CreateQueues(context.Background(), int(owners[len(owners)-1])+1)
	})
	if err := e.newRunner(r).run(); err != nil {
		return before, after, err
	}
	e.look()
	e.askTick()
	before, after = r.Result()
	return before, after, nil
}

// Receive waits for messages of a queue.
func (e *Engine) Receive(ctx context.Context, queue string, limit int, wait time.Duration) ([]actor.Message, error) {
	return e.queues.receive(ctx, actor.Receive{Queue: queue, Max: limit, Wait: wait})
}

// Close ends what is open. An engine that has Run is closed already.
func (e *Engine) Close(ctx context.Context) error {
	e.client.Close()
	return e.queues.close(ctx)
}

// meter begins to count what one piece of work is billed for.
func (e *Engine) meter() (spent func() blobschema.Calls, done func()) {
	before, began := e.ledger.Counts(), time.Now()
	e.ledger.Invoked()
	spent = func() blobschema.Calls {
		c := e.ledger.Counts().Minus(before)
		c.FunctionMBMillis = time.Since(began).Milliseconds() * int64(e.cfg.MemoryMB)
		return c
	}
	return spent, func() { e.ledger.Ran(time.Since(began), e.cfg.MemoryMB) }
}
