package view

import (
	"context"
	"math"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// Estimates is the hosts table: the observations of partitions about the hosts that they requested.
type Estimates struct {
	Hosts []HostEstimate // each once, in no order
	// AsOf is when a coordinator run last copied them: every minute, in a cloud every quarter of an hour, and
	// when a crawl is finished. It is zero if none has.
	AsOf time.Time
	// Behind says that a partition has committed since.
	Behind bool
}

// HostEstimate is the row of a host, or of another politeness key, in the hosts table.
type HostEstimate struct {
	Host      string
	Partition partition.ID // owner of its slot
	crawl.HostRecord
}

// Estimates reads the hosts table into memory, some 200 bytes a host.
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
		hosts, _, err := crawl.ReadHosts(func(key string, to *crawl.HostPack) (bool, error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			return v.record(ctx, key, to)
		}, v.id, h, math.MaxInt)
		if err != nil {
			return nil, err
		}
		for host, rec := range hosts {
			owner := m.Owner(v.hash.Slot(host))
			est := HostEstimate{host, owner, rec}
			if r.Epoch > v.division.first.Epoch() {
				// Each partition that ever held a host has a record of it. The one that holds it
				// now counts on from where the others ended.
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
