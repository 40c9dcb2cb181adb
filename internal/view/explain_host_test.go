package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestHostsOfRules checks that a host with its own rule has that rule's delay, and finishes accordingly earlier.
func TestHostsOfRules(t *testing.T) {
	s := newHandmade(t)
	host, other := s.hostIn(0), s.hostIn(1)
	quick := 100 * time.Millisecond
	s.write(naming.CrawlKey(handID), blobschema.Crawl{
		Version: wire.Version, ID: handID, HashKey: append([]byte{1}, make([]byte, 15)...), Slots: handSlots, Partitions: 1,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, Delay: 2 * time.Second, Hosts: []blobschema.HostRule{{Host: host, Connections: 4, Delay: &quick}}},
	})
	s.commit(0, func(c *blobschema.Commit) {
		c.State = &blobschema.Run{}
		for _, h := range []string{host, other} {
			for i := range 50 {
				c.State.Queued = append(c.State.Queued, s.queued(fmt.Sprintf("http://%s/%d", h, i)))
			}
			c.Manifest.Slots = append(c.Manifest.Slots, blobschema.SlotSummary{Slot: s.hash.Slot(h), Known: 50, Pending: 50})
		}
		c.State.Sort()
	})
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for h, want := range map[string][2]string{host: {"100ms", "5s"}, other: {"2s", "1m40s"}} {
		r, err := v.ExplainHost(t.Context(), weburl.Host(h))
		if err != nil || r.Delay != want[0] || r.Left != want[1] || r.Pending != 50 {
			t.Errorf("%s: %+v, %v", h, r, err)
		}
	}
}
