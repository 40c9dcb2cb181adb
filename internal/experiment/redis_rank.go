package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/platform"
	"github.com/orbweaver/orbweaver/internal/rank"
	"github.com/orbweaver/orbweaver/internal/rank/made"
	"github.com/orbweaver/orbweaver/partition"
)

// What the ranks of sites are to take.
const (
	redisSites    = 35_602
	redisRankMost = time.Second // on one machine
)

// madeStore puts a made crawl on a platform.
type madeStore struct{ *platform.Platform }

func (s madeStore) Put(name string, data []byte) error {
	return engine.PutObject(context.Background(), s.Platform, crawl.PutObject{Name: name, Parts: [][]byte{data}})
}

func (s madeStore) Record(key string, value []byte) error {
	recs, err := engine.ReadRecords(context.Background(), s.Platform, []string{key})
	if err == nil {
		_, err = engine.WriteRecord(context.Background(), s.Platform, crawl.WriteRecord{Key: key, Value: value, Revision: recs[0].Revision})
	}
	return err
}

// rankTrial is the ranking of a web of sites.
type rankTrial struct {
	workers int
	sites   int
	job     blobschema.RankJob
	took    time.Duration
	busy    time.Duration // of all processors
	steps   int
	calls   int // of the table, the queue and the objects
}

// crawl makes a crawl of the sites, of a page each.
func (t *rankTrial) crawl(p *platform.Platform, pages []made.Page) (*made.Crawl, error) {
	c, err := made.Begin(madeStore{p}, "sites", archiveSlots, t.workers, blobschema.ByHost)
	if err != nil {
		return nil, err
	}
	return c, c.Commit(madeStore{p}, pages, 5000)
}

// simulated ranks on a farm: a step of a partition begins when a message for it comes and none is at work.
func (t *rankTrial) simulated(pages []made.Page) (err error) {
	p, err := platform.Memory(nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	c, err := t.crawl(p, pages)
	if err != nil {
		return err
	}
	runtime.GC()
	warm, atWork, asked := map[partition.ID]*rank.Warm{}, map[partition.ID]bool{}, map[partition.ID]bool{}
	f := &farm{platform: p}
	var look func(part partition.ID)
	look = func(part partition.ID) {
		if atWork[part] {
			asked[part] = true
			return
		}
		atWork[part] = true
		t.steps++
		s := rank.NewStep(rank.StepConfig{Crawl: c.Record.ID, Partition: part}, warm[part])
		f.start(s, func() {
			warm[part], atWork[part] = s.Warm(), false
			if asked[part] {
				asked[part] = false
				look(part)
			}
		})
	}
	f.sent = func(body []byte) error {
		_, part, err := blobschema.DecodeJob(body)
		if err == nil {
			look(part)
		}
		return err
	}
	f.start(rank.NewStart(rank.StartConfig{Crawl: c.Record.ID, Params: blobschema.DefaultRankParams()}), nil)
	if t.took, err = f.run(); err != nil {
		return err
	}
	t.busy, t.calls = f.busy, f.calls
	return t.read(p, c.Record.ID)
}

// read takes the job, which is to be done.
func (t *rankTrial) read(p *platform.Platform, id string) error {
	recs, err := engine.ReadRecords(context.Background(), p, []string{blobschema.RankKey(id)})
	if err != nil {
		return err
	}
	t.job, err = crawl.DecodeRecord[blobschema.RankJob](recs[0], "rank job")
	if err == nil && (t.job.Done.IsZero() || t.job.Failed != "") {
		err = fmt.Errorf("ranks of %d sites by %d workers are not there: %s", t.sites, t.workers, t.job.Failed)
	}
	return err
}
