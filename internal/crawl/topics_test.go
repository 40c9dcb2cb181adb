package crawl

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// widened is a crawl of one topic that a step has worked on, and its record after another topic with a seed was added.
func widened(t *testing.T) (w *world, was, is blobschema.Crawl, warm *Warm) {
	t.Helper()
	was = newCrawl(1)
	was.Settings.Scope = blobschema.ScopeHost
	was.Settings.Topics = []blobschema.Topic{{Name: "a", MaxDepth: -1, Scope: blobschema.ScopeHost}}
	w = newWorld(t)
	var requests []actor.Request
	w.web = changing("", &requests)
	if _, err := w.run(NewBegin(was, []Seed{{URL: urls(t, "https://a.example/")[0], Topic: 1}}, nil)); err != nil {
		t.Fatal(err)
	}
	w.tick(was.ID)
	w.record(naming.CrawlKey(was.ID), &was)
	s, _ := w.step(StepConfig{Crawl: was, Process: "p"}, nil)
	b := NewBegin(blobschema.Crawl{}, []Seed{{URL: urls(t, "https://b.example/")[0], Topic: 2}}, func(c *blobschema.Crawl) error {
		c.Settings.Topics = append(c.Settings.Topics, blobschema.Topic{Name: "b", MaxDepth: -1, Scope: blobschema.ScopeHost})
		return nil
	})
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	is, _, _ = b.Crawl()
	return w, was, is, s.Warm()
}

// TestTopicsThatCome checks that the hosts of a new topic's seeds are in its scope and no other, whichever of record, mail
// and state is older.
func TestTopicsThatCome(t *testing.T) {
	host := weburl.Host("b.example")
	for name, try := range map[string]func(w *world, was, is blobschema.Crawl, warm *Warm) *Step{
		"warm, new record": func(w *world, _, is blobschema.Crawl, warm *Warm) *Step {
			s, _ := w.step(StepConfig{Crawl: is, Process: "p"}, warm)
			return s
		},
		"cold, old record": func(w *world, was, is blobschema.Crawl, _ *Warm) *Step {
			w.step(StepConfig{Crawl: is, Process: "p"}, nil)
			s, _ := w.step(StepConfig{Crawl: was, Process: "q"}, nil)
			return s
		},
		"warm, old record": func(w *world, was, is blobschema.Crawl, warm *Warm) *Step {
			s, _ := w.step(StepConfig{Crawl: is, Process: "p"}, warm)
			s, _ = w.step(StepConfig{Crawl: was, Process: "p"}, s.Warm())
			return s
		},
	} {
		for _, mailed := range []bool{false, true} {
			w, was, is, warm := widened(t)
			if mailed {
				w.tick(is.ID)
			}
			s := try(w, was, is, warm)
			if n := len(s.st.scopes); n != 3 || !s.st.scopes[2].host(host) || s.st.scopes[1].host(host) || s.st.scopes[0].host(host) {
				t.Errorf("%s, mailed %v: %d scopes", name, mailed, n)
				for i, sc := range s.st.scopes {
					t.Log(i, sc.names)
				}
			}
		}
	}
}

// TestMailOfNewTopic checks that mail for a topic that a step does not know waits until the step knows it.
func TestMailOfNewTopic(t *testing.T) {
	w, was, is, _ := widened(t)
	w.tick(is.ID) // its seed is mailed
	keys := []string{naming.DesiredKey(is.ID), naming.CrawlKey(is.ID)}
	now := []actor.Record{w.Table[keys[0]], w.Table[keys[1]]}
	delete(w.Table, keys[0])
	looks := 0
	w.fault = func(e actor.Effect) (before, after error) { // the step learns of it when it reads the orders for the second time
		if r, ok := e.(actor.ReadRecords); ok && slices.Contains(r.Keys, keys[0]) {
			if looks++; looks == 2 {
				w.Table[keys[0]], w.Table[keys[1]] = now[0], now[1]
			}
		}
		return nil, nil
	}
	s, _ := w.step(StepConfig{Crawl: was, Process: "p"}, nil)
	if own := s.st.scopes[0].names; looks < 2 || len(own) != 0 {
		t.Errorf("after %d looks at the desired state the crawl's own scope is %v", looks, own)
	}
	if n := s.st.totals.Topics[2].Pages; n != 1 {
		t.Errorf("%d pages of the new topic", n)
	}
}

