package crawl

import (
	"slices"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/page"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// widened is a crawl of one topic with a step behind it, and its record after another topic came, with
// a seed.
func widened(t *testing.T) (w *world, was, is blobschema.Crawl, warm *Warm) {
	t.Helper()
	was = newCrawl(1)
	was.Settings.Scope = blobschema.ScopeHost
	was.Settings.Topics = []blobschema.Topic{{Name: "a", MaxDepth: -1, Scope: blobschema.ScopeHost}}
	w = newWorld(t)
	var asked []page.Request
	w.web = changing("", &asked)
	if _, err := w.run(NewBegin(was, []Seed{{urls(t, "https://a.example/")[0], 1}}, nil)); err != nil {
		t.Fatal(err)
	}
	w.tick(was.ID)
	w.record(naming.CrawlKey(was.ID), &was)
	s, _ := w.step(StepConfig{Crawl: was, Process: "p"}, nil)
	b := NewBegin(blobschema.Crawl{}, []Seed{{urls(t, "https://b.example/")[0], 2}}, func(c *blobschema.Crawl) error {
		c.Settings.Topics = append(c.Settings.Topics, blobschema.Topic{Name: "b", MaxDepth: -1, Scope: blobschema.ScopeHost})
		return nil
	})
	if _, err := w.run(b); err != nil {
		t.Fatal(err)
	}
	is, _, _ = b.Crawl()
	return w, was, is, s.Warm()
}

// TestTopicsThatCome: whatever of record, mail and state before is older, the hosts of a new topic's seeds are in its scope,
// and in no other.
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

// TestMailOfNewTopic: mail of a topic that a step does not know yet waits until it does.
func TestMailOfNewTopic(t *testing.T) {
	w, was, is, _ := widened(t)
	w.tick(is.ID) // its seed is mailed
	keys := []string{naming.WishKey(is.ID), naming.CrawlKey(is.ID)}
	now := []actor.Record{w.table[keys[0]], w.table[keys[1]]}
	delete(w.table, keys[0])
	looks := 0
	w.fault = func(e actor.Effect) (before, after error) { // the step is told when it looks for the second time
		if r, ok := e.(actor.ReadRecords); ok && slices.Contains(r.Keys, keys[0]) {
			if looks++; looks == 2 {
				w.table[keys[0]], w.table[keys[1]] = now[0], now[1]
			}
		}
		return nil, nil
	}
	s, _ := w.step(StepConfig{Crawl: was, Process: "p"}, nil)
	if own := s.st.scopes[0].names; looks < 2 || len(own) != 0 {
		t.Errorf("after %d looks at the wish the crawl's own scope is %v", looks, own)
	}
	if n := s.st.totals.Topics[2].Pages; n != 1 {
		t.Errorf("%d pages of the new topic", n)
	}
}

// TestWarmSettings: a state in memory is not gone on with under settings that its frontier was not made with.
func TestWarmSettings(t *testing.T) {
	var asked []page.Request
	w, c, cfg := lookedAt(t, 0, &asked)
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

// stepOf is NewStep without an error.
func stepOf(t *testing.T, cfg StepConfig, warm *Warm) *Step {
	t.Helper()
	s, err := NewStep(cfg, warm)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
