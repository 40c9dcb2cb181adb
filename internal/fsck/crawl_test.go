package fsck_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// memory is a fsck.Store with the records and objects of a crawl.
type memory struct {
	records map[string]string
	objects map[string][]byte
}

func (m *memory) Records(_ context.Context, keys ...string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		if v, ok := m.records[key]; ok {
			values[i] = []byte(v)
		}
	}
	return values, nil
}

func (m *memory) Object(_ context.Context, name string, offset, length int64) ([]byte, error) {
	b, ok := m.objects[name]
	if ok && length < 0 && offset == 0 {
		return b, nil
	}
	if !ok || offset < 0 || length < 0 || offset > int64(len(b)) || length > int64(len(b))-offset {
		return nil, fmt.Errorf("no %d bytes at %d of %s", length, offset, name)
	}
	return b[offset : offset+length], nil
}

func (m *memory) List(_ context.Context, prefix string) iter.Seq2[blobschema.StoredObject, error] {
	return func(yield func(blobschema.StoredObject, error) bool) {
		for _, n := range slices.Sorted(maps.Keys(m.objects)) {
			if strings.HasPrefix(n, prefix) && !yield(blobschema.StoredObject{Name: n}, nil) {
				return
			}
		}
	}
}

// clone copies the maps. Tests replace objects and never change them in place.
func (m *memory) clone() *memory {
	return &memory{records: maps.Clone(m.records), objects: maps.Clone(m.objects)}
}

const (
	crawlID    = "test"
	partitions = 4
	slots      = 64
	most       = 12 // greatest number of partitions of a crawl
)

// smallWeb has hosts that refuse, redirect and forbid requests, and no slow host.
var smallWeb = simweb.Config{
	Seed: 7, Hosts: 8, Pages: simweb.Pages{Min: 8, Max: 20}, PageBytes: 2 << 10, LinksPerPage: 10,
	Connection: simweb.Connection{Gzip: 0.5, Chunked: 0.3},
	Robots:     simweb.RobotsShares{AllowAll: 0.2, Sections: 0.3, Forbidden: 0.15},
	Kinds:      simweb.PageShares{Redirect: 0.1, Gone: 0.1, Media: 0.05, Duplicate: 0.05, NoFollow: 0.05},
	Links:      simweb.LinkShares{NoFollow: 0.05, Odd: 0.1},
}

// crawled is a complete crawl of the generated web, made once for all tests.
var crawled = sync.OnceValues(func() (*memory, error) {
	return crawlOnce(crawl.StepConfig{CommitEvery: 100 * time.Millisecond, CommitMin: 5 * time.Millisecond, CommitPages: 2}, blobschema.Settings{}, 0, nil)
})

// cut is a crawl with a limit of pages, so that URLs are pending at its end.
var cut = sync.OnceValues(func() (*memory, error) {
	return crawlOnce(crawl.StepConfig{CommitEvery: 50 * time.Millisecond, CommitPages: 5, CommitMin: 20 * time.Millisecond}, blobschema.Settings{MaxPages: 60}, 0, nil)
})

// again is a crawl by domain with a cap on the URLs of a host. Its seeds were requested again
// by three submissions, of which two have the same ID.
var again = sync.OnceValues(func() (*memory, error) {
	s := blobschema.Settings{PartitionBy: blobschema.ByDomain, MaxHostURLs: 12, MaxSegments: 3, Sitemaps: true}
	return crawlOnce(crawl.StepConfig{CommitEvery: 50 * time.Millisecond, CommitPages: 5, CommitMin: 20 * time.Millisecond}, s, 3, nil)
})

// addresses is a crawl by IP, of hosts that are IP addresses.
var addresses = sync.OnceValues(func() (*memory, error) {
	s := blobschema.Settings{PartitionBy: blobschema.ByIP, MaxPages: 60}
	return crawlOnce(crawl.StepConfig{CommitEvery: 50 * time.Millisecond, CommitPages: 5, CommitMin: 20 * time.Millisecond}, s, 1, nil)
})

// repartitioned is a crawl whose slots moved while it ran.
var repartitioned = sync.OnceValues(func() (*memory, error) {
	s := blobschema.Settings{Index: true}
	return crawlOnce(quickly, s, 1, func(ctx context.Context, e *jobs.Jobs, _ *platform.Platform) error {
		return shuffle(ctx, e, 20*time.Millisecond)
	})
})

// searchable is a crawl with an index and ranks, whose seeds were requested again.
var searchable = sync.OnceValues(func() (*memory, error) {
	return crawlOnce(quickly, blobschema.Settings{Index: true}, 2, nil)
})

// quickly configures steps that commit often.
var quickly = crawl.StepConfig{CommitEvery: 50 * time.Millisecond, CommitPages: 5, CommitMin: 5 * time.Millisecond}

