package index

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

func urlOf(i int) string { return fmt.Sprintf("http://h%d.example/p%d", i%3, i) }

func want(t *testing.T, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("the index contains\n%v\nwant\n%v", got, want)
	}
}

// TestCalls counts the calls of a step with two commits to index, and of a step without work, because calls cost money.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	var list []answer
	for i := range 10 {
		list = append(list, answer{url: urlOf(i), body: page(fmt.Sprint("title ", i), "some words"), gzip: i%2 == 0})
	}
	w.commit(list[:5]...)
	w.commit(list[5:]...)
	clear(w.calls)
	rep := w.step(Config{})
	if rep.Pages != 10 || rep.Manifests != 1 || rep.Head.Documents != 10 || rep.Behind || rep.Lost {
		t.Errorf("report %+v", rep)
	}
	// The last commit is read twice, for its manifest and for its pages. A segment and a manifest are stored.
	if got, want := w.calls, map[string]int{"ReadRecords": 2, "GetObject": 3 + 2, "Work": 2 + 1, "PutObject": 2, "WriteRecord": 1}; !maps.Equal(got, want) {
		t.Errorf("calls %v, want %v", got, want)
	}
	clear(w.calls)
	w.step(Config{})
	if got, want := w.calls, map[string]int{"ReadRecords": 1, "GetObject": 1}; !maps.Equal(got, want) {
		t.Errorf("a step without work calls %v, want %v", got, want)
	}
	for i, doc := range w.shown() {
		if !strings.HasPrefix(doc, "title ") {
			t.Errorf("%s: %s", i, doc)
		}
	}
	r := w.open(&w.manifest().Segments[0])
	for _, c := range []struct {
		field segment.Field
		term  string
		n     int
	}{{segment.Title, "title", 10}, {segment.Title, "titl" + segment.FormMark, 10}, {segment.Body, "words", 10}, {segment.Body, "word" + segment.FormMark, 10}, {segment.URL, "h1", 3}, {segment.URL, "p4", 1}, {segment.Headings, "4", 1}} {
		if infos, err := r.Lookup(c.term); err != nil || infos[c.field].Documents != c.n {
			t.Errorf("%s:%s is in %d documents, want %d: %v", c.field, c.term, infos[c.field].Documents, c.n, err)
		}
	}
}

// TestLastAnswerCounts checks the effect of each kind of answer on the document of its URL.
func TestLastAnswerCounts(t *testing.T) {
	w := newWorld(t)
	var list []answer
	for i := range 9 {
		list = append(list, answer{url: urlOf(i), body: page(fmt.Sprint("old ", i), "some words")})
	}
	first := w.commit(list...)
	w.step(Config{})
	again := func(i int, a answer) answer {
		a.url, a.generation = urlOf(i), 1
		return a
	}
	w.commit(
		again(0, answer{body: page("new 0", "others")}),
		again(1, answer{outcome: blobschema.OutcomeClientError}),
		again(2, answer{outcome: blobschema.OutcomeUnchanged}),
		again(3, answer{outcome: blobschema.OutcomeServerError}),
		again(4, answer{body: page("new 4", "hidden"), noIndex: true}),
		again(5, answer{outcome: blobschema.OutcomeRedirect}),
		again(6, answer{same: &first[6]}),
		again(7, answer{body: "\x89PNG\r\n\x1a\n\x00\x00", kind: "image/png"}),
		again(8, answer{body: page("new 8", "hidden"), noIndex: true}),
	)
	w.step(Config{})
	want(t, w.shown(), map[string]string{urlOf(0): "new 0/1", urlOf(2): "old 2/0", urlOf(3): "old 3/0", urlOf(6): "old 6/0"})
	totals := w.manifest().Totals
	totals.Text, totals.Merges = 0, 0
	if wantTotals := (blobschema.IndexTotals{Documents: 4, Pages: 18, NoIndex: 2, NoText: 1, Replaced: 1, Deleted: 5}); totals != wantTotals {
		t.Errorf("totals %+v, want %+v", totals, wantTotals)
	}
	// Removed pages return, one of them with the payload of another URL.
	w.commit(answer{url: urlOf(1), generation: 2, body: page("back 1", "again")}, answer{url: urlOf(5), generation: 2, same: &first[0]})
	w.step(Config{})
	want(t, w.shown(), map[string]string{urlOf(0): "new 0/1", urlOf(1): "back 1/2", urlOf(2): "old 2/0", urlOf(3): "old 3/0", urlOf(5): "old 0/2", urlOf(6): "old 6/0"})
	// If a batch has two answers of a URL, the last one counts.
	w.commit(answer{url: urlOf(2), generation: 1, body: page("never", "seen")})
	w.commit(answer{url: urlOf(2), generation: 2, outcome: blobschema.OutcomeClientError}, answer{url: urlOf(0), generation: 2, outcome: blobschema.OutcomeTimeout})
	w.step(Config{})
	want(t, w.shown(), map[string]string{urlOf(0): "new 0/1", urlOf(1): "back 1/2", urlOf(3): "old 3/0", urlOf(5): "old 0/2", urlOf(6): "old 6/0"})
}

