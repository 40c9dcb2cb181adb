package crawl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/partition"
)

// NoHosts is the value of [blobschema.Settings].HostsFrom for a crawl that knows no hosts.
const NoHosts = "none"

// knownPacks bounds the packs of hosts that are read when a crawl is created, over all partitions that have any.
const knownPacks = 512

// usesTimes names the policies that order hosts by their times and requests per connection.
var usesTimes = []string{"performance", "capability"}

// putKnownHosts stores what an earlier crawl measured of hosts, and names the object in the settings of a new crawl. last is
// the id of the last crawl, or empty. It does nothing if the policy of the new crawl does not use the estimates, and if the
// politeness keys of the earlier crawl were others.
func putKnownHosts(t *actor.Task, c *blobschema.Crawl, last string) error {
	id := cmp.Or(c.Settings.HostsFrom, last)
	if id == "" || id == NoHosts || !slices.Contains(usesTimes, c.Settings.Policy) {
		return nil
	}
	recs, err := t.Records(naming.CrawlKey(id), naming.TickKey(id))
	if err != nil {
		return err
	}
	var old blobschema.Crawl
	var tick blobschema.TickRecord
	if !recs[0].Found {
		return fmt.Errorf("hosts of crawl %s: %w", id, blobschema.ErrUnknownCrawl)
	}
	if err := cmp.Or(recs[0].Into(&old, "crawl"), recs[1].Into(&tick, "coordinator")); err != nil {
		return err
	}
	if err := checkRecord(id, &old); err != nil || cmp.Or(old.Settings.PartitionBy, blobschema.ByHost) != cmp.Or(c.Settings.PartitionBy, blobschema.ByHost) {
		return err
	}
	hosts, err := measuredHosts(t, &old)
	if err != nil || len(hosts) == 0 {
		return err
	}
	hash, err := c.Hash()
	if err != nil {
		return err
	}
	measured := tick.CopiedAt
	if measured.IsZero() {
		measured = old.Created
	}
	for i := range hosts {
		h := &hosts[i]
		p := polite.NewPace()
		p.Remember(h.Conn, h.Resp, h.PerConnection, c.Created.Sub(measured))
		*h = blobschema.HostObservation{Host: h.Host, Slot: hash.Slot(h.Host), Conn: p.ConnTime, Resp: p.RespTime, PerConnection: p.PerConnection}
	}
	slices.SortFunc(hosts, func(a, b blobschema.HostObservation) int { // neighbours compress well
		return cmp.Or(cmp.Compare(a.Slot, b.Slot), strings.Compare(a.Host, b.Host))
	})
	data, err := blobschema.EncodeKnownHosts(hosts)
	if err != nil {
		return err
	}
	c.Settings.KnownHosts = naming.Ranks(c.ID, data)
	return t.Put(c.Settings.KnownHosts, data)
}

// measuredHosts returns the hosts of a crawl that have answered, those with most requests if there are more than
// [blobschema.MaxKnownHosts].
func measuredHosts(t *actor.Task, c *blobschema.Crawl) ([]blobschema.HostObservation, error) {
	heads, err := allHeads(t, c)
	if err != nil {
		return nil, err
	}
	read := func(key string, to *HostPack) (bool, error) {
		rec, err := t.Record(key)
		if err != nil || !rec.Found {
			return false, err
		}
		return true, rec.Into(to, "pack of hosts")
	}
	all := map[string]blobschema.HostObservation{}
	best := func() []blobschema.HostObservation {
		list := slices.SortedFunc(maps.Values(all), func(a, b blobschema.HostObservation) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Host, b.Host))
		})
		return list[:min(len(list), blobschema.MaxKnownHosts)]
	}
	left := knownPacks
	for _, h := range heads {
		if h == nil || left <= 0 {
			continue
		}
		hosts, packs, err := ReadHosts(read, c.ID, h, left)
		if err != nil {
			return nil, err
		}
		left -= packs
		for name, rec := range hosts {
			// A host whose slot moved is in the packs of several partitions. The last one has counted on.
			if rec.Resp > 0 && rec.Requests > all[name].Requests {
				rec.Host = name
				all[name] = rec.HostObservation
			}
		}
		if len(all) > 2*blobschema.MaxKnownHosts {
			list := best()
			clear(all)
			for _, o := range list {
				all[o.Host] = o
			}
		}
	}
	return best(), nil
}

// allHeads reads the heads of all partitions that a crawl has had; nil for one without a step.
func allHeads(t *actor.Task, c *blobschema.Crawl) ([]*blobschema.Head, error) {
	rec, err := t.Record(naming.MapKey(c.ID))
	if err != nil {
		return nil, err
	}
	m, err := mapRecord(c, rec)
	if err != nil {
		return nil, err
	}
	return readHeads(t, c.ID, partition.All(m.Partitions)...)
}

// ReadHosts reads at most a number of the packs of a partition. read reads a pack, and returns false if there is none. If
// the number of packs has changed, a host may be in two; the record of the later commit counts. Packs beyond the current
// number are read until a doubling finds none. ReadHosts returns the number of packs that it looked for.
func ReadHosts(read func(key string, to *HostPack) (bool, error), crawl string, h *blobschema.Head, most int) (map[string]HostRecord, int, error) {
	hosts := map[string]HostRecord{}
	now := HostPacks(h.Totals.Hosts)
	for first, end := 0, now; ; first, end = end, 2*end {
		found := false
		for n := first; n < end; n++ {
			if n >= most {
				return hosts, n, nil
			}
			var pack HostPack
			ok, err := read(naming.HostsKey(crawl, h.Partition, n), &pack)
			if err != nil {
				return nil, n, fmt.Errorf("host estimates of partition %d: %w", h.Partition, err)
			}
			found = found || ok
			for host, rec := range pack.Hosts {
				if old, ok := hosts[host]; !ok || rec.Commit > old.Commit {
					hosts[host] = rec
				}
			}
		}
		if first >= now && !found {
			return hosts, end, nil
		}
	}
}

// know reads the states in which hosts of the partition's slots begin, if the crawl knows any. It keeps those of slots that the
// partition holds now: a slot that arrives later brings the states of the hosts that were met, and others begin as unknown ones.
func (st *state) know(t *actor.Task) error {
	name := st.cfg.Crawl.Settings.KnownHosts
	if name == "" {
		return nil
	}
	data, err := t.Object(name, 0, -1)
	if err != nil {
		return err
	}
	hosts, err := t.Do(actor.Work{Do: func() (any, error) { return blobschema.DecodeKnownHosts(data) }})
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, o := range hosts.([]blobschema.HostObservation) {
		if int(o.Slot) < st.cfg.Crawl.Slots && st.ter.holding.Holds(o.Slot) {
			p := polite.NewPace()
			p.Remember(o.Conn, o.Resp, o.PerConnection, 0)
			st.known[o.Host] = p
		}
	}
	return nil
}
