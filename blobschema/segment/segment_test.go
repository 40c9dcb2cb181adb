package segment

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

func TestBuild(t *testing.T) {
	for _, n := range []int{0, 1, 2, 63, 64, 65, 700} {
		w := newWeb(uint64(n), max(1, n/10), 60)
		var docs []document
		for i := range n {
			docs = append(docs, w.page(uint64(i), 0))
		}
		w.rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		data, _ := build(t, docs)
		mustEqual(t, data, inOrder(docs))
	}
}

func TestOrderOfAddingDoesNotShow(t *testing.T) {
	w := newWeb(5, 20, 60)
	var docs []document
	for i := range 300 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	first, _ := build(t, docs)
	for range 3 {
		w.rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		if data, _ := build(t, docs); !bytes.Equal(data, first) {
			t.Fatal("other bytes in another order")
		}
	}
}

// TestMerge merges, deletes and replaces at random, and compares with the truth.
func TestMerge(t *testing.T) {
	for seed := range uint64(12) {
		w := newWeb(seed, 30, 40)
		rng := w.rng
		var inputs []Input
		var left []document
		for g := range 1 + rng.IntN(4) {
			var docs []document
			for range rng.IntN(400) {
				docs = append(docs, w.page(uint64(rng.IntN(600)), uint32(g)))
			}
			docs = inOrder(docs)
			data, _ := build(t, docs)
			r, _ := open(t, data)
			in := Input{Reader: r}
			for i := range docs {
				if rng.IntN(8) == 0 {
					if in.Deleted == nil {
						in.Deleted = &Set{}
					}
					in.Deleted.Add(uint32(i))
				} else {
					left = append(left, docs[i])
				}
			}
			inputs = append(inputs, in)
		}
		left = inOrder(left)
		all, stored := int64(0), 0
		for _, in := range inputs {
			all, stored = all+in.Reader.size, stored+in.Reader.Documents()
		}
		most := rng.IntN(3) * 100 // approximate number of documents in an output
		out, err := Merge(inputs, int64(most)*all/int64(max(stored, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if most == 0 && len(out) > 1 || most > 0 && len(out) < len(left)/(2*most) {
			t.Errorf("%d outputs of %d documents, %d each", len(out), len(left), most)
		}
		for i, o := range out {
			if i > 0 && out[i-1].Summary.Last >= o.Summary.First {
				t.Fatalf("outputs share slot %d", o.Summary.First)
			}
			n := o.Summary.Documents
			mustEqual(t, o.Data, left[:n])
			if once, _ := build(t, left[:n]); !bytes.Equal(once, o.Data) {
				t.Fatal("merged segment has other bytes than one that was built")
			}
			left = left[n:]
		}
		if len(left) > 0 {
			t.Fatalf("%d documents are lost", len(left))
		}
	}
}

func TestAdvance(t *testing.T) {
	w := newWeb(9, 50, 30)
	var docs []document
	for i := range 3000 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	data, _ := build(t, docs)
	r, _ := open(t, data)
	for term, fields := range invert(inOrder(docs)) {
		want := fields[Body]
		if len(want) < 100 {
			continue
		}
		info, _, err := termIn(r, Body, term)
		if err != nil {
			t.Fatal(err)
		}
		p, err := r.Postings(info, true)
		if err != nil {
			t.Fatal(err)
		}
		at, to := -1, uint32(0)
		for {
			var ok bool
			if w.rng.IntN(3) == 0 {
				ok = p.Next()
				at++
			} else {
				to += uint32(w.rng.IntN(1 + w.rng.IntN(400)))
				ok = p.Advance(to)
				at = max(at, 0)
				for at < len(want) && want[at].Doc < to {
					at++
				}
			}
			if ok != (at < len(want)) {
				t.Fatalf("%s: there is a document: %t, at %d of %d", term, ok, at, len(want))
			}
			if !ok {
				break
			}
			if p.Doc() != want[at].Doc {
				t.Fatalf("%s: document %d, want %d", term, p.Doc(), want[at].Doc)
			}
			for range w.rng.IntN(3) {
				if got := p.Positions(nil); !slices.Equal(got, want[at].Positions) {
					t.Fatalf("%s: positions %v, want %v", term, got, want[at].Positions)
				}
			}
		}
		if p.Err() != nil {
			t.Fatal(p.Err())
		}
	}
}

func TestSites(t *testing.T) {
	w := newWeb(4, 40, 5)
	var docs []document
	for i := range 1500 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	docs = inOrder(docs)
	data, _ := build(t, docs)
	r, _ := open(t, data)
	check := func(what string, first, end uint32, err error, has func(*document) bool) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		for i := range docs {
			if in := uint32(i) >= first && uint32(i) < end; in != has(&docs[i]) {
				t.Fatalf("%s: document %d of %s in %d to %d: %t", what, i, docs[i].Host, first, end, in)
			}
		}
	}
	for _, d := range docs {
		first, end, err := r.Site(d.Host, d.Slot)
		check(d.Host, first, end, err, func(e *document) bool { return e.Host == d.Host })
		_, domain, _ := strings.Cut(d.Host, ".")
		first, end, err = r.Domain(domain, d.Slot)
		check(domain, first, end, err, func(e *document) bool { return strings.HasSuffix(e.Host, "."+domain) })
	}
	for _, host := range []string{"", "example", "www.example1.orf", "zzz.zzz"} {
		first, end, err := r.Site(host, docs[0].Slot)
		check(host, first, end, err, func(*document) bool { return false })
	}
}

func TestHostKey(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "org": "org,", "www.example.org": "org,example,www,", "example.org:8080": "org,example,:8080",
		"[::1]:8080": "[::1]:8080", "[2001:db8::1]": "[2001:db8::1]", "a..b": "b,,a,",
	} {
		if got := hostKey(host); got != want {
			t.Errorf("key of %q is %q, want %q", host, got, want)
		}
	}
}

// termWith is a term and its info in one field.
type termWith struct {
	Term string
	TermInfo
}

// termsOf returns the terms of a field that begin with prefix.
func termsOf(r *Reader, f Field, prefix string) (list []termWith, err error) {
	cut, err := r.Terms(prefix, 1<<30, func(term string, infos [NumFields]TermInfo) {
		if infos[f].Documents > 0 {
			list = append(list, termWith{term, infos[f]})
		}
	})
	if cut {
		err = errors.New("not all blocks were read")
	}
	return list, err
}

func TestTerms(t *testing.T) {
	w := newWeb(3, 50, 100)
	var docs []document
	for i := range 300 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	data, _ := build(t, docs)
	r, _ := open(t, data)
	if len(r.x.dict) < 3 {
		t.Fatalf("dictionary of %d blocks shows nothing", len(r.x.dict))
	}
	index := invert(inOrder(docs))
	all := slices.DeleteFunc(slices.Sorted(maps.Keys(index)), func(term string) bool { return isForm(TermPosition{Term: term}) })
	prefixes := []string{"", "ba", "bac", "zi", "zz", all[0], all[len(all)-1], r.x.dict[1].first, "a"}
	for _, f := range []Field{Title, Body} {
		for _, prefix := range prefixes {
			var want []string
			for _, term := range all {
				if strings.HasPrefix(term, prefix) && len(index[term][f]) > 0 {
					want = append(want, term)
				}
			}
			infos, err := termsOf(r, f, prefix)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, info := range infos {
				got = append(got, info.Term)
				if info.Documents != len(index[info.Term][f]) {
					t.Fatalf("%s is in %d documents, want %d", info.Term, info.Documents, len(index[info.Term][f]))
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%d terms of %s with %q, want %d", len(got), f, prefix, len(want))
			}
		}
	}
	// The part of the dictionary that is read is bounded, however many terms are wanted.
	for blocks := range len(r.x.dict) + 2 {
		terms := 0
		cut, err := r.Terms("", blocks, func(string, [NumFields]TermInfo) { terms++ })
		if err != nil || cut != (blocks < len(r.x.dict)) || (blocks == 0) != (terms == 0) {
			t.Errorf("%d of %d blocks: %d terms, cut %v, %v", blocks, len(r.x.dict), terms, cut, err)
		}
	}
	for _, term := range []string{"", "a", "zzz", all[10] + "x", strings.Repeat("x", 1000)} {
		if _, ok, err := termIn(r, Body, term); ok || err != nil {
			t.Errorf("term %.20q: %t, %v", term, ok, err)
		}
	}
}

// TestReads pins the number and size of a cold query's reads, which are its cost.
func TestReads(t *testing.T) {
	w := newWeb(2, 100, 60)
	var docs []document
	for i := range 4000 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	data, _ := build(t, docs)
	r, s := open(t, data)
	steps := []struct {
		name  string
		reads int
		bytes int64
		do    func() error
	}{
		{"open", 1, openRead, func() error { return nil }},
		{"look up", 1, 6 << 10, func() error { _, err := r.Lookup(word(1000)); return err }},
		{"postings", 1, 10 << 10, func() error {
			infos, _ := r.Lookup(word(40))
			*s = bytesSource{t: t, data: data}
			p, err := r.Postings(infos[Body], false)
			if err == nil && p.Next() && infos[Body].Documents < 300 {
				err = errors.New("list is too short to show anything")
			}
			return err
		}},
		{"rare", 0, 0, func() error {
			infos, _ := r.Lookup(docs[7].fields[URL][1].Term)
			*s = bytesSource{t: t, data: data}
			_, err := r.Postings(infos[URL], true)
			return err
		}},
		{"document", 1, 8 << 10, func() error { _, err := r.Document(2000); return err }},
		{"text", 2, 50 << 10, func() error { _, err := r.Text(2000); return err }},
		{"columns", 1, 35 * 4000, func() error { _, err := r.Columns(); return err }},
		{"small site", 2, 16 << 10, func() error { _, _, err := r.Site("none.example1.org", docs[7].Slot); return err }},
		{"site", 2, 16 << 10, func() error { _, _, err := r.Site(docs[7].Host, docs[7].Slot); return err }},
	}
	for _, step := range steps {
		if step.name != "open" {
			*s = bytesSource{t: t, data: data}
		}
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d reads, %d bytes", step.name, s.reads, s.bytes)
		if s.reads > step.reads || s.bytes > step.bytes {
			t.Errorf("%s takes %d reads of %d bytes, at most %d of %d", step.name, s.reads, s.bytes, step.reads, step.bytes)
		}
	}
}

// TestReaderIsShared uses one reader from several goroutines, for the race detector and for shared scratch memory.
func TestReaderIsShared(t *testing.T) {
	w := newWeb(8, 20, 50)
	var docs []document
	for i := range 500 {
		docs = append(docs, w.page(uint64(i), 0))
	}
	docs = inOrder(docs)
	data, _ := build(t, docs)
	r, err := Open(InMemory(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	want := invert(docs)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := g; i < len(docs); i += 3 {
				d := &docs[i]
				text, err := r.Text(uint32(i))
				if err != nil || text != d.Text {
					t.Errorf("text of document %d: %v", i, err)
				}
				term := d.fields[Body][0].Term
				info, _, err := termIn(r.With(InMemory(data)), Body, term)
				if err != nil || info.Documents != len(want[term][Body]) {
					t.Errorf("%s: %d documents, %v", term, info.Documents, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestPackGroup(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var v, got [group]uint32
		width, outliers := rng.IntN(33), rng.IntN(4)*rng.IntN(40)
		for i := range v {
			v[i] = uint32(rng.Uint64() & (1<<width - 1))
			if rng.IntN(group) < outliers {
				v[i] = rng.Uint32() >> rng.IntN(32)
			}
		}
		b := appendGroup([]byte("x"), &v)[1:]
		if groupSize(b) != len(b) {
			t.Fatalf("size %d of %d bytes", groupSize(b), len(b))
		}
		rest := unpackGroup(&got, append(b, "rest"...))
		if string(rest) != "rest" || got != v {
			t.Fatalf("%v came back as %v", v, got)
		}
		if unpackGroup(&got, b[:len(b)-1]) != nil {
			t.Fatal("took a group that is cut short")
		}
		if len(b) > 2+group/8*32 {
			t.Fatalf("%d bytes", len(b))
		}
	}
}

func TestLengths(t *testing.T) {
	last := -1
	for n := range 600_000 {
		code := packLength(n)
		got := unpackLength(code)
		if got < last || got > n || packLength(got) != code || n < 1<<19-1<<14 && 16*got < 15*n {
			t.Fatalf("length %d is kept as %d", n, got)
		}
		last = got
	}
}

func TestBounds(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	fit := document{Document: Document{URL: "https://example.org/", Host: "example.org"}}
	for name, change := range map[string]func(*document){
		"URL":      func(d *document) { d.URL = long },
		"host":     func(d *document) { d.Host = long },
		"language": func(d *document) { d.Lang = long },
		"slot":     func(d *document) { d.Slot = partition.MaxSlots },
		"body":     func(d *document) { d.BodyBytes = -1 },
		"position": func(d *document) { d.fields[Body] = []TermPosition{{"x", -1}} },
		"distance": func(d *document) { d.fields[URL] = []TermPosition{{"x", MaxPosition + 1}} },
		"tokens":   func(d *document) { d.fields[Body] = make([]TermPosition, MaxTokens+1) },
	} {
		d, b := fit, NewBuilder()
		change(&d)
		if err := b.Add(d.Document, d.fields); !errors.Is(err, ErrDocument) || b.Documents() > 0 {
			t.Errorf("%s: %v", name, err)
		}
	}

	twice := NewBuilder()
	if err := twice.Add(fit.Document, fit.fields); err != nil {
		t.Fatal(err)
	}
	if err := twice.Add(fit.Document, fit.fields); !errors.Is(err, ErrDocument) || twice.Documents() != 1 {
		t.Errorf("the same document twice: %v", err)
	}

	d := fit
	d.Title, d.Text = strings.Repeat("ü", 2000), "z"+strings.Repeat("語", 1<<20)
	d.fields[Body] = []TermPosition{{long, 0}, {"", 1}, {long[:MaxTerm], 3}, {long[:MaxTerm+1], 4}, {"y", 5}}
	for range 1 << 20 {
		d.fields[Title] = append(d.fields[Title], TermPosition{"same", 7})
		d.fields[Headings] = append(d.fields[Headings], TermPosition{"same", int32(len(d.fields[Headings]))})
	}
	slices.Reverse(d.fields[Headings])
	data, sum := build(t, []document{d})
	if want := [NumFields]int64{1 << 20, 1 << 20, 2}; sum.Lengths != want {
		t.Errorf("lengths %v", sum.Lengths)
	}
	d.fields[Body] = []TermPosition{{long[:MaxTerm], 3}, {"y", 5}}
	r, _ := open(t, data)
	index := invert([]document{d})
	for term, fields := range index {
		infos, err := r.Lookup(term)
		if err != nil {
			t.Fatal(err)
		}
		for f := range fields {
			if got := postings(t, r, infos[f]); !slices.EqualFunc(got, fields[f], posting.equal) {
				t.Errorf("postings of %.10q in %s", term, Field(f))
			}
		}
	}
	got, err := r.Document(0)
	if err != nil || got.Title != d.Title[:MaxTitle] {
		t.Errorf("title of %d bytes, %v", len(got.Title), err)
	}
	if got, err := r.Text(0); err != nil || got != d.Text[:1+(MaxText-1)/3*3] {
		t.Errorf("text of %d bytes, %v", len(got), err)
	}
}

func TestSet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{0, 1, 64, 1000} {
		s, want := &Set{}, map[uint32]bool{}
		for range n / 3 {
			doc := uint32(rng.IntN(n))
			s.Add(doc)
			want[doc] = true
		}
		b := s.AppendTo([]byte("x"))[1:]
		got, err := DecodeSet(b, n)
		if err != nil || got.Len() != len(want) || !bytes.Equal(got.AppendTo(nil), b) {
			t.Fatalf("%d of %d, %v", got.Len(), len(want), err)
		}
		for doc := range uint32(n + 100) {
			if got.Has(doc) != want[doc] {
				t.Fatalf("document %d", doc)
			}
		}
		if len(want) > 0 {
			if _, err := DecodeSet(b, 1); n > 64 && !errors.Is(err, wire.ErrDamaged) {
				t.Errorf("set of another segment: %v", err)
			}
		}
	}
	var none *Set
	if none.Len() != 0 || none.Has(0) {
		t.Error("nil is not empty")
	}
}

// TestSize pins the sizes of the parts of a segment.
func TestSize(t *testing.T) {
	var docs []document
	for i, w := 0, newWeb(1, 50, 800); i < 1000; i++ {
		docs = append(docs, w.page(uint64(i), 0))
	}
	data, sum := build(t, docs)
	r, _ := open(t, data)
	var texts, meta, lists, dict, columns, tokens float64
	for _, d := range r.x.docs {
		texts += float64(d.piece.off - d.texts)
		meta += float64(d.piece.length)
	}
	for _, d := range r.x.dict {
		lists += float64(d.end - d.lists)
		dict += float64(d.piece.length)
	}
	for _, c := range r.x.columns {
		columns += float64(c.length)
	}
	for _, n := range sum.Lengths {
		tokens += float64(n)
	}
	n := float64(sum.Documents)
	index := float64(sum.Bytes) - texts - meta - lists - dict - columns
	for _, c := range []struct {
		what      string
		got, most float64
	}{
		{"texts, per byte of text", texts / float64(sum.TextBytes), 0.42},
		{"rest of a document", meta / n, 73},
		{"lists, per token", lists / tokens, 1.7},
		{"dictionary, per term", dict / float64(sum.Terms), 10.5},
		{"columns, per document", columns / n, 24.5},
		{"index, per KB of the object", 1024 * index / float64(sum.Bytes), 0.8},
		{"all, per byte of text", float64(sum.Bytes) / float64(sum.TextBytes), 0.93},
	} {
		t.Logf("%s: %.3f bytes", c.what, c.got)
		if c.got > c.most {
			t.Errorf("%s: %.3f bytes, at most %.3f", c.what, c.got, c.most)
		}
	}
}
