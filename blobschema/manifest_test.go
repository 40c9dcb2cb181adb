package blobschema

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

func TestCommitNames(t *testing.T) {
	m := Manifest{Crawl: "c", Partition: partition.ID(7), Seq: 6, Fence: 4, Commits: []CommitRange{{2, 1, 3}, {3, 5, 5}}}
	want := []string{
		"c/p00007/c0000000001-f00000002", "c/p00007/c0000000002-f00000002", "c/p00007/c0000000003-f00000002",
		"c/p00007/c0000000005-f00000003", "c/p00007/c0000000006-f00000004",
	}
	if diff := cmp.Diff(want, slices.Collect(CommitNames(&m))); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for _, name := range want {
		if _, seq, _, err := naming.ParseCommit(name); err != nil || CommitOf(&m, seq) != name {
			t.Errorf("CommitOf(%d) = %q, want %s", seq, CommitOf(&m, seq), name)
		}
	}
	for _, seq := range []uint64{0, 4, 7} {
		if name := CommitOf(&m, seq); name != "" {
			t.Errorf("CommitOf(%d) = %s", seq, name)
		}
	}
	for name := range CommitNames(&m) {
		if name != want[0] {
			t.Errorf("went on to %s after the loop ended", name)
		}
		break
	}
	// Impossible ranges end too.
	m.Commits = []CommitRange{{1, 5, math.MaxUint64}}
	if n := len(slices.Collect(CommitNames(&m))); n != 2 {
		t.Errorf("%d names of a range without end", n)
	}
}
