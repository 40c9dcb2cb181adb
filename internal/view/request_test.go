package view_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestEstimates reads the hosts table, also where the number of packs has changed.
func TestEstimates(t *testing.T) {
	_, s, v := overlaid(t, 0)
	e, err := v.Estimates(t.Context())
	if err != nil || e.AsOf.IsZero() || e.Behind {
		t.Fatalf("estimates as of %s, behind %v, %v", e.AsOf, e.Behind, err)
	}
	requested := map[weburl.Host]bool{}
	for _, pg := range all(t, v, view.EveryRecord) {
		if pg.Outcome.Answered() {
			requested[mustParse(t, pg.URL).Host()] = true
		}
	}
	for name := range requested {
		h, err := v.ExplainHost(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(e.Hosts, func(e view.HostEstimate) bool { return e.Host == h.Host })
		if i < 0 || e.Hosts[i].Requests != h.Requests || e.Hosts[i].Partition != h.Partition {
			t.Errorf("host %s was requested %d times; the table has it at %d: %+v", name, h.Requests, i, e.Hosts)
		}
	}
	if len(requested) == 0 || len(e.Hosts) < len(requested) {
		t.Errorf("%d hosts in the table, %d have answered", len(e.Hosts), len(requested))
	}
	pack := func(commit, requests uint64) crawl.HostPack {
		return crawl.HostPack{Hosts: map[string]crawl.HostRecord{"moved.example": {Commit: commit, HostObservation: blobschema.HostObservation{Requests: requests}}}}
	}
	s.records[naming.HostsKey(crawlID, 0, 0)] = pack(3, 30)
	s.records[naming.HostsKey(crawlID, 0, 1)] = pack(7, 70)
	s.records[naming.HostsKey(crawlID, 0, 3)] = pack(5, 50)
	s.records[naming.HostsKey(crawlID, 0, 8)] = pack(9, 90) // after a doubling with nothing
	s.records[naming.TickKey(crawlID)] = blobschema.TickRecord{CopiedAt: e.AsOf}
	if e, err = v.Estimates(t.Context()); err != nil || !e.Behind {
		t.Fatalf("behind %v, %v", e.Behind, err)
	}
	e.Hosts = slices.DeleteFunc(e.Hosts, func(h view.HostEstimate) bool { return h.Host != "moved.example" })
	if len(e.Hosts) != 1 || e.Hosts[0].Requests != 70 {
		t.Errorf("a host in three packs: %+v", e.Hosts)
	}
}

// TestLeftOut explains URLs that traps and caps exclude.
func TestLeftOut(t *testing.T) {
	web, s, v := overlaid(t, 0)
	c, err := v.Crawl(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	host := mustParse(t, web.Seeds()[0]).Host()
	unknown := mustParse(t, "http://"+string(host)+"/a/b/a/b/a/b")
	for _, tt := range []struct {
		set     func(*blobschema.Settings)
		desired blobschema.DesiredState
		says    string
	}{
		{func(s *blobschema.Settings) { s.MaxSegments = 5 }, blobschema.DesiredState{}, "looks like a trap: its path has 6 segments"},
		{func(s *blobschema.Settings) { s.MaxRepeats = 2 }, blobschema.DesiredState{}, `looks like a trap: its path has the segment "a"`},
		{func(s *blobschema.Settings) { s.MaxHostURLs = 2 }, blobschema.DesiredState{}, "cap of --max-host-urls 2: "},
		{func(s *blobschema.Settings) { s.MaxDomainURLs = 1 << 40 }, blobschema.DesiredState{Capped: []string{host.RegistrableDomain()}}, "--max-domain-urls"},
		{func(s *blobschema.Settings) {}, blobschema.DesiredState{Capped: []string{host.RegistrableDomain()}}, "no link to it is known"},
		{func(s *blobschema.Settings) { s.MaxSegments, s.MaxHostURLs, s.MaxDomainURLs = 6, 1<<40, 1<<40 }, blobschema.DesiredState{}, "no link to it is known"},
	} {
		c := c
		tt.set(&c.Settings)
		s.records[naming.CrawlKey(crawlID)], s.records[naming.DesiredKey(crawlID)] = c, tt.desired
		r, err := v.ExplainURL(t.Context(), unknown)
		if err != nil || r.State != view.Unknown || !strings.Contains(r.Why[0], tt.says) {
			t.Errorf("%q, %v, want %q", r.Why, err, tt.says)
		}
	}
}

// TestRequested checks that a waiting request for a URL is shown until it is applied.
func TestRequested(t *testing.T) {
	web, s, v := overlaid(t, 5)
	before, err := v.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seed := mustParse(t, web.Seeds()[0])
	data, err := blobschema.EncodeSeeds(blobschema.SeedBatch{Number: 1, URLs: []blobschema.Queued{{URL: seed.String()}}})
	if err != nil {
		t.Fatal(err)
	}
	name := naming.Request(crawlID, data)
	if err := s.platform.Bucket.WriteAll(t.Context(), name, data, nil); err != nil {
		t.Fatal(err)
	}
	s.records[naming.RequestsKey(crawlID)] = blobschema.Requests{
		Sent: map[partition.ID]uint64{1: 1}, Dead: 2,
		Outbox: []blobschema.RequestMail{{To: 1, Number: 1, Request: 1, Object: name}},
	}
	waits := func(u weburl.URL) bool {
		r, err := v.ExplainURL(t.Context(), u)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(strings.Join(r.Why, "\n"), "requested in mail 1 to partition 1")
	}
	if !waits(seed) || waits(mustParse(t, seed.String()+"other")) {
		t.Error("a request that waits is not told, or of another URL")
	}
	after, err := v.Status(t.Context())
	if err != nil || after.Unread != before.Unread+1 || after.Requests != 1 || after.DeadRequests != 2 {
		t.Errorf("%d messages unread, %d before; %d dead, %v", after.Unread, before.Unread, after.DeadRequests, err)
	}
	head := before.Heads[slices.IndexFunc(before.Heads, func(h blobschema.Head) bool { return h.Partition == 1 })]
	head.Requests = 1
	s.records[naming.HeadKey(crawlID, 1)] = head
	if waits(seed) {
		t.Error("a request that is applied waits")
	}
}

// TestPayload reads the payload of a revisit, and refuses another payload.
func TestPayload(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	crawlInto(t, p, 5)
	v, err := view.New(t.Context(), engine.Store{Platform: p})
	if err != nil {
		t.Fatal(err)
	}
	pages := all(t, v, view.LatestRecord)
	i := slices.IndexFunc(pages, func(p blobschema.Page) bool { return p.Outcome == blobschema.OutcomeOK && p.BodyBytes > 0 })
	orig := pages[i].Payload()
	revisit := blobschema.Page{URL: "http://copy.example/", Digest: pages[i].Digest, Original: &orig}
	rec, err := v.Payload(t.Context(), revisit)
	if err != nil || int64(len(rec.Body)) != pages[i].BodyBytes {
		t.Fatalf("%+v, %v", rec, err)
	}
	for name, change := range map[string]func(pg *blobschema.Page, o *blobschema.Original){
		"another payload": func(pg *blobschema.Page, _ *blobschema.Original) { pg.Digest = "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" },
		"another URL":     func(_ *blobschema.Page, o *blobschema.Original) { o.URL += "x" },
		"another place":   func(_ *blobschema.Page, o *blobschema.Original) { o.Offset++ },
		"no length":       func(_ *blobschema.Page, o *blobschema.Original) { o.Length = -1 },
	} {
		pg, o := revisit, orig
		pg.Original = &o
		change(&pg, &o)
		if rec, err := v.Payload(t.Context(), pg); err == nil {
			t.Errorf("%s: %+v", name, rec)
		}
	}
}

// TestWhyItWaits checks the reasons for a URL that is not due yet: a failure, or a later revisit.
func TestWhyItWaits(t *testing.T) {
	for attempts, want := range map[uint8]string{0: "it was fetched before, and waits for a revisit", 2: "attempt 2 failed"} {
		s := newHandmade(t)
		q := s.queued("http://" + s.hostIn(0) + "/")
		q.Generation, q.Attempts, q.NotBefore = 1, attempts, time.Now().Add(time.Hour).UnixMilli()
		s.commit(0, func(c *blobschema.Commit) {
			c.State = &blobschema.Run{Queued: []blobschema.Queued{q}}
			c.Manifest.Slots = []blobschema.SlotSummary{{Slot: 0, Known: 1, Pending: 1}}
		})
		v, err := view.New(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		r, err := v.ExplainURL(t.Context(), mustParse(t, q.URL))
		if err != nil || !slices.Contains(r.Why, want) {
			t.Errorf("%d attempts: %q, %v", attempts, r.Why, err)
		}
	}
}
