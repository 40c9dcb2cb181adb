package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// An index step should end by the deadline, and is killed at the limit.
const (
	slowDeadline = 12 * time.Second
	slowLimit    = 15 * time.Second
)

// TestSlow checks that on ever slower processors every step stores its work before it is killed, and that no document is
// read twice.
func TestSlow(t *testing.T) {
	for _, each := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, 2 * time.Second, 6 * time.Second} {
		w := newWorld(t)
		n := int(min(400, 100*time.Second/each))
		list := make([]answer, n)
		for i := range list {
			list[i] = answer{url: urlOf(i), body: page(fmt.Sprint("title ", i), "some words")}
		}
		w.commit(list[:n*3/4]...)
		w.commit(list[n*3/4:]...)
		w.document = each
		read, steps := int64(0), 0
		for behind := true; behind; steps++ {
			if steps > n {
				t.Fatalf("%v for a document: after %d steps %d of %d pages are read", each, steps, read, n)
			}
			began := w.now
			rep := w.step(Config{Deadline: slowDeadline})
			if took := w.now - began; took > slowLimit {
				t.Errorf("%v for a document: a step takes %v", each, took)
			}
			read, behind = read+rep.Pages, rep.Behind
		}
		if len(w.shown()) != n || read != int64(n) {
			t.Errorf("%v for a document: %d documents of %d, %d pages read", each, len(w.shown()), n, read)
		}
		// Steps use their time: together they take at most three times as long as the documents.
		if most := 2 + int(3*time.Duration(n)*each/slowDeadline); steps > most {
			t.Errorf("%v for a document: %d steps for %d documents, want %d at most", each, steps, n, most)
		}
	}
}

// TestPart checks that commits indexed in parts, which end anywhere, give the same documents as commits indexed at once.
func TestPart(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(t)
		generations, last := map[string]uint32{}, map[string]blobschema.Page{}
		for range 1 + r.IntN(3) {
			var list []answer
			for range 1 + r.IntN(40) {
				a := answer{url: urlOf(r.IntN(30))}
				if g, ok := generations[a.url]; ok {
					a.generation = g + 1
				}
				generations[a.url] = a.generation
				previous, ok := last[a.url]
				switch k := r.IntN(8); {
				case k == 0:
					a.outcome = blobschema.OutcomeClientError
				case k == 1:
					a.outcome = blobschema.OutcomeUnchanged
				case k == 2:
					a.noIndex, a.body = true, page("hidden", "words")
				case k == 3 && ok:
					a.same = &previous
				default:
					a.body = page(fmt.Sprint("t", r.IntN(1000)), "words")
				}
				list = append(list, a)
			}
			for _, p := range w.commit(list...) {
				if p.Outcome == blobschema.OutcomeOK && !p.NoIndex {
					last[p.URL] = p
				}
			}
		}
		whole := w.clone()
		whole.step(Config{})
		w.document = 2 * time.Second
		parts := 0
		for behind := true; behind; {
			behind = w.step(Config{Deadline: time.Duration(1+r.IntN(20)) * time.Second}).Behind
			if w.manifest().Part > 0 {
				parts++
			}
		}
		if got, want := w.shown(), whole.shown(); !maps.Equal(got, want) {
			t.Errorf("seed %d: documents in %d parts\n%v\nat once\n%v", seed, parts, got, want)
		}
		got, want := w.manifest(), whole.manifest()
		if got.Totals.Documents != want.Totals.Documents || got.Totals.Pages != want.Totals.Pages || got.Part != 0 || got.Seq != want.Seq {
			t.Errorf("seed %d: manifest in %d parts %+v, at once %+v", seed, parts, got, want)
		}
		if seed == 0 && parts == 0 {
			t.Error("no step has stored a part of a commit")
		}
	}
}

// TestClaim starts a second step after each effect of the first. It checks that only one of them reads the pages of a commit.
func TestClaim(t *testing.T) {
	w := newWorld(t)
	var list []answer
	for i := range fewPages + 1 {
		list = append(list, answer{url: urlOf(i), body: page("x", "words")})
	}
	w.commit(list...)
	cfg := Config{Deadline: slowDeadline}
	for ahead := range 10 {
		c := w.clone()
		first := c.begin(cfg)
		for range ahead {
			if ended, err := c.turn(first); ended {
				c.must(err)
			}
		}
		second := c.step(cfg)
		for ended := false; !ended; {
			var err error
			ended, err = c.turn(first)
			c.must(err)
		}
		if read := first.step.Report().Pages + second.Pages; read != int64(len(list)) {
			t.Errorf("second step %d effects after the first: %d pages are read, want %d", ahead, read, len(list))
		}
		if len(c.shown()) != len(list) {
			t.Errorf("second step %d effects after the first: %d documents", ahead, len(c.shown()))
		}
	}
	// The claim of a killed step expires.
	w.kill = 8
	if _, err := w.run(cfg); err == nil {
		t.Fatal("the step was not killed")
	}
	w.kill = -1
	if rep := w.step(cfg); !rep.Lost || rep.Pages > 0 {
		t.Errorf("while the claim lasts: %+v", rep)
	}
	w.now += slowDeadline * 5 / 4
	if rep := w.step(cfg); rep.Lost || len(w.shown()) != len(list) {
		t.Errorf("after the claim: %+v", rep)
	}
	var h blobschema.IndexHead
	w.must(json.Unmarshal(w.Table[naming.IndexKey(w.crawl.ID, 0)].Value, &h))
	if !h.Until.IsZero() {
		t.Errorf("the partition is claimed until %v by a step that has ended", h.Until)
	}
}