// shuffle changes the number of partitions six times, each time after all slots have arrived.
// It ends because a crawl does not end while slots are moving.
func shuffle(ctx context.Context, e *jobs.Jobs, every time.Duration) error {
	for i := 0; i < 6; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(every):
		}
		n := []int{6, 3, most, 2, 5}[i%5]
		_, _, err := e.Repartition(func(now crawl.Partitioning) (*partition.Map, error) {
			if len(now.Record.Moving) > 0 {
				return nil, nil
			}
			var ids []partition.ID
			i++
			for p := range partition.ID(n) {
				ids = append(ids, p)
			}
			moves, err := now.Map.Plan(ids)
			if err != nil {
				return nil, err
			}
			return now.Map.Apply(moves)
		})
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// balanced returns a hash key with which each partition owns at least two of the web's
// hosts. The names of hosts contain ports, which differ from run to run.
func balanced(web *simweb.Web) (string, error) {
	hosts := map[string]bool{}
	for s := range web.Truth(simweb.Scope{SkipDigests: true}).Pages {
		u, err := weburl.Parse(s)
		if err != nil {
			return "", err
		}
		hosts[string(u.Host())] = true
	}
	pm, err := partition.NewMap(slots, partitions)
	if err != nil {
		return "", err
	}
	for i := range 10_000 {
		key := fmt.Sprintf("%016d", i)
		h, err := partition.NewHash([16]byte([]byte(key)), slots)
		if err != nil {
			return "", err
		}
		var owned [partitions]int
		for name := range hosts {
			owned[pm.Owner(h.Slot(name))]++
		}
		if slices.Min(owned[:]) >= 2 {
			return key, nil
		}
	}
	return "", fmt.Errorf("no key deals %d hosts evenly", len(hosts))
}

// crawlOnce crawls the generated web, and then resumes the crawl recrawls times with a request
// for the seeds. meanwhile, if not nil, runs during each of these runs; its context ends
// with the run.
func crawlOnce(step crawl.StepConfig, settings blobschema.Settings, recrawls int, meanwhile func(context.Context, *jobs.Jobs, *platform.Platform) error) (*memory, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	srv, err := simweb.Start(ctx, smallWeb)
	if err != nil {
		return nil, err
	}
	defer srv.Close()
	p, err := drivers.Memory(nil)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	defer p.Table.Close()
	step.Token, step.Software, step.Compressed = "orbweaver", "orbweaver", true
	var seeds []weburl.URL
	for _, s := range srv.Web().Seeds() {
		u, err := weburl.Parse(s)
		if err != nil {
			return nil, err
		}
		seeds = append(seeds, u)
	}
	key, err := balanced(srv.Web())
	if err != nil {
		return nil, err
	}
	settings.Scope, settings.MaxDepth, settings.Delay = blobschema.ScopeAny, -1, 12*time.Millisecond
	want := blobschema.Crawl{ID: crawlID, HashKey: []byte(key), Slots: slots, Partitions: partitions, Settings: settings}
	for i := range recrawls + 1 {
		e, err := jobs.Open(p, service.Config{
			Step:  step,
			Fetch: fetch.Config{UserAgent: "orbweaver", Token: "orbweaver", AllowNet: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		})
		if err != nil {
			return nil, err
		}
		if _, _, _, err := e.Begin(want, crawl.Seeds(seeds), nil); err != nil {
			return nil, err
		}
		if i > 0 {
			req := blobschema.Request{ID: fmt.Sprint("again-", i/2), Recrawl: srv.Web().Seeds()}
			if err := e.Submit(ctx, req); err != nil {
				return nil, err
			}
		}
		running, ended := context.WithCancel(ctx)
		beside := make(chan error, 1)
		go func() {
			if meanwhile == nil {
				beside <- nil
				return
			}
			beside <- meanwhile(running, e, p)
		}()
		end, err := e.Run(ctx)
		ended()
		if other := <-beside; err != nil || end == service.Stopped || other != nil {
			return nil, fmt.Errorf("crawl %s: %w", end, cmp.Or(err, other, context.Cause(ctx)))
		}
	}
	return copyOf(ctx, p)
}

// copyOf copies the records and objects of a platform.
func copyOf(ctx context.Context, p *platform.Platform) (*memory, error) {
	m := &memory{records: map[string]string{}, objects: map[string][]byte{}}
	keys := []string{naming.ActiveKey, naming.CrawlKey(crawlID), naming.DesiredKey(crawlID), naming.GrantsKey(crawlID), naming.RequestsKey(crawlID), naming.MapKey(crawlID), naming.RankKey(crawlID)}
	for q := range partition.ID(most) {
		keys = append(keys, naming.HeadKey(crawlID, q), naming.IndexKey(crawlID, q), naming.RankHeadKey(crawlID, q))
	}
	recs, err := engine.ReadRecords(ctx, p, keys)
	if err != nil {
		return nil, err
	}
	for i, rec := range recs {
		if rec.Found {
			m.records[keys[i]] = string(rec.Value)
		}
	}
	objects := p.Bucket.List(nil)
	for {
		o, err := objects.Next(ctx)
		if err == io.EOF {
			return m, nil
		}
		if err != nil {
			return nil, err
		}
		if m.objects[o.Key], err = p.Bucket.ReadAll(ctx, o.Key); err != nil {
			return nil, err
		}
		m.objects[o.Key] = bytes.Clone(m.objects[o.Key])
	}
}

func mustCrawl(t testing.TB, once func() (*memory, error)) *memory {
	t.Helper()
	m, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return m.clone()
}