// merging makes a short crawl merge and delete segments like a long one.
var merging = Config{BatchSize: 1, FanIn: 2, Memory: 1, Grace: time.Second}

// TestMerges checks the index after many small commits that add, change and remove pages.
func TestMerges(t *testing.T) {
	w := newWorld(t)
	shown := map[string]string{}
	for i := range 40 {
		var list []answer
		for _, k := range []int{i, i / 2, i / 3} {
			g := uint32(i)
			switch {
			case k == i/3 && i%5 == 0:
				list = append(list, answer{url: urlOf(100 + k), generation: g, outcome: blobschema.OutcomeClientError})
				delete(shown, urlOf(100+k))
			default:
				list = append(list, answer{url: urlOf(100 + k), generation: g, body: page(fmt.Sprint("t", i, k), "words of it")})
				shown[urlOf(100+k)] = fmt.Sprintf("t%d %d/%d", i, k, g)
			}
			if k == i/2 && i/2 == i/3 {
				break
			}
		}
		w.commit(list...)
		if i%3 == 0 {
			w.step(merging)
		}
	}
	w.step(merging)
	w.now += time.Hour
	w.commit(answer{url: urlOf(1), outcome: blobschema.OutcomeDNS})
	w.step(merging)
	for u, d := range shown { // fmt.Sprint adds a space only between two numbers
		if got := w.shown()[u]; got != d {
			t.Errorf("%s is %q, want %q", u, got, d)
		}
	}
	m := w.manifest()
	if len(w.shown()) != len(shown) || len(m.Segments) > 2 || m.Totals.Merges == 0 {
		t.Errorf("%d documents in %d segments, %d merges", len(w.shown()), len(m.Segments), m.Totals.Merges)
	}
	named := map[string]bool{}
	for _, s := range m.Segments {
		named[s.Object] = true
	}
	for _, d := range m.Dropped {
		named[d.Object] = true
	}
	n := 0
	for name := range w.Objects {
		if strings.HasPrefix(name, naming.IndexPrefix(w.crawl.ID)) && !named[name] {
			n++
		}
	}
	if n > 1 { // the manifest itself
		t.Errorf("the manifest lists %d index objects neither as used nor as dropped", n)
	}
}

