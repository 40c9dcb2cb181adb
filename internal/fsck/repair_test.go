package fsck_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

// mendable is a memory that is a fsck.RepairStore.
type mendable struct {
	*memory
	modified map[string]time.Time
	second   func() // called when the second check begins
	lists    int
}

// List adds the times of modified to the objects.
func (m *mendable) List(ctx context.Context, prefix string) iter.Seq2[blobschema.StoredObject, error] {
	return func(yield func(blobschema.StoredObject, error) bool) {
		for o, err := range m.memory.List(ctx, prefix) {
			o.Time = m.modified[o.Name]
			if !yield(o, err) {
				return
			}
		}
	}
}

func (m *mendable) Delete(_ context.Context, name string) error {
	delete(m.objects, name)
	return nil
}

func (m *mendable) Records(ctx context.Context, keys ...string) ([][]byte, error) {
	if keys[0] == naming.ActiveKey {
		if m.lists++; m.lists == 2 && m.second != nil {
			m.second()
		}
	}
	return m.memory.Records(ctx, keys...)
}

// littered is the crawl moved with objects that crashes left. why maps the name of each to
// "goes", or to the reason why Repair keeps it.
func littered(t *testing.T) (m *maker, s *mendable, why map[string]string, target string) {
	var data []byte
	m = moved(t)
	for p := range m.heads {
		if m.heads[p] != nil {
			m.headOf(partition.ID(p), func(h *blobschema.Head) { h.Fence = 3 })
		}
	}
	why = map[string]string{
		naming.Commit(crawlID, 1, 7, 2):              "goes",
		naming.Run(crawlID, 1, 7, 2, 1):              "goes",
		naming.WARC(crawlID, 1, 2, 9, true):          "goes",
		crawlID + "/maps/e00000009-0123456789abcdef": "goes",
		crawlID + "/seeds/0123456789ab":              "goes",
		naming.Commit(crawlID, 1, 7, 3):              "of the fence of the head",
		naming.WARC(crawlID, 1, 4, 1, true):          "of a later fence",
		naming.Commit(crawlID, 77, 1, 1):             "of no partition",
		crawlID + "/something/else":                  "unknown",
		naming.WARC(crawlID, 1, 2, 10, true):         "young",
		naming.WARC(crawlID, 1, 2, 11, true):         "of unknown age",
	}
	next, err := m.chart.Apply(nil)
	if err != nil {
		t.Fatal(err)
	}
	target, data, err = blobschema.MapObjectName(crawlID, next)
	if err != nil {
		t.Fatal(err)
	}
	m.objects[target] = data
	s = &mendable{memory: m.memory, modified: map[string]time.Time{}}
	for name := range m.objects {
		s.modified[name] = m.now.Add(-5 * time.Hour)
	}
	for name, what := range why {
		m.objects[name] = []byte("half a")
		switch what {
		case "young":
			s.modified[name] = m.now.Add(-59 * time.Minute)
		case "of unknown age":
		default:
			s.modified[name] = m.now.Add(-2 * time.Hour)
		}
	}
	return m, s, why, target
}

func TestRepair(t *testing.T) {
	m, s, why, target := littered(t)
	before := maps.Clone(m.objects)
	opt := fsck.RepairOptions{Options: fsck.Options{Time: m.now}, DryRun: true}
	plan, err := fsck.Repair(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.objects) != len(before) {
		t.Error("a dry run deletes objects")
	}
	opt.DryRun = false
	s.lists = 0
	s.second = func() { // the desired map changes to one stored just before
		m.record(func(r *blobschema.MapRecord) { r.Target = target })
	}
	did, err := fsck.Repair(t.Context(), s, opt)
	if err != nil {
		t.Fatal(err, did.Report.Violations)
	}
	var gone []string
	for _, r := range did.Deleted {
		gone = append(gone, r.Object)
		if why[r.Object] != "goes" {
			t.Errorf("deleted %s (%s), which is %q", r.Object, r.Why, why[r.Object])
		}
		if _, there := m.objects[r.Object]; there {
			t.Errorf("%s is still there", r.Object)
		}
	}
	for name, what := range why {
		if what == "goes" && !slices.Contains(gone, name) {
			t.Errorf("%s is not deleted", name)
		}
	}
	if len(plan.Deleted) != len(did.Deleted)+1 || len(did.Kept) != 6 {
		t.Errorf("planned %v, deleted %v, kept %v", plan.Deleted, did.Deleted, did.Kept)
	}
	if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() || rep.Orphans != 6 {
		t.Errorf("after a repair: %+v", rep)
	}
}

// TestRepairDropped checks that a run that was merged into another is deleted after the grace period.
func TestRepairDropped(t *testing.T) {
	m := recrawled(t)
	name := naming.Run(crawlID, 0, 2, 1, 1)
	m.objects[name] = []byte("a run")
	m.parts[0].man.Dropped = []string{name}
	m.commit(0, blobschema.Commit{})
	s := &mendable{memory: m.memory, modified: map[string]time.Time{name: m.now.Add(-9 * time.Hour)}}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{time.Minute, 0}, {2 * time.Hour, 1}} {
		did, err := fsck.Repair(t.Context(), s, fsck.RepairOptions{Options: fsck.Options{Time: m.now.Add(tt.after)}, DryRun: true})
		if err != nil || len(did.Deleted) != tt.want {
			t.Errorf("after %v: deleted %v, kept %v, error %v", tt.after, did.Deleted, did.Kept, err)
		}
	}
}

func TestRepairRefuses(t *testing.T) {
	m, s, _, _ := littered(t)
	m.totals(func(t *blobschema.Totals) { t.Robots++ })
	before := maps.Clone(m.objects)
	did, err := fsck.Repair(t.Context(), s, fsck.RepairOptions{Options: fsck.Options{Time: m.now}})
	if !errors.Is(err, fsck.ErrViolations) || did.Report.Clean() || len(m.objects) != len(before) {
		t.Errorf("error %v, %v", err, did)
	}
}
