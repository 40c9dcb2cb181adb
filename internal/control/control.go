// Package control changes a crawl, wherever it is.
//
// [Control] is the one interface for everything that an operator may do to a crawl. It has three
// implementations: [Own], an engine of this process; [Deployment], functions that an engine of this
// process only wakes; and [Socket], the process that owns a folder. [Serve] offers any Control to
// other processes over a Unix socket in the folder, and [Dial] returns the client of that socket.
// Reading a crawl is the job of package view.
package control

import (
	"context"
	"errors"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Control changes a crawl. A method returns as soon as the change is recorded. It is safe for
// concurrent use.
type Control interface {
	// Submit puts a request for URLs on the intake queue.
	Submit(context.Context, blobschema.Request) error
	// Order pauses, resumes or stops the crawl. It reports false if the crawl is in that state already.
	Order(context.Context, crawl.Order) (changed bool, err error)
	// ChangeTopic changes a topic and returns its new settings. The errors include
	// [crawl.ErrNoTopic] and [crawl.ErrPriorities].
	ChangeTopic(ctx context.Context, name string, c crawl.TopicChange) (now blobschema.Topic, changed bool, err error)
	// Repartition changes the owners of slots. The error is [ErrChanged] if the map is no longer the
	// one that the change was made of.
	Repartition(context.Context, Change) error
	// StartRanks starts a rank job or joins a running one. The errors include [rank.ErrUnderWay]
	// and [rank.ErrNothing].
	StartRanks(context.Context, rank.StartConfig) (ranks.Job, error)
}

// Change is a change of the owners of slots.
type Change struct {
	Version uint64         // of the map record that the change was made of
	Map     *partition.Map // the desired map, of any epoch
}

var (
	// ErrChanged means that the map record has another version than the one that the change is based on.
	ErrChanged = errors.New("the partition map has changed meanwhile")
	// ErrNoOwner means that no process accepts changes for a folder: none works on it, or it is ending.
	ErrNoOwner = errors.New("no process accepts requests or orders")
)

// Own controls a crawl through an engine of this process that has the crawl open.
type Own struct{ Engine *jobs.Jobs }

func (o Own) Submit(ctx context.Context, r blobschema.Request) error { return o.Engine.Submit(ctx, r) }

func (o Own) Order(_ context.Context, what crawl.Order) (changed bool, err error) {
	return o.Engine.Command(what)
}

func (o Own) ChangeTopic(_ context.Context, name string, c crawl.TopicChange) (blobschema.Topic, bool, error) {
	return o.Engine.ChangeTopic(name, c)
}

func (o Own) Repartition(_ context.Context, c Change) error {
	_, _, err := o.Engine.Repartition(func(now crawl.Partitioning) (*partition.Map, error) {
		if now.Record.Version != c.Version {
			return nil, ErrChanged
		}
		return c.Map, nil
	})
	return err
}

func (o Own) StartRanks(_ context.Context, r rank.StartConfig) (ranks.Job, error) {
	job, _, err := o.Engine.StartRanks(r)
	return job, err
}

// Deployment controls a crawl that functions or workers carry out. After a change that gives
// partitions something to do, it runs the coordinator once, so that they are woken at once.
type Deployment struct{ Own }

// Order wakes the partitions even if the crawl was resumed before: that coordinator run may be lost.
func (d Deployment) Order(ctx context.Context, what crawl.Order) (changed bool, err error) {
	changed, err = d.Own.Order(ctx, what)
	if err == nil && what == crawl.OrderResume {
		_, err = d.Engine.Tick()
	}
	return changed, err
}

func (d Deployment) Repartition(ctx context.Context, c Change) error {
	err := d.Own.Repartition(ctx, c)
	if err == nil {
		_, err = d.Engine.Tick()
	}
	return err
}

// Recrawl requests URLs of a crawl with one id, in as many messages as they need. The crawl recognises repeats by id and
// URL, so a repeat may be divided differently.
func Recrawl(ctx context.Context, c Control, crawl, id string, urls []weburl.URL) error {
	r := blobschema.Request{Version: 1, Crawl: crawl, ID: id}
	for _, u := range urls {
		r.Recrawl = append(r.Recrawl, u.String())
	}
	for _, part := range r.Split() {
		if err := c.Submit(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