// TestKilled crashes a step after each effect and checks that the next one completes the index without repeats.
func TestKilled(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.commit(answer{url: urlOf(i), body: page("old", "words")}, answer{url: urlOf(i + 10), body: page("old", "words")})
	}
	w.step(merging)
	for i := range 3 {
		w.commit(answer{url: urlOf(i), generation: 1, body: page("new", "words")}, answer{url: urlOf(i + 10), generation: 1, outcome: blobschema.OutcomeClientError})
	}
	w.now += time.Hour
	shown := map[string]string{urlOf(0): "new/1", urlOf(1): "new/1", urlOf(2): "new/1"}
	for kill := 0; ; kill++ {
		c := w.clone()
		c.kill, c.effects = kill, 0
		_, err := c.run(merging)
		c.kill = -1
		c.step(merging)
		want(t, c.shown(), shown)
		if err == nil {
			if kill < 30 {
				t.Errorf("the step has only %d effects", kill)
			}
			break
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
}

// TestSideBySide runs two steps in turn. The second one starts after each effect of the first.
func TestSideBySide(t *testing.T) {
	w := newWorld(t)
	w.commit(answer{url: urlOf(0), body: page("a", "words")}, answer{url: urlOf(1), body: page("b", "words")})
	w.commit(answer{url: urlOf(0), generation: 1, body: page("c", "words")})
	shown := map[string]string{urlOf(0): "c/1", urlOf(1): "b/0"}
	lost := 0
	for ahead := range 30 {
		c := w.clone()
		first := c.begin(merging)
		for range ahead {
			if ended, err := c.turn(first); ended {
				c.must(err)
				break
			}
		}
		second := c.begin(merging)
		for ends := 0; ends < 2; {
			ends = 0
			for _, r := range []*running{first, second} {
				if ended, err := c.turn(r); ended {
					c.must(err)
					ends++
				}
			}
		}
		if first.step.Report().Lost || second.step.Report().Lost {
			lost++
		}
		c.step(merging)
		want(t, c.shown(), shown)
	}
	if lost == 0 {
		t.Error("no step has lost")
	}
}

// TestDeadline checks that a step ends early at its deadline and reports it.
func TestDeadline(t *testing.T) {
	w := newWorld(t)
	for i := range 20 {
		w.commit(answer{url: urlOf(i), body: page("x", "words")})
	}
	cfg := merging
	cfg.Deadline = 20 * time.Millisecond
	steps := 0
	for rep := (Report{Behind: true}); rep.Behind; steps++ {
		if rep = w.step(cfg); steps > 100 {
			t.Fatal("still behind after 100 steps")
		}
	}
	if len(w.shown()) != 20 || steps < 3 {
		t.Errorf("%d documents in %d steps", len(w.shown()), steps)
	}
}

// TestBehindWithoutProgress checks that a step that is behind wakes the next one only if it has stored something.
func TestBehindWithoutProgress(t *testing.T) {
	w := newWorld(t)
	for i := range 3 {
		w.commit(answer{url: urlOf(i), body: page("x", "words")})
		w.step(Config{BatchSize: 1})
	}
	cfg := merging
	cfg.Deadline = time.Nanosecond
	if rep := w.step(cfg); !rep.Behind || rep.Manifests > 0 || w.calls["Send"] != 0 {
		t.Errorf("%+v, and %d jobs sent", rep, w.calls["Send"])
	}
	w.commit(answer{url: urlOf(3), body: page("x", "words")})
	if rep := w.step(cfg); !rep.Behind || rep.Manifests != 1 || w.calls["Send"] != 1 {
		t.Errorf("%+v, and %d jobs sent", rep, w.calls["Send"])
	}
}

// TestHostile checks malformed and huge pages, and an archive with missing and damaged records.
func TestHostile(t *testing.T) {
	w := newWorld(t)
	w.commit(
		answer{url: urlOf(0), body: page("good", "words")},
		answer{url: urlOf(1), body: "\x00\x01\x02\x7fELF" + strings.Repeat("\x00\xff\xfe\x03", 1000)},
		answer{url: urlOf(2), kind: "text/plain", body: strings.Repeat("word", 50<<20/4), gzip: true},
		answer{url: urlOf(3), kind: "text/plain", body: strings.Repeat("word ", 50<<20/5), gzip: true},
		answer{url: urlOf(4), body: page("caf\xe9 \xff\xfe", "\xc3\x28 \xa0\xa1 words")},
		answer{url: urlOf(5), body: ""},
		answer{url: urlOf(6), body: strings.Repeat("<div>", 1<<18) + "deep"},
	)
	lost := w.commit(answer{url: urlOf(7), body: page("lost", "words")})
	delete(w.Objects, lost[0].WARC)
	torn := w.commit(answer{url: urlOf(8), body: page("torn", "words")}, answer{url: urlOf(9), body: page("whole", "words")})
	w.Objects[torn[0].WARC][torn[0].Offset+torn[0].Length/2] ^= 0xff
	began := time.Now()
	w.step(Config{})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("the step took %v", took)
	}
	shown := w.shown()
	for i, there := range map[int]bool{0: true, 1: false, 2: true, 3: true, 4: true, 7: false, 8: false, 9: true} {
		if _, ok := shown[urlOf(i)]; ok != there {
			t.Errorf("%s in the index: %v, want %v", urlOf(i), ok, there)
		}
	}
	m := w.manifest()
	if m.Totals.Damaged != 2 || m.Totals.NoText == 0 {
		t.Errorf("totals %+v", m.Totals)
	}
	if m.Segments[0].Bytes > 8<<20 {
		t.Errorf("a segment of %d bytes", m.Segments[0].Bytes)
	}
}

