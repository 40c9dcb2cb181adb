package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestTopics checks that rows with one name are one topic, and that other URLs have no topic.
func TestTopics(t *testing.T) {
	now := time.Now().UTC()
	s := view.Status{
		Crawl: blobschema.Crawl{Settings: blobschema.Settings{Topics: []blobschema.Topic{
			{Name: "a", Priority: 3, Minimum: 10}, {Name: "b", Slice: time.Minute, Priority: 9, Minimum: 5, Period: time.Hour}, {Name: "b", Slice: time.Minute, Minimum: 5, Period: time.Hour},
		}}},
		Desired: blobschema.DesiredState{Slices: map[uint8]time.Duration{2: time.Second, 3: time.Second}},
		Tick:    blobschema.TickRecord{Topics: map[string]blobschema.TopicPeriod{"a": {Since: now.Add(-25 * time.Hour), Pages: 1}, "b": {Since: now.Add(-time.Minute), Pages: 2}}},
		Totals: blobschema.Totals{Pages: 100, Pending: 50, Unexamined: 10, Bytes: 1000, Topics: map[uint8]blobschema.TopicTotals{
			1: {Pages: 10, Pending: 5, Bytes: 100}, 2: {Pages: 3, Pending: 2, Bytes: 30}, 3: {Pages: 4, Pending: 1, Bytes: 40},
		}},
	}
	want := []view.TopicStatus{
		{Name: "a", Numbers: []uint8{1}, Priorities: []int{3}, Slice: blobschema.DefaultSlice, Minimum: 10, Period: blobschema.DefaultPeriod,
			Totals: blobschema.TopicTotals{Pages: 10, Pending: 5, Bytes: 100}},
		{Name: "b", Numbers: []uint8{2, 3}, Priorities: []int{9, 0}, Slice: time.Minute, Shrunk: time.Second, Minimum: 5, Period: time.Hour,
			Had: 5, Until: now.Add(59 * time.Minute), Totals: blobschema.TopicTotals{Pages: 7, Pending: 3, Bytes: 70}},
		{Numbers: []uint8{0}, Totals: blobschema.TopicTotals{Pages: 83, Pending: 52, Bytes: 830}},
	}
	if d := cmp.Diff(want, s.Topics()); d != "" {
		t.Error(d)
	}
	set := &s.Crawl.Settings
	for number, name := range []string{"", "a", "b", "b", ""} {
		if got := view.TopicName(set, uint8(number)); got != name {
			t.Errorf("topic %d is called %q", number, got)
		}
	}
	if d := cmp.Diff([]uint8{2, 3}, view.TopicNumbers(set, "b")); d != "" {
		t.Error(d)
	}
}
