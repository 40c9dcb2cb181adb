package fsck_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

// TestSome checks all partitions of crawls one by one, and all slots in two parts.
func TestSome(t *testing.T) {
	for name, m := range map[string]*memory{
		"whole": mustCrawl(t, crawled), "limited": mustCrawl(t, cut), "recrawled": mustCrawl(t, again), "by IP": mustCrawl(t, addresses),
		"repartitioned": mustCrawl(t, repartitioned), "moved": moved(t).memory,
	} {
		whole := check(t, m, fsck.Options{})
		var urls, pending int64
		sum := func(rep fsck.Report, what string) {
			for _, v := range rep.Violations {
				t.Errorf("%s, %s: %v", name, what, v)
			}
			if rep.Read.Bytes >= whole.Read.Bytes || len(rep.NotChecked) == 0 {
				t.Errorf("%s, %s: %d of %d bytes are read; %v", name, what, rep.Read.Bytes, whole.Read.Bytes, rep.NotChecked)
			}
			urls, pending = urls+rep.URLs, pending+rep.Pending
		}
		for p := range partition.ID(whole.Partitions) {
			sum(check(t, m, fsck.Options{Partition: &p}), fmt.Sprint("partition ", p))
		}
		var parts [2]partition.Slots
		for s := range partition.Slot(slots) {
			parts[s/7%2] = append(parts[s/7%2], s)
		}
		sum(check(t, m, fsck.Options{Slots: parts[0]}), "first slots")
		sum(check(t, m, fsck.Options{Slots: parts[1]}), "other slots")
		if urls != 2*whole.URLs || pending != 2*whole.Pending {
			t.Errorf("%s: twice %d URLs, %d pending, are %d and %d one by one", name, whole.URLs, whole.Pending, urls, pending)
		}
	}
}

// TestSomeFinds: damage is found where it is, and not elsewhere.
func TestSomeFinds(t *testing.T) {
	for _, tt := range []struct {
		name, invariant, says string
		at                    partition.ID // whose check finds it
		do                    func(*maker)
	}{
		{"page lost with the slot", "I7", "has no page record", 4, func(m *maker) {
			m.at(0, 1, func(c *blobschema.Commit) { c.Pages = c.Pages[:1] })
		}},
		{"origin elsewhere", "I7", "is not the commit with its record", 4, func(m *maker) {
			m.at(4, 3, func(c *blobschema.Commit) { c.State.Settled[0].Origin.Seq = 2 })
		}},
		{"summary", "I7", "its summary says", 2, func(m *maker) {
			m.manifest(2, func(man *blobschema.Manifest) { man.Slots[0].Known++ })
		}},
		{"total", "I7", "total of", 4, func(m *maker) {
			m.manifest(4, func(man *blobschema.Manifest) { man.Totals.Robots++ })
		}},
		{"commit missing", "I6", "does not exist", 4, func(m *maker) { delete(m.objects, naming.Commit(crawlID, 4, 1, 1)) }},
		{"run damaged", "I6", "", 2, func(m *maker) { m.flip(m.head(2).Commit, 40) }},
		{"WARC missing", "I6", "does not exist", 4, func(m *maker) {
			delete(m.objects, m.hand.commit(naming.Commit(crawlID, 4, 3, 1)).Manifest.WARCs[0])
		}},
	} {
		m := moved(t)
		tt.do(m)
		rep := check(t, m.memory, fsck.Options{Partition: &tt.at})
		if !slices.ContainsFunc(rep.Violations, func(v fsck.Violation) bool {
			return v.Invariant == tt.invariant && strings.Contains(v.What, tt.says)
		}) {
			t.Errorf("%s: found %v", tt.name, rep.Violations)
		}
		other := partition.ID(3)
		if rep := check(t, m.memory, fsck.Options{Partition: &other}); slices.ContainsFunc(rep.Violations, func(v fsck.Violation) bool {
			return tt.invariant == "I7" && v.Invariant == "I7" && strings.Contains(v.What, tt.says)
		}) {
			t.Errorf("%s: partition 3 has it: %v", tt.name, rep.Violations)
		}
	}
}

func TestSomeOfNothing(t *testing.T) {
	none := partition.ID(9)
	for _, opt := range []fsck.Options{{Partition: &none}, {Slots: partition.Slots{3, 64}}} {
		if _, err := fsck.Check(t.Context(), moved(t).memory, opt); !errors.Is(err, fsck.ErrScope) {
			t.Errorf("error %v", err)
		}
	}
}
