package index

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

const home = "http://a.example/"

// TestPayloadComesBack checks revisits of an earlier payload of the URL that is not always the previous one.
func TestPayloadComesBack(t *testing.T) {
	for _, c := range []struct {
		name    string
		between answer
		again   string // document shown after the revisit; "": the first one, of any generation
	}{
		{"another text", answer{url: home, generation: 1, body: page("second", "s")}, "first/2"},
		{"gone", answer{url: home, generation: 1, outcome: blobschema.OutcomeClientError}, "first/2"},
		{"forbidden", answer{url: home, generation: 1, outcome: blobschema.OutcomeRobots}, "first/2"},
		{"timeout", answer{url: home, generation: 1, outcome: blobschema.OutcomeTimeout}, ""},
		{"unchanged", answer{url: home, generation: 1, outcome: blobschema.OutcomeUnchanged}, ""},
	} {
		for batches := range 4 { // bits: after which of the first two answers a step runs
			w := newWorld(t)
			first := w.commit(answer{url: home, body: page("first", "f")})
			step := func(bit int) {
				if batches&bit != 0 {
					w.step(Config{})
				}
			}
			step(1)
			w.commit(c.between)
			step(2)
			w.commit(answer{url: home, generation: 2, same: &first[0]})
			w.step(Config{})
			got := w.shown()[home]
			if c.again == "" && len(got) != len("first/0") || c.again != "" && got != c.again || got[:5] != "first" {
				t.Errorf("%s, steps %b: the index shows %q", c.name, batches, w.shown())
			}
			before := w.shown()
			w.commit(answer{url: home, generation: 3, same: &first[0]}) // an unchanged payload is not read
			if rep := w.step(Config{}); rep.Pages > 0 || !maps.Equal(w.shown(), before) {
				t.Errorf("%s, steps %b: %d unchanged pages are read again; shown: %q", c.name, batches, rep.Pages, w.shown())
			}
		}
	}
}

// TestSameWithoutText checks that unchanged payloads without text are not read again.
func TestSameWithoutText(t *testing.T) {
	w := newWorld(t)
	first := w.commit(answer{url: home, body: "\x89PNG", kind: "image/png"}, answer{url: home + "2", body: page("two", "t")})
	w.step(Config{})
	w.commit(answer{url: home, generation: 1, same: &first[0], kind: "image/png"})
	if rep := w.step(Config{}); rep.Pages > 0 || !maps.Equal(w.shown(), map[string]string{home + "2": "two/0"}) {
		t.Errorf("%d pages read; shown: %q", rep.Pages, w.shown())
	}
	w.commit(answer{url: home, generation: 2, body: page("words", "w")})
	w.step(Config{})
	w.commit(answer{url: home, generation: 3, same: &first[0], kind: "image/png"}, answer{url: home + "2", generation: 1, outcome: blobschema.OutcomeClientError})
	if w.step(Config{}); len(w.shown()) != 0 {
		t.Errorf("shown: %q", w.shown())
	}
}

// TestMovedByAddress checks that the manifest lists removed documents of moved slots, also if slots depend on addresses.
func TestMovedByAddress(t *testing.T) {
	for _, by := range []blobschema.PartitionBy{blobschema.ByHost, blobschema.ByIP} {
		w := newWorld(t)
		w.crawl.Settings.PartitionBy = by
		hash, err := w.crawl.Hash()
		w.must(err)
		u, err := weburl.Parse(home)
		w.must(err)
		key, _ := by.Key(string(u.Host()))
		slot := hash.Slot(key)
		if by == blobschema.ByIP {
			slot = (slot + 1) % 16 // slot of an address
		}
		w.man.Moved = []blobschema.Moved{{Epoch: 2, Slots: partition.Slots{slot}}}
		w.commit(answer{url: home, generation: 1, outcome: blobschema.OutcomeClientError})
		w.step(Config{})
		if m := w.manifest(); len(m.Removed) != 1 || m.Removed[0].Generation != 1 {
			t.Errorf("by %v: %+v is listed as removed", by, m.Removed)
		}
	}
}

