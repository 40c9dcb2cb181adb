package service_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/hostile"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

const (
	hostileLife   = 40 * time.Second // of the whole crawl; half of it on an idle machine
	hostileHeap   = 256 << 20        // bytes that the heap may grow by, servers and store included
	hostileParts  = 2
	hostileDelay  = 2 * time.Millisecond
	hostileAnswer = 3 * time.Second // time-outs of a request
	mostSlow      = 5               // bound of slowness
)

// slowness measures how busy the machine is: half of the ratio of elapsed time to processor time of some work
// on all processors. A machine that gives this process half of its time counts as fast enough.
func slowness() time.Duration {
	if raced { // which slows down everything except the work below
		return mostSlow
	}
	began, before := time.Now(), ledger.Processor()
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() { sha256.Sum256(make([]byte, 64<<20)) })
	}
	all.Wait()
	used := max(1, ledger.Processor()-before)
	return min(mostSlow, max(1, time.Since(began)*time.Duration(runtime.GOMAXPROCS(0))/(2*used)))
}

// TestCrawlsHostileWeb crawls all hostile cases together with good pages. It must end in time and within
// memory. Every good page must be stored byte for byte, even on the host of a case. Every bad URL must have an
// outcome and a reason, and the stored crawl must pass the check of invariants.
func TestCrawlsHostileWeb(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for time-outs, and moves much")
	}
	log.SetOutput(io.Discard) // net/http reports bytes after an answer
	slow := slowness()
	answer, life := slow*hostileAnswer, slow*hostileLife
	web, err := hostile.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	defer p.Table.Close()
	e, err := service.New(p, service.Config{
		Step: crawl.StepConfig{
			Retry: polite.Retry{Attempts: 3, FewAttempts: 1, Wait: 50 * time.Millisecond, Backoff: 10 * time.Millisecond},
			Token: "orbweaver", Software: "orbweaver", Compressed: true, Connections: 128, Linger: 100 * time.Millisecond,
		},
		Fetch: fetch.Config{
			UserAgent: "orbweaver", Token: "orbweaver", Requisites: true, AllowNet: []netip.Prefix{hostile.Net()}, Lookup: web.Lookup, Roots: web.Roots(),
			MaxBody: 2 << 20, ConnectTimeout: answer, HeaderTimeout: answer, Timeout: answer + time.Second,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	seed, err := weburl.Parse(web.Index())
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{
		ID: "test", HashKey: make([]byte, 16), Slots: 1024, Partitions: hostileParts,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: 4, Delay: hostileDelay, Requisites: true},
	}
	if _, _, _, err := e.Begin(want, crawl.Seeds([]weburl.URL{seed}), nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*life)
	defer cancel()
	stop := hostile.WatchHeap()
	begun := time.Now()
	end, err := e.Run(ctx)
	took, before, peak := time.Since(begun), uint64(0), uint64(0)
	before, peak = stop()
	if err != nil || end != service.Finished {
		t.Fatalf("the crawl %s after %v: %v", end, took, err)
	}
	t.Logf("%v at a slowness of %d, heap %d MB before, %d MB at most, %+v", took, slow, before>>20, peak>>20, e.Snapshot().Totals)
	if took > life && !raced {
		t.Errorf("the crawl took %v", took)
	}
	if peak > before+hostileHeap && !raced {
		t.Errorf("the heap grew from %d MB to %d MB", before>>20, peak>>20)
	}
	if n := web.Reached(); n != 0 {
		t.Errorf("%d connections to the inside", n)
	}

	stored := records(t, p)
	goodPages(t, p, web, stored)
	badPages(t, web, stored)
	requisites(t, web, stored)
	rep, err := fsck.Check(t.Context(), engine.Store{Platform: p}, fsck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range rep.Violations {
		t.Error(v)
	}
	if rep.Pages < int64(len(stored)) || rep.Pending != 0 {
		t.Errorf("checked %+v", rep)
	}
}

// goodPages compares the stored good pages with those served.
func goodPages(t *testing.T, p *platform.Platform, web *hostile.Server, stored map[string]blobschema.Page) {
	t.Helper()
	objects := map[string][]byte{}
	pages := web.Pages()
	for u, want := range pages {
		got, ok := stored[u]
		if !ok || got.Outcome != blobschema.OutcomeOK {
			t.Errorf("good page %s: %v, %q", u, got.Outcome, got.Detail)
			continue
		}
		payload := got.Payload() // a payload of several hosts is stored once
		if objects[payload.WARC] == nil {
			data, err := engine.GetObject(t.Context(), p, actor.GetObject{Name: payload.WARC, Length: -1})
			if err != nil {
				t.Fatal(err)
			}
			objects[payload.WARC] = data
		}
		rec, err := warc.ReadAt(bytes.NewReader(objects[payload.WARC]), payload.Offset, payload.Length)
		if err != nil {
			t.Errorf("good page %s: %v", u, err)
			continue
		}
		if rec.TargetURI != payload.URL || !bytes.Equal(rec.Body, want.Body) || got.Truncated != "" {
			t.Errorf("good page %s: %d bytes stored of %s, want %d", u, len(rec.Body), rec.TargetURI, len(want.Body))
		}
	}
	if len(pages) < 300 {
		t.Errorf("only %d good pages", len(pages))
	}
}

// badPages checks that every case has a record with its outcome.
func badPages(t *testing.T, web *hostile.Server, stored map[string]blobschema.Page) {
	t.Helper()
	others, followed := 0, 0
	for i, c := range web.Cases() {
		if c.Robots || c.Day { // not linked; robots.txt is fetched with the pages of its host, which are good
			continue
		}
		got, ok := stored[web.URL(i)]
		if !ok {
			t.Errorf("%s: no record", c.Name)
			continue
		}
		if (got.Detail == "") == !got.Outcome.Answered() {
			t.Errorf("%s: outcome %v with reason %q", c.Name, got.Outcome, got.Detail)
		}
		if got.Outcome != c.Want.Outcome && got.Outcome != c.Want.Or {
			others++ // because of its robots.txt or a busy machine; the test of package fetch is exact
		}
		if !c.Follow || got.Redirect == "" {
			continue
		}
		followed++
		if to := stored[got.Redirect]; to.Outcome != blobschema.OutcomeForbidden && to.Outcome != blobschema.OutcomeRobotsGone || !strings.Contains(to.Detail, "is not allowed") {
			t.Errorf("%s: its target %s has the outcome %v, %q", c.Name, got.Redirect, to.Outcome, to.Detail)
		}
	}
	if n := len(web.Cases()); others > n/3 || followed < 10 {
		t.Errorf("%d of %d outcomes are others than wanted, %d redirects inside", others, n, followed)
	}
}

// requisites checks that the crawl tried what a page needs of the inside, and that it followed endless imports only so far.
func requisites(t *testing.T, web *hostile.Server, stored map[string]blobschema.Page) {
	t.Helper()
	for i := 1; i <= 6; i++ {
		u := fmt.Sprintf("http://%s/%d", web.Inside(), i)
		if got := stored[u]; got.Outcome != blobschema.OutcomeForbidden && got.Outcome != blobschema.OutcomeRobotsGone {
			t.Errorf("requisite %s: %v, %q", u, got.Outcome, got.Detail)
		}
	}
	for i, c := range web.Cases() {
		if c.Name != "css-chain" {
			continue
		}
		n := 0
		for u := range stored {
			if strings.HasPrefix(u, web.URL(i)) {
				n++
			}
		}
		if n != 1+10+1 { // ten between the first and the last
			t.Errorf("%d style sheets of an endless chain", n)
		}
	}
}

// records reads the visible page records by URL, without those of robots.txt.
func records(t *testing.T, p *platform.Platform) map[string]blobschema.Page {
	t.Helper()
	all := map[string]blobschema.Page{}
	for part := range partition.ID(hostileParts) {
		recs, err := engine.ReadRecords(t.Context(), p, []string{naming.HeadKey("test", part)})
		if err != nil {
			t.Fatal(err)
		}
		var h blobschema.Head
		if err := json.Unmarshal(recs[0].Value, &h); err != nil {
			t.Fatal(err)
		}
		man, err := commit(t, p, h.Commit).Manifest()
		if err != nil {
			t.Fatal(err)
		}
		for name := range blobschema.CommitNames(&man) {
			list, err := commit(t, p, name).Pages()
			if err != nil {
				t.Fatal(err)
			}
			for _, pg := range list {
				if !pg.Robots {
					all[pg.URL] = pg
				}
			}
		}
	}
	return all
}
