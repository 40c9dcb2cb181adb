package view_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestTopics: rows of one name are one topic, and what is in none of them is in none.
func TestTopics(t *testing.T) {
	now := time.Now().UTC()
	s := view.Status{
		Crawl: blobschema.Crawl{Settings: blobschema.Settings{Topics: []blobschema.Topic{
			{Name: "a", Priority: 3, Minimum: 10}, {Name: "b", Slice: time.Minute, Priority: 9, Minimum: 5, Period: time.Hour}, {Name: "b", Slice: time.Minute, Minimum: 5, Period: time.Hour},
		}}},
		Wish: blobschema.Wish{Slices: map[uint8]time.Duration{2: time.Second, 3: time.Second}},
		Tick: blobschema.TickRecord{Topics: map[string]blobschema.TopicPeriod{"a": {Since: now.Add(-25 * time.Hour), Pages: 1}, "b": {Since: now.Add(-time.Minute), Pages: 2}}},
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

// TestChangeTopic has a folder's owner change a topic.
func TestChangeTopic(t *testing.T) {
	var asked []view.Topic
	var refuse error
	f := newOwned(t, view.Owner{
		ChangeTopic: func(_ context.Context, name string, c crawl.TopicChange) (blobschema.Topic, bool, error) {
			asked = append(asked, view.Topic{Name: name, TopicChange: c})
			return blobschema.Topic{Name: name, Priority: 7}, true, refuse
		},
	})
	v := f.view
	slice := time.Second
	change := crawl.TopicChange{Slice: &slice}
	now, changed, err := v.ChangeTopic(t.Context(), "a", change)
	if err != nil || !changed || now.Name != "a" || now.Priority != 7 {
		t.Errorf("%v %v %+v", err, changed, now)
	}
	if d := cmp.Diff([]view.Topic{{Name: "a", TopicChange: change}}, asked); d != "" {
		t.Error(d)
	}
	for _, want := range []error{crawl.ErrNoTopic, crawl.ErrPriorities, view.ErrNoOwner} {
		refuse = want
		if _, _, err := v.ChangeTopic(t.Context(), "a", change); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	asked = nil
	f.refuses("/topics", map[string]string{
		"no JSON": "a", "nothing": "", "an unknown field": `{"topic": "a", "scope": "any"}`, "two values": `{"topic": "a"} {}`,
		"no number": `{"topic": "a", "priority": "high"}`, "too much": `{"topic": "` + strings.Repeat("x", 1<<20) + `"}`,
	})
	if len(asked) > 0 {
		t.Errorf("the owner was asked for %+v", asked)
	}
	f.leave()
	if _, _, err := v.ChangeTopic(t.Context(), "a", change); !errors.Is(err, view.ErrNoOwner) {
		t.Errorf("without an owner: %v", err)
	}
}
