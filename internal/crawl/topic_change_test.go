package crawl

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// topical creates a crawl of two topics, the second with two priorities.
func topical(t *testing.T) *world {
	c := newCrawl(1)
	c.Settings.Topics = []blobschema.Topic{
		{Name: "news", Priority: 10, MaxDepth: -1, Scope: blobschema.ScopeHost},
		{Name: "sport", Priority: 5, MaxDepth: -1, Scope: blobschema.ScopeHost},
		{Name: "sport", Priority: 50, MaxDepth: -1, Scope: blobschema.ScopeHost},
	}
	w := newWorld(t)
	list := urls(t, "https://a.example/", "https://b.example/", "https://c.example/")
	if _, err := w.run(NewBegin(c, []Seed{{URL: list[0], Topic: 1}, {URL: list[1], Topic: 3}, {URL: list[2], Topic: 0}}, nil)); err != nil {
		t.Fatal(err)
	}
	return w
}

// seedTopics returns the topics of the seeds in the crawl's batches.
func seedTopics(t *testing.T, w *world) map[string]uint8 {
	t.Helper()
	var c blobschema.Crawl
	w.record(naming.CrawlKey("test"), &c)
	out := map[string]uint8{}
	for _, name := range c.SeedBatches {
		b, err := blobschema.DecodeSeeds(w.Objects[name])
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range b.URLs {
			out[q.URL] = q.Topic
		}
	}
	return out
}

// TestSeedsOfTopics checks that a seed keeps its first topic, and that steps learn of changed settings.
func TestSeedsOfTopics(t *testing.T) {
	w := topical(t)
	want := map[string]uint8{"https://a.example/": 1, "https://b.example/": 3, "https://c.example/": 0}
	if d := cmp.Diff(want, seedTopics(t, w)); d != "" {
		t.Error(d)
	}
	version := func() uint64 {
		var desired blobschema.DesiredState
		if _, ok := w.Table[naming.DesiredKey("test")]; ok {
			w.record(naming.DesiredKey("test"), &desired)
		}
		return desired.Version
	}
	seeds := Seeds(urls(t, "https://a.example/", "https://d.example/"))
	b := NewBegin(blobschema.Crawl{}, seeds, func(c *blobschema.Crawl) error {
		c.Settings.Topics = append(slices.Clone(c.Settings.Topics), blobschema.Topic{Name: "new", MaxDepth: -1, Scope: blobschema.ScopeAny})
		seeds[0].Topic, seeds[1].Topic = 4, 4
		return nil
	})
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	want["https://d.example/"] = 4
	if d := cmp.Diff(want, seedTopics(t, w)); d != "" {
		t.Error(d)
	}
	for _, tt := range []struct {
		name   string
		change func(*blobschema.Settings)
		told   bool
	}{
		{"nothing", func(*blobschema.Settings) {}, false},
		{"a timeout", func(s *blobschema.Settings) { s.Timeout = time.Hour }, false},
		{"a topic", func(s *blobschema.Settings) { s.Topics[0].Priority++ }, true},
		{"a host", func(s *blobschema.Settings) { s.Hosts = []blobschema.HostRule{{Host: "a.example", Connections: 2}} }, true},
		{"queues", func(s *blobschema.Settings) { s.QueueBy, s.Queues = blobschema.QueueByBKDR, 4 }, true},
		{"recrawls", func(s *blobschema.Settings) { s.RecrawlPerHour = 4 }, true},
	} {
		before := version()
		if _, err := w.run(NewBegin(blobschema.Crawl{}, nil, func(c *blobschema.Crawl) error { tt.change(&c.Settings); return nil })); err != nil {
			t.Fatal(err)
		}
		if told := version() > before; told != tt.told {
			t.Errorf("%s: told %v", tt.name, told)
		}
	}
	if _, err := w.run(NewBegin(blobschema.Crawl{}, []Seed{{URL: urls(t, "https://e.example/")[0], Topic: 9}}, nil)); err == nil {
		t.Error("a seed of topic 9 was taken")
	}
}