// TestDeadlineGetsOn checks that each step makes progress within any deadline, also through commits without pages.
func TestDeadlineGetsOn(t *testing.T) {
	w := newWorld(t)
	for range 20 {
		w.commit(answer{url: home, outcome: blobschema.OutcomeTimeout})
	}
	w.commit(answer{url: home, generation: 1, body: page("late", "l")})
	seq := uint64(0)
	for steps := 0; seq < w.man.Seq; steps++ {
		w.step(Config{Deadline: time.Millisecond})
		if m := w.manifest(); m.Seq <= seq {
			t.Fatalf("step %d stays at commit %d of %d", steps+1, m.Seq, w.man.Seq)
		} else {
			seq = m.Seq
		}
	}
	if got := w.shown(); !maps.Equal(got, map[string]string{home: "late/1"}) {
		t.Errorf("shown: %q", got)
	}
}

// TestLargeSegmentsLetSmallOnesMerge checks that segments too large to merge do not block others of
// their class.
func TestLargeSegmentsLetSmallOnesMerge(t *testing.T) {
	s := &Step{cfg: Config{}.withDefaults()}
	for _, mib := range []int64{60, 60, 60, 9, 9, 9, 9, 9, 9, 9, 9} {
		s.man.Segments = append(s.man.Segments, blobschema.SegmentRef{Bytes: mib << 20, Documents: 1})
	}
	places := s.due()
	if len(places) < 8 || !slices.IsSorted(places) || !slices.Equal(places[len(places)-8:], []int{3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("segments %v are merged", places)
	}
}

// TestLongTexts bounds the memory of a piece of work if pages are long texts that compress well.
func TestLongTexts(t *testing.T) {
	w := newWorld(t)
	var list []answer
	for i := range 24 {
		list = append(list, answer{url: fmt.Sprint(home, i), kind: "text/plain", gzip: true, body: fmt.Sprint(i, " ", strings.Repeat("words and words ", text.MaxText/16))})
	}
	list = append(list, answer{url: home, body: page("short", "s")})
	w.commit(list...)
	s, err := NewStep(Config{Crawl: w.crawl})
	w.must(err)
	most := 0
	issues := s.Start(w.clock())
	for ended := false; !ended; ended, err = s.Ended() {
		v, err := w.apply(issues[0].Effect)
		if did, ok := v.(pages); ok {
			size := 0
			for i := range did.docs {
				size += did.docs[i].size()
			}
			most = max(most, size)
		}
		issues = append(issues[1:], s.Handle(w.clock(), actor.Reply{ID: issues[0].ID, Value: v, Err: err})...)
	}
	w.must(err)
	if len(w.shown()) != len(list) || s.Report().Pages != int64(len(list)) || len(w.manifest().Segments) < 1 {
		t.Errorf("%d documents, report %+v", len(w.shown()), s.Report())
	}
	// The largest page consists of short words, each with its stem, at 40 bytes.
	if one := text.MaxText + 40*text.MaxText/2; most == 0 || most > pieceBytes+one {
		t.Errorf("the documents of a piece of work have %d bytes", most)
	}
}

// TestRebuild checks that a step with Rebuild reads nothing of a damaged index, and makes the same documents in the end.
func TestRebuild(t *testing.T) {
	for name, damage := range map[string]func(w *world, name string){
		"missing":   func(w *world, name string) { delete(w.Objects, name) },
		"cut":       func(w *world, name string) { w.Objects[name] = w.Objects[name][:len(w.Objects[name])/2] },
		"undamaged": func(*world, string) {},
	} {
		w := newWorld(t)
		for i := range 3 {
			w.commit(answer{url: fmt.Sprint(home, i), body: page(fmt.Sprint("title ", i), "text")})
			w.step(Config{})
		}
		before, number := w.shown(), w.manifest().Number
		for object := range maps.Clone(w.Objects) {
			if strings.HasPrefix(object, naming.IndexPrefix(w.crawl.ID)) {
				damage(w, object)
			}
		}
		if _, err := w.run(Config{}); (err == nil) != (name == "undamaged") {
			t.Errorf("%s: a step without Rebuild ends with %v", name, err)
		}
		if rep := w.step(Config{Rebuild: true, Deadline: 1}); !rep.Behind || rep.Pages != 0 || len(w.shown()) != 0 {
			t.Errorf("%s: first step: %+v, shown: %q", name, rep, w.shown())
		}
		if rep := w.step(Config{}); rep.Pages != 3 || !maps.Equal(w.shown(), before) || w.manifest().Number <= number {
			t.Errorf("%s: second step: %+v, shown: %q, want %q", name, rep, w.shown(), before)
		}
	}
}
