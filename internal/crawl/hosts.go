package crawl

import (
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/partition"
)

// HostPack is a record of the hosts table: the estimates of some hosts of one partition. A host may be in two packs; the
// entry with the higher Commit is newer.
type HostPack struct {
	Partition partition.ID          `json:"partition"`
	Hosts     map[string]HostRecord `json:"hosts"`
}

// HostRecord is the table's entry of a host.
type HostRecord struct {
	Commit uint64 `json:"commit"` // commit of its partition that observed it
	blobschema.HostObservation
}

// hostsPerPack keeps a record far below the limit of 400 KB for a table item.
const hostsPerPack = 1000

// HostPacks returns the number of packs of a partition with that many hosts.
func HostPacks(hosts int64) int {
	n := 1
	for int64(n)*hostsPerPack < hosts {
		n *= 2
	}
	return n
}

// copyFor bounds the time that one run spends copying host estimates: each commit is a read, and a function has one minute.
const copyFor = 20 * time.Second

// copyHosts copies the owners' host estimates into the hosts table. Entries carry commit numbers, so copying twice changes
// nothing. A later run copies what this one has no time for.
func (k *Tick) copyHosts(t *actor.Task) error {
	var behind []*blobschema.Head
	for i := range k.report.Heads {
		if h := &k.report.Heads[i]; h.Seq > k.record.Copied[h.Partition] {
			behind = append(behind, h)
		}
	}
	if k.copied = len(behind) == 0; k.copied {
		return nil
	}
	if !k.over() && !k.passed(k.record.CopiedAt, k.cfg.HostsEvery) {
		return nil
	}
	until := k.Now().Mono + copyFor
	copied, dropped := map[partition.ID]uint64{}, []string{}
	all := true
	for _, h := range behind {
		upTo, unnamed, err := k.copyPartition(t, h, until)
		dropped = append(dropped, unnamed...)
		if err != nil {
			return fmt.Errorf("copy host estimates of partition %d: %w", h.Partition, err)
		}
		copied[h.Partition] = upTo
		if all = all && upTo == h.Seq; !all {
			break
		}
	}
	now := k.Now().Wall.UTC()
	k.learn(func(r *blobschema.TickRecord) {
		if all {
			r.CopiedAt = now
		}
		if r.Copied == nil {
			r.Copied = map[partition.ID]uint64{}
		}
		for p, seq := range copied {
			r.Copied[p] = max(r.Copied[p], seq)
		}
		candidates(r, dropped)
	})
	k.copied = all
	return nil
}

// copyPartition copies the estimates of a partition's commits, oldest first, until a time on the monotonic clock, but of at
// least one commit. upTo is the last commit copied; dropped are the runs that these commits no longer name.
func (k *Tick) copyPartition(t *actor.Task, h *blobschema.Head, until time.Duration) (upTo uint64, dropped []string, err error) {
	man, err := blobschema.ReadManifest(t.Object, h.Commit)
	if err != nil {
		return 0, nil, err
	}
	// The newest estimate of each host is collected by pack.
	packs := HostPacks(h.Totals.Hosts)
	fresh := make([]map[string]HostRecord, packs)
	for seq, name := range blobschema.CommitsAfter(man, k.record.Copied[h.Partition]) {
		if upTo > 0 && k.Now().Mono >= until {
			break
		}
		upTo = seq
		c, err := blobschema.ReadCommit(t.Object, name)
		if err != nil {
			return 0, nil, err
		}
		m, err := c.Manifest()
		if err != nil {
			return 0, nil, err
		}
		dropped = append(dropped, m.Dropped...)
		hosts, err := c.Hosts()
		if err != nil {
			return 0, nil, err
		}
		for _, o := range hosts {
			n := int(o.Slot) / k.report.Crawl.Partitions % packs
			if fresh[n] == nil {
				fresh[n] = map[string]HostRecord{}
			}
			fresh[n][o.Host] = HostRecord{seq, o}
		}
	}
	// A pack is replaced only by estimates of newer commits.
	for n, hosts := range fresh {
		if len(hosts) == 0 {
			continue
		}
		err := actor.Update(t, naming.HostsKey(k.report.Crawl.ID, h.Partition, n), func(p *HostPack) bool {
			changed := false
			p.Partition = h.Partition
			if p.Hosts == nil {
				p.Hosts = map[string]HostRecord{}
			}
			for host, rec := range hosts {
				if rec.Commit > p.Hosts[host].Commit {
					p.Hosts[host], changed = rec, true
				}
			}
			return changed
		})
		if err != nil {
			return 0, nil, err
		}
	}
	return upTo, dropped, nil
}