// TestWarmSettings checks that a warm state is not used under other settings of its frontier.
func TestWarmSettings(t *testing.T) {
	var requests []actor.Request
	w, c, cfg := answeredOnce(t, 0, &requests)
	s, _ := w.step(cfg, nil)
	if stepOf(t, cfg, s.Warm()).st == nil {
		t.Error("the same settings: begun afresh")
	}
	cfg.Crawl.Settings.Topics = []blobschema.Topic{{Name: "a"}}
	if stepOf(t, cfg, s.Warm()).st == nil {
		t.Error("another topic: begun afresh")
	}
	cfg.Crawl = c
	cfg.Crawl.Settings.RecrawlPerHour = 0
	if stepOf(t, cfg, s.Warm()).st != nil {
		t.Error("another rate of recrawls: not begun afresh")
	}
}

func hashOf(t *testing.T, c blobschema.Crawl) partition.Hash {
	t.Helper()
	h, err := c.Hash()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// stepOf is NewStep without an error.
func stepOf(t *testing.T, cfg StepConfig, warm *Warm) *Step {
	t.Helper()
	s, err := NewStep(cfg, warm)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTopicsOfScheduler checks that the scheduler knows topics by number, with their current slices. Number 0 is for URLs
// without a topic.
func TestTopicsOfScheduler(t *testing.T) {
	s := &blobschema.Settings{Topics: []blobschema.Topic{{Name: "a", Priority: 5, Slice: time.Minute}, {Name: "b"}}}
	want := []schedule.Topic{{}, {Priority: 5, Slice: time.Second}, {Slice: 2 * time.Second}}
	if d := cmp.Diff(want, topics(s, map[uint8]time.Duration{1: time.Second, 2: 2 * time.Second, 3: time.Hour})); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]schedule.Topic{{}, {Priority: 5, Slice: time.Minute}, {}}, topics(s, nil)); d != "" {
		t.Error(d)
	}
}

// TestHostRules checks that an operator's rule applies to the politeness key of its host, and that the first rule of a key
// wins.
func TestHostRules(t *testing.T) {
	short := 100 * time.Millisecond
	s := &blobschema.Settings{Delay: time.Second, PartitionBy: blobschema.ByDomain, Hosts: []blobschema.HostRule{
		{Host: "no host"}, {Host: "www.a.example", Connections: 3}, {Host: "a.example", Connections: 9, Delay: &short}, {Host: "b.example", Delay: &short},
	}}
	want := map[string]schedule.HostRule{"a.example": {Connections: 3, Delay: time.Second}, "b.example": {Delay: short}}
	if d := cmp.Diff(want, HostRules(s)); d != "" {
		t.Error(d)
	}
	s.PartitionBy = blobschema.ByHost
	if n := len(HostRules(s)); n != 3 {
		t.Errorf("%d rules of three hosts", n)
	}
}

// TestRelevant checks that a link is relevant if its URL or anchor text has a word of its topic, ignoring case.
func TestRelevant(t *testing.T) {
	s := &state{cfg: &StepConfig{Crawl: blobschema.Crawl{Settings: blobschema.Settings{Topics: []blobschema.Topic{{Name: "a", Words: []string{"wine", "beer"}}, {Name: "b"}}}}}}
	for _, k := range []struct {
		topic  uint8
		url    string
		anchor string
		want   bool
	}{
		{1, "https://a.example/", "", false},
		{1, "https://a.example/Wine/1", "", true},
		{1, "https://a.example/", "all the BEERS", true},
		{0, "https://a.example/wine", "wine", false},
		{2, "https://a.example/wine", "wine", false}, // the topic has no words
		{3, "https://a.example/wine", "wine", false}, // the topic is unknown
	} {
		if got := s.relevant(k.topic, &actor.Link{URL: parseURL(t, k.url), Anchor: k.anchor}); got != k.want {
			t.Errorf("%+v: %v", k, got)
		}
	}
}

