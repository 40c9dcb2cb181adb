package view

import (
	"context"
	"fmt"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// slotState is a slot with URLs of a host, and its state.
type slotState struct {
	Location
	run     *blobschema.Run   // state of the slot
	info    schedule.HostInfo // of the politeness key; zero if it was never requested
	site    schedule.HostInfo // of the host itself, which may be all of the politeness key
	pending int64             // URLs of the politeness key
}

// slotStates returns the places of a host; the last one requests its URLs. A crawl by address has
// two: the slot of the name resolves the address, and forwards the URLs to its slot.
func (v *View) slotStates(ctx context.Context, h weburl.Host) ([]*slotState, error) {
	key, placed := v.by.Key(string(h))
	p, err := v.slotState(ctx, key, h)
	if err != nil || v.by != blobschema.ByIP || placed || !p.info.Addr.IsValid() {
		return []*slotState{p}, err
	}
	q, err := v.slotState(ctx, blobschema.AddressKey(p.info.Addr), h)
	return []*slotState{p, q}, err
}

func (v *View) slotState(ctx context.Context, key string, h weburl.Host) (*slotState, error) {
	slot := v.hash.Slot(key)
	regions, err := v.regions(ctx, partition.Slots{slot})
	if err != nil {
		return nil, err
	}
	at := regions[0]
	p := &slotState{Location: Location{string(h), key, slot, at.at.id, at.move()}}
	if p.run, err = v.state(ctx, at.runs(), partition.Slots{slot}); err != nil {
		return nil, err
	}
	for i := range p.run.Keys {
		s := &p.run.Keys[i]
		of, site := schedule.SplitSite(s.Key)
		if of != key || site != "" && site != string(h) {
			continue
		}
		info, err := schedule.DecodeHost(s.Data)
		if err != nil {
			return nil, fmt.Errorf("host %s: %w", s.Key, err)
		}
		if site == "" {
			p.info = info
		}
		if site == string(h) || key == string(h) {
			p.site = info
		}
	}
	for i := range p.run.Queued {
		if p.run.Queued[i].Key == key {
			p.pending++
		}
	}
	return p, nil
}

// pendingOf counts the pending URLs of a host.
func (p *slotState) pendingOf(h weburl.Host) (n int64) {
	for i := range p.run.Queued {
		q := &p.run.Queued[i]
		if q.Key != p.Key {
			continue
		}
		if u, err := weburl.Parse(q.URL); err == nil && u.Host() == h {
			n++
		}
	}
	return n
}

// sites lists the hosts of the politeness key that were requested, except one.
func (p *slotState) sites(but weburl.Host) (names []string) {
	for i := range p.run.Keys {
		key, site := schedule.SplitSite(p.run.Keys[i].Key)
		if key == p.Key && site != "" && site != string(but) {
			names = append(names, site)
		}
	}
	return names
}

// robots returns the robots.txt that applies to a URL.
func (p *slotState) robots(u weburl.URL) *schedule.RobotsInfo {
	if u.Scheme() == "https" {
		return &p.site.HTTPS
	}
	return &p.site.HTTP
}

// partitions returns the partitions that may have page records of a URL; nil stands for all.
func (v *View) partitions(ctx context.Context, u weburl.URL) ([]partition.ID, error) {
	// The partition of another host may have requested a robots.txt, and stores its record.
	if u.Path() == "/robots.txt" {
		return nil, nil
	}
	if key, placed := v.by.Key(string(u.Host())); v.by != blobschema.ByIP || placed {
		return v.held(ctx, v.hash.Slot(key))
	}
	places, err := v.slotStates(ctx, u.Host())
	if err != nil {
		return nil, err
	}
	var out []partition.ID
	for _, p := range places {
		held, err := v.held(ctx, p.Slot)
		if err != nil {
			return nil, err
		}
		out = append(out, held...)
	}
	return out, nil // may repeat
}

// History returns all page records of a URL, the latest first. It reads the commits of the
// partitions that held its slot, mostly one.
func (v *View) History(ctx context.Context, u weburl.URL) ([]blobschema.Page, error) {
	partitions, err := v.partitions(ctx, u)
	if err != nil {
		return nil, err
	}
	var list []blobschema.Page
	for p, err := range v.PagesSince(ctx, partitions, nil) {
		if err != nil {
			return nil, err
		}
		if p.URL != u.String() {
			continue
		}
		at := len(list)
		for at > 0 && newer(p, list[at-1]) {
			at--
		}
		list = slices.Insert(list, at, p)
	}
	return list, nil
}

// Latest returns the latest page record of a URL by the state of its slot, or nil if the URL was never settled.
// Unlike History, it reads one slot and one commit.
func (v *View) Latest(ctx context.Context, u weburl.URL) (*blobschema.Page, error) {
	places, err := v.slotStates(ctx, u.Host())
	if err != nil {
		return nil, err
	}
	ref := places[len(places)-1].record(u, v.hash.Fingerprint(u.String()))
	if ref.Seq == 0 {
		return nil, nil
	}
	parts, err := v.parts(ctx, []partition.ID{ref.Partition})
	if err != nil {
		return nil, err
	}
	commit := blobschema.CommitOf(&parts[ref.Partition].Manifest, uint64(ref.Seq))
	if commit == "" {
		return nil, nil
	}
	c, err := blobschema.ReadCommit(blobschema.GetFrom(ctx, v.store), commit)
	if err != nil {
		return nil, err
	}
	pages, err := c.Pages()
	if err != nil {
		return nil, fmt.Errorf("pages of %s: %w", commit, err)
	}
	var latest *blobschema.Page
	for i := range pages {
		if p := &pages[i]; p.URL == u.String() && !p.Robots && (latest == nil || newer(*p, *latest)) {
			latest = p
		}
	}
	return latest, nil
}

// record returns the reference of the latest page record of a URL; zero if there is none. A URL that waits for a revisit is
// queued, not settled.
func (p *slotState) record(u weburl.URL, fp uint64) (ref blobschema.RecordRef) {
	for _, s := range p.run.Settled {
		if s.Fingerprint == fp && s.Slot == p.Slot && s.State != blobschema.Forwarded {
			ref = s.Record
		}
	}
	for i := range p.run.Queued {
		if q := &p.run.Queued[i]; q.URL == u.String() {
			ref = q.Previous
		}
	}
	return ref
}
