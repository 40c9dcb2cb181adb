package view

import (
	"context"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// Estimates is the hosts table: what the partitions observed of the hosts they asked.
type Estimates struct {
	Hosts []HostEstimate // each once, in no order
	// AsOf is when a tick copied them last, zero for never: every minute (every 15 by
	// functions and workers), and when a crawl is finished.
	AsOf time.Time
	// Behind says that partitions have committed since.
	Behind bool
}

// HostEstimate is what the hosts table says of a host, or of another unit of pacing.
type HostEstimate struct {
	Host      string
	Partition partition.ID // that owns its slot
	crawl.HostRecord
}

// Estimates reads the hosts table. It holds all of it in memory, some 200 bytes a host.
func (v *View) Estimates(ctx context.Context) (*Estimates, error) {
	heads, r, err := v.headsAnd(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	m, err := v.mapOf(ctx, &r, r.Object)
	if err != nil {
		return nil, err
	}
	var tick blobschema.TickRecord
	if _, err := v.record(ctx, naming.TickKey(v.id), &tick); err != nil {
		return nil, err
	}
	e := &Estimates{AsOf: tick.CopiedAt}
	at := map[string]int{} // of hosts in slots that have moved, or may have
	for i := range heads {
		h := &heads[i]
		e.Behind = e.Behind || h.Seq > tick.Copied[h.Partition]
		hosts, err := v.hostRecords(ctx, h)
		if err != nil {
			return nil, err
		}
		for host, rec := range hosts {
			owner := m.Owner(v.hash.Slot(host))
			est := HostEstimate{host, owner, rec}
			if r.Epoch > v.division.first.Epoch() {
				// Of a host that has moved each of its partitions has a record. The one that has
				// it now goes on counting where the others ended.
				if i, twice := at[host]; twice {
					if old := &e.Hosts[i]; rec.Requests > old.Requests || rec.Requests == old.Requests && h.Partition == owner {
						*old = est
					}
					continue
				}
				at[host] = len(e.Hosts)
			}
			e.Hosts = append(e.Hosts, est)
		}
	}
	return e, nil
}

// hostRecords reads the packs of a partition. A host that stands in two, because their
// number has changed, is taken from the one that a later commit wrote. Packs beyond the
// present number are looked for as long as each doubling finds some.
func (v *View) hostRecords(ctx context.Context, h *blobschema.Head) (map[string]crawl.HostRecord, error) {
	hosts := map[string]crawl.HostRecord{}
	now := crawl.HostPacks(h.Totals.Hosts)
	for first, end := 0, now; ; first, end = end, 2*end {
		found := false
		for n := first; n < end; n++ {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var pack crawl.HostPack
			ok, err := v.record(ctx, naming.HostsKey(v.id, h.Partition, n), &pack)
			if err != nil {
				return nil, fmt.Errorf("host estimates of partition %d: %w", h.Partition, err)
			}
			found = found || ok
			for host, rec := range pack.Hosts {
				if old, ok := hosts[host]; !ok || rec.Commit > old.Commit {
					hosts[host] = rec
				}
			}
		}
		if first >= now && !found {
			return hosts, nil
		}
	}
}