// TestScopesOfTopics checks that a requested URL belongs to the first topic whose scope contains it, else to none. Rows of
// one topic share a scope, and hosts stay in scope when settings change.
func TestScopesOfTopics(t *testing.T) {
	s := &blobschema.Settings{Scope: blobschema.ScopeHost, Topics: []blobschema.Topic{
		{Name: "a", Scope: blobschema.ScopeHost}, {Name: "b", Scope: blobschema.ScopeHost}, {Name: "b", Scope: blobschema.ScopeHost}, {Name: "c", Scope: blobschema.ScopeHost, Exclude: []string{"/x"}},
	}}
	l, err := newScopes(s)
	if err != nil {
		t.Fatal(err)
	}
	for topic, host := range []string{"none.example", "a.example", "b.example", "b2.example", "c.example"} {
		l.take(uint8(topic), parseURL(t, "https://"+host+"/").Host())
	}
	for _, topic := range []uint8{0, 4} {
		l.take(topic, "both.example")
	}
	check := func(l scopes) {
		t.Helper()
		for url, want := range map[string]string{
			"https://none.example/": "0 true", "https://a.example/": "1 true", "https://b.example/": "2 true", "https://b2.example/": "2 true",
			"https://c.example/": "4 true", "https://c.example/x": "0 false", "https://d.example/": "0 false",
			"https://both.example/": "4 true", "https://both.example/x": "0 true",
		} {
			topic, ok := l.admit(parseURL(t, url))
			if got := fmt.Sprint(topic, " ", ok); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
	check(l)
	later, err := newScopes(s)
	if err != nil {
		t.Fatal(err)
	}
	later.adopt(l)
	check(later)
	fewer := later[:2]
	fewer.adopt(l)
	if !l.bounded() || (scopes{{kind: blobschema.ScopeAny}}).bounded() || !(scopes{{kind: blobschema.ScopeAny}, {kind: blobschema.ScopeDomain}}).bounded() {
		t.Error("bounded")
	}
	s.Topics[2].Name, s.Topics[2].Exclude = "other", []string{"("}
	if _, err := newScopes(s); err == nil {
		t.Error("a topic with a bad pattern")
	}
}

// TestTopicChangesWhileWarm checks that a change of topics keeps their scopes, and that a warm step obeys it.
func TestTopicChangesWhileWarm(t *testing.T) {
	w, was, _, warm := widened(t)
	priority := 50
	if _, err := w.run(NewChangeTopic(was.ID, "a", TopicChange{Priority: &priority})); err != nil {
		t.Fatal(err)
	}
	s, _ := w.step(StepConfig{Crawl: was, Process: "p"}, warm)
	if !s.st.scopes[1].host("a.example") || s.st.topics[0].Priority != priority || s.cfg.Crawl.Settings.Topics[0].Priority != priority {
		t.Errorf("topics %+v, a.example in scope %v", s.st.topics, s.st.scopes[1].host("a.example"))
	}
	if totals := w.head(was.ID, 0).Totals.Topics; len(totals) != 1 || totals[1].Pages != 1 {
		t.Errorf("figures of topics: %+v", totals)
	}
}

// TestRecrawlOfTopics checks that a requested URL belongs to the topic whose scope contains it, and counts for that topic.
func TestRecrawlOfTopics(t *testing.T) {
	w, was, _, _ := widened(t)
	cfg := StepConfig{Crawl: was, Process: "p"}
	w.record(naming.CrawlKey(was.ID), &cfg.Crawl)
	w.crawlOn(cfg)
	w.request(was.ID, blobschema.Request{ID: "r", Recrawl: []string{"https://a.example/", "https://b.example/new", "https://c.example/"}})
	w.crawlOn(cfg)
	for url, want := range map[string]string{"https://a.example/": "ok 1 1", "https://b.example/new": "ok 2 0", "https://c.example/": "out-of-scope 0 0"} {
		list := w.records(was.ID, 0, url)
		if len(list) == 0 {
			t.Errorf("%s has no record", url)
			continue
		}
		last := list[len(list)-1]
		if got := fmt.Sprint(last.Outcome, " ", last.Topic, " ", last.Generation); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}
