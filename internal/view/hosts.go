package view

import (
	"context"
	"iter"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/partition"
)

// Host is a host, or another unit of pacing, as its partition's state has it.
type Host struct {
	Name      string
	Slot      partition.Slot
	Partition partition.ID
	Pending   int64
	Info      frontier.HostInfo // zero for a host never asked
}

// Hosts yields all hosts that were asked or are to be, in no order. It holds the
// state of one partition in memory at a time. An error ends it.
func (v *View) Hosts(ctx context.Context) iter.Seq2[Host, error] {
	return func(yield func(Host, error) bool) {
		regions, err := v.regions(ctx)
		if err != nil {
			yield(Host{}, err)
			return
		}
		for _, r := range regions {
			run, err := v.state(ctx, r.runs(), r.slots)
			if err != nil {
				yield(Host{}, err)
				return
			}
			hosts, err := hostsIn(run, r.at.id)
			if err != nil {
				yield(Host{}, err)
				return
			}
			for _, h := range hosts {
				if !yield(*h, nil) {
					return
				}
			}
		}
	}
}

// hostsIn gathers the units of a joined run.
func hostsIn(run *blobschema.Run, p partition.ID) (map[string]*Host, error) {
	hosts := map[string]*Host{}
	for i := range run.Hosts {
		s := &run.Hosts[i]
		if _, site := frontier.SplitSite(s.Host); site != "" {
			continue
		}
		info, err := decodeHost(s)
		if err != nil {
			return nil, err
		}
		hosts[s.Host] = &Host{Name: s.Host, Slot: s.Slot, Partition: p, Info: info}
	}
	for i := range run.Queued {
		q := &run.Queued[i]
		h := hosts[q.Host]
		if h == nil {
			h = &Host{Name: q.Host, Slot: q.Slot, Partition: p}
			hosts[q.Host] = h
		}
		h.Pending++
	}
	return hosts, nil
}

// readRun appends what a run says of some slots: its index, and one range of blocks.
func (v *View) readRun(ctx context.Context, ref blobschema.RunRef, first, last partition.Slot, into *blobschema.Run) error {
	data, err := v.store.Object(ctx, ref.Object, ref.Offset+ref.Index, ref.Length-ref.Index)
	if err != nil {
		return err
	}
	ix, err := blobschema.OpenRun(data, ref)
	if err != nil {
		return err
	}
	at, length := ix.Range(first, last)
	if length == 0 {
		return nil
	}
	if data, err = v.store.Object(ctx, ref.Object, ref.Offset+at, length); err != nil {
		return err
	}
	for _, b := range ix.Blocks(first, last) {
		if err := blobschema.DecodeBlock(data[b.Offset-at:][:b.Length], b, into, first, last); err != nil {
			return err
		}
	}
	return nil
}
