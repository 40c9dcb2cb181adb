package crawl

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/partition"
)

// TestCare: after too many crashes one URL is requested at a time, and the manifest names it until its request has ended.
func TestCare(t *testing.T) {
	var c care
	if c.resume(&blobschema.Manifest{}, 2, 2); c.left != 0 || !c.allows(63) {
		t.Errorf("careful after two crashes: %+v", c)
	}
	c.resume(&blobschema.Manifest{Suspects: []string{"b", "a", "b"}}, 3, 2)
	if c.left != carefulRequests || c.alarms != 1 || !c.allows(0) || c.allows(1) || c.refuses("b") {
		t.Errorf("after three crashes: %+v", c)
	}
	c.suspect = &schedule.Task{Request: actor.Request{URL: parseURL(t, "https://a.example/")}}
	var man blobschema.Manifest
	if c.record(&man); !slices.Equal(man.Suspects, []string{"a", "b", "b", "https://a.example/"}) || man.Careful != carefulRequests || man.Alarms != 1 {
		t.Errorf("the manifest says %+v", man)
	}
	if !c.commits() || c.allows(0) || c.release() == nil || c.release() != nil || c.commits() {
		t.Error("a suspect waits for its commit, once")
	}
	if c.done("b"); c.left != carefulRequests-1 || !c.commits() || c.crashes["b"] != 0 {
		t.Errorf("after a request that ended: %+v", c)
	}
	var next care
	next.resume(&blobschema.Manifest{Alarms: 1, Suspects: slices.Repeat([]string{"x"}, suspectCrashes)}, 3, 2)
	if next.left != 4*carefulRequests || !next.refuses("x") {
		t.Errorf("the second alarm: %+v", next)
	}
}

// TestBuffers checks that links go into mail or, each once, into commits, from which they are restored.
func TestBuffers(t *testing.T) {
	b, all := buffers{}, func(partition.ID, int) bool { return true }
	commit := func(seq uint64, flush func(partition.ID, int) bool) (*blobschema.Commit, map[partition.ID][]blobschema.Queued) {
		c := &blobschema.Commit{Manifest: blobschema.Manifest{Seq: seq, BufferedFrom: map[partition.ID]uint64{}}}
		return c, b.take(c, flush)
	}
	link := func(url string) blobschema.Queued { return blobschema.Queued{URL: url} }
	restored := buffers{}
	for seq, url := range []string{"a", "b"} {
		b.of(1).links = append(b.of(1).links, link(url))
		c, mail := commit(uint64(seq+5), func(partition.ID, int) bool { return false })
		if d := cmp.Diff([]blobschema.Queued{link(url)}, c.Buffered[1]); d != "" || len(mail) > 0 || c.Manifest.BufferedFrom[1] != 5 || c.Manifest.Totals.Buffered != int64(seq+1) {
			t.Errorf("commit %d: mail %v, manifest %+v, held (-want +got):\n%s", seq+5, mail, c.Manifest, d)
		}
		restored.restore(uint64(seq+5), c.Buffered, map[partition.ID]uint64{1: 5})
	}
	if d := cmp.Diff(b, restored, cmp.AllowUnexported(buffer{})); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	c, mail := commit(7, all)
	if len(mail[1]) != 2 || len(c.Buffered)+len(c.Manifest.BufferedFrom) > 0 || b.links() != 0 {
		t.Errorf("mail %v, left %v", mail, b)
	}
}

// TestInboxWaits checks that mail that waits for slots of other partitions keeps no step running.
func TestInboxWaits(t *testing.T) {
	in, ter := newInbox(), &territory{awaited: map[partition.Slot]partition.Epoch{7: 2}}
	for _, k := range []struct {
		slot partition.Slot
		want int
	}{{3, 1}, {7, 1}} {
		in.requests[string(rune('a'+k.slot))] = true
		in.waiting[k.slot]++
		if got := in.asking(ter); got != k.want {
			t.Errorf("with slot %d: %d are waited for", k.slot, got)
		}
	}
}