// TestAnchors checks the texts of links of two rank jobs in turn.
func TestAnchors(t *testing.T) {
	w := newWorld(t)
	w.commit(answer{url: urlOf(0), body: page("a", "words")})
	w.step(Config{})
	anchors := func(job uint64, text string) {
		fp, slot := uint64(0), w.manifest().Segments[0].First
		r := w.open(&w.manifest().Segments[0])
		d, err := r.Document(0)
		w.must(err)
		fp = d.Fingerprint
		data, err := ranks.EncodeAnchors([]ranks.AnchorTarget{{Fingerprint: fp, Slot: slot, Host: "h0.example", Texts: []ranks.AnchorText{{Text: text, Pages: 3, Hosts: 2}}}})
		w.must(err)
		name := naming.RankObject(w.crawl.ID, 0, job, "anchors", data)
		w.must(w.Put(name, data))
		w.write(naming.RankHeadKey(w.crawl.ID, 0), ranks.Head{Job: job, Final: true, Next: ranks.Result{Job: job, Anchors: name}})
		w.write(naming.RankKey(w.crawl.ID), ranks.Job{Number: job, Done: virtual.Epoch, Inputs: []ranks.Input{{Seq: 1}}})
	}
	for job, text := range []string{"fine harbour", "quiet lighthouse"} {
		anchors(uint64(job+1), text)
		rep := w.step(Config{})
		if rep.Head.Anchors != uint64(job+1) || len(w.manifest().Anchors) != 1 {
			t.Fatalf("after job %d: %+v", job+1, rep)
		}
		w.step(Config{})
		r := w.open(&w.manifest().Anchors[0])
		term := strings.Fields("harbour lighthouse")[job] // no stem, because the text of a link has no language
		infos, err := r.Lookup(term)
		info := infos[segment.Anchor]
		if err != nil || info.Documents != 1 || info.Occurrences != 2 {
			t.Errorf("%s: %+v, %v", term, info, err)
		}
		cols, err := r.Columns()
		w.must(err)
		text := w.open(&w.manifest().Segments[0])
		of, err := text.Columns()
		w.must(err)
		if cols.Fingerprint(0) != of.Fingerprint(0) || cols.Slot(0) != of.Slot(0) {
			t.Error("the texts have another fingerprint or slot than the page")
		}
	}
	want(t, w.shown(), map[string]string{urlOf(0): "a/0"})
}

// TestAnew checks that an index with another version of the terms is rebuilt.
func TestAnew(t *testing.T) {
	w := newWorld(t)
	w.commit(answer{url: urlOf(0), body: page("a", "words")}, answer{url: urlOf(1), body: page("b", "words")})
	w.step(Config{})
	m := w.manifest()
	old := m.Segments[0].Object
	m.Terms++
	data, err := blobschema.EncodeIndexManifest(&m)
	w.must(err)
	name := naming.IndexManifest(w.crawl.ID, 0, m.Number, data)
	w.must(w.Put(name, data))
	w.write(naming.IndexKey(w.crawl.ID, 0), blobschema.IndexHead{Number: m.Number, Manifest: name, Seq: m.Seq, Documents: 2})
	if rep := w.step(Config{Deadline: time.Nanosecond}); rep.Head.Seq != 0 || rep.Head.Documents != 0 || !rep.Behind {
		t.Errorf("first step: %+v", rep)
	}
	w.step(Config{})
	want(t, w.shown(), map[string]string{urlOf(0): "a/0", urlOf(1): "b/0"})
	if got := w.manifest(); got.Terms != token.Version || got.Totals.Pages != 2 || got.Segments[0].Object == old {
		t.Errorf("manifest %+v", got)
	}
	w.now += time.Hour
	w.commit(answer{url: urlOf(2), body: page("c", "words")})
	w.step(Config{})
	if _, there := w.Objects[old]; there {
		t.Error("the old segment is not deleted")
	}
}
