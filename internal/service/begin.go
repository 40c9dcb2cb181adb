package service

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// Identify gives a new crawl its id and a random hash key, so that no site can choose URLs that collide
// with those of another site.
func Identify(c blobschema.Crawl) (blobschema.Crawl, error) {
	now := time.Now()
	c.ID, c.Created, c.HashKey = crawl.CrawlID(now), now.UTC().Truncate(time.Second), make([]byte, 16)
	_, err := rand.Read(c.HashKey)
	return c, err
}

// Begin creates a crawl or opens the existing one, and adds seeds; see [crawl.NewBegin].
func (s *Service) Begin(want blobschema.Crawl, seeds []crawl.Seed, check func(*blobschema.Crawl) error) (c blobschema.Crawl, created bool, added int, err error) {
	if want.Settings.Index {
		if err := s.CheckJobs(context.Background()); err != nil {
			return blobschema.Crawl{}, false, 0, err
		}
	}
	b := crawl.NewBegin(want, seeds, check)
	if err := s.Engine.Run(b); err != nil {
		return blobschema.Crawl{}, false, 0, err
	}
	s.crawl, created, added = b.Crawl()
	parts, err := s.Partitioning()
	if err == nil {
		err = s.Platform.CreateQueues(context.Background(), max(parts.Record.Partitions, s.crawl.Settings.MostPartitions))
	}
	if err != nil {
		return blobschema.Crawl{}, false, 0, err
	}
	return s.crawl, created, added, nil
}

// BeginAnother creates a crawl in place of one that has ended; see [crawl.NewAnother]. A process that works on
// the crawl calls Begin afterwards.
func (s *Service) BeginAnother(ctx context.Context, want blobschema.Crawl, seeds []crawl.Seed) (blobschema.Crawl, error) {
	if err := s.Platform.CreateQueues(ctx, want.Partitions); err != nil { // before the first change, because a deployment may have too few
		return blobschema.Crawl{}, err
	}
	if want.Settings.Index {
		if err := s.CheckJobs(ctx); err != nil {
			return blobschema.Crawl{}, err
		}
	}
	b := crawl.NewAnother(want, seeds, s.Platform.Exclusive)
	if err := s.Engine.Run(b); err != nil {
		return blobschema.Crawl{}, err
	}
	s.crawl, _, _ = b.Crawl()
	return s.crawl, nil
}

// PutRanks stores the ranks of hosts for a new crawl, and names them in its record. If ranks is nil, it does
// nothing.
func (s *Service) PutRanks(ctx context.Context, c *blobschema.Crawl, ranks []byte) error {
	if ranks == nil {
		return nil
	}
	c.Settings.HostRanks = naming.Ranks(c.ID, ranks)
	if err := s.Platform.Bucket.WriteAll(ctx, c.Settings.HostRanks, ranks, nil); err != nil {
		return fmt.Errorf("put %s: %w", c.Settings.HostRanks, err)
	}
	return nil
}