// TestChangeTopicInDoubt checks that a write that was stored despite an error counts as a change.
func TestChangeTopicInDoubt(t *testing.T) {
	priority := 7
	for _, key := range []string{naming.CrawlKey("test"), naming.DesiredKey("test")} {
		for _, with := range []error{errLost, actor.ErrConflict} {
			t.Run(fmt.Sprintf("%s/%v", key, with), func(t *testing.T) {
				w := topical(t)
				w.fault = once(key, with)
				c := NewChangeTopic("test", "news", TopicChange{Priority: &priority})
				if _, err := w.run(c); err != nil {
					t.Fatal(err)
				}
				if now, changed := c.Topic(); !changed || now.Priority != 7 {
					t.Errorf("changed %v: %+v", changed, now)
				}
				var desired blobschema.DesiredState
				w.record(naming.DesiredKey("test"), &desired)
				if desired.Version != 1 {
					t.Errorf("the desired state has version %d", desired.Version)
				}
			})
		}
	}
}

func TestChangeTopic(t *testing.T) {
	number := func(n int) *int { return &n }
	span := func(d time.Duration) *time.Duration { return &d }
	pages := func(n int64) *int64 { return &n }
	for _, tt := range []struct {
		name    string
		topic   string
		change  TopicChange
		want    func(*blobschema.Topic) // applied to each row of the topic
		refused error
		says    string
	}{
		{"priority", "news", TopicChange{Priority: number(-7)}, func(r *blobschema.Topic) { r.Priority = -7 }, nil, ""},
		{"slice", "sport", TopicChange{Slice: span(time.Minute)}, func(r *blobschema.Topic) { r.Slice = time.Minute }, nil, ""},
		{"minimum", "sport", TopicChange{Minimum: pages(9), Period: span(time.Hour)}, func(r *blobschema.Topic) { r.Minimum, r.Period = 9, time.Hour }, nil, ""},
		{"as it is", "news", TopicChange{Priority: number(10)}, nil, nil, ""},
		{"no such topic", "sports", TopicChange{Priority: number(1)}, nil, ErrNoTopic, `topic "sports"`},
		{"priority of several", "sport", TopicChange{Priority: number(1)}, nil, ErrPriorities, `topic "sport"`},
		{"priority out of bounds", "news", TopicChange{Priority: number(101)}, nil, nil, "priority 101: it must be from -100 to 100"},
		{"slice out of bounds", "news", TopicChange{Slice: span(2 * time.Hour)}, nil, nil, "slice 2h0m0s"},
		{"minimum out of bounds", "news", TopicChange{Minimum: pages(-1)}, nil, nil, "minimum -1"},
		{"period out of bounds", "news", TopicChange{Period: span(-time.Hour)}, nil, nil, "period -1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := topical(t)
			w.Table[naming.DesiredKey("test")] = actor.Record{Found: true, Revision: -1, Value: actor.Encode(blobschema.DesiredState{
				Slices: map[uint8]time.Duration{1: time.Second, 2: time.Second, 3: time.Second},
			})}
			var want, got blobschema.Crawl
			w.record(naming.CrawlKey("test"), &want)
			news := tt.want != nil
			for i := range want.Settings.Topics {
				if r := &want.Settings.Topics[i]; news && r.Name == tt.topic {
					tt.want(r)
				}
			}
			c := NewChangeTopic("test", tt.topic, tt.change)
			_, err := w.run(c)
			if refused := tt.refused != nil || tt.says != ""; refused != (err != nil) || tt.refused != nil && !errors.Is(err, tt.refused) ||
				err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Fatalf("%v", err)
			}
			w.record(naming.CrawlKey("test"), &got)
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			now, changed := c.Topic()
			if changed != news || err == nil && now.Name != tt.topic {
				t.Errorf("changed %v: %+v", changed, now)
			}
			var desired blobschema.DesiredState
			w.record(naming.DesiredKey("test"), &desired)
			if told := desired.Version > 0; told != (err == nil) {
				t.Errorf("told %v", told)
			}
			if left := map[bool]int{false: 3, true: 1}[tt.name == "slice"]; len(desired.Slices) != left {
				t.Errorf("slices: %v", desired.Slices)
			}
		})
	}
}
