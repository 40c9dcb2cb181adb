package segment

import (
	"errors"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// checked150 returns a segment with every kind of list: inline, short, and of full blocks.
func checked150(t testing.TB) (data []byte, docs []document) {
	w := newWeb(6, 20, 3)
	for i := range 150 {
		d := w.page(uint64(i), 0)
		d.fields[Anchor] = append(d.fields[Anchor], TermPosition{"everywhere", 3}, TermPosition{"everywhere", 70_000})
		docs = append(docs, d)
	}
	data, _ = build(t, docs)
	return data, docs
}

func checkBytes(data []byte) error {
	r, err := Open(func(off, length int64) ([]byte, error) { return data[off : off+length : off+length], nil }, int64(len(data)))
	if err != nil {
		return err
	}
	return r.Check(nil)
}

func TestCheck(t *testing.T) {
	data, docs := checked150(t)
	r, _ := open(t, data)
	var got []Document
	err := r.Check(func(doc uint32, d *Document) error {
		if int(doc) != len(got) {
			t.Errorf("document %d comes as the %d-th", doc, len(got))
		}
		got = append(got, *d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []Document
	for _, d := range inOrder(docs) {
		want = append(want, d.Document)
	}
	if d := gocmp.Diff(want, got); d != "" {
		t.Errorf("documents (-want +got):\n%s", d)
	}
	stop := errors.New("enough")
	if err := r.Check(func(uint32, *Document) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the visitor's error: %v", err)
	}
	merged, err := Merge([]Input{{Reader: r}}, r.size/5)
	if err != nil || len(merged) < 2 {
		t.Fatal(len(merged), err)
	}
	for _, out := range merged {
		if err := checkBytes(out.Data); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckFindsDamage inverts single bytes anywhere: every byte has a checksum.
func TestCheckFindsDamage(t *testing.T) {
	data, _ := checked150(t)
	step := 1 + len(data)/400
	for i := range data {
		if i > 20 && i < len(data)-100 && i%step != 0 {
			continue
		}
		data[i] ^= 0x41
		if err := checkBytes(data); !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrVersion) {
			t.Errorf("byte %d of %d: %v", i, len(data), err)
		}
		data[i] ^= 0x41
	}
}

// TestCheckFindsDisagreement checks segments whose parts are intact but disagree.
func TestCheckFindsDisagreement(t *testing.T) {
	make := func(change func(*writer), list func([]uint64)) []byte {
		w := newWriter()
		for i := range 3 {
			s := &stored{host: "org,"}
			s.URL, s.Host, s.Fingerprint, s.Slot, s.Text = "https://org/"+string(rune('a'+i)), "org", uint64(i+1), 7, "text"
			w.add(s)
		}
		var lists [NumFields][]uint64
		lists[Body] = []uint64{4, 2<<32 | 5, 2<<32 | 6}
		if list != nil {
			list(lists[Body])
		}
		w.dict.add("term", &lists)
		if change != nil {
			change(w)
		}
		data := w.finish().Data
		return data
	}
	if err := checkBytes(make(nil, nil)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"a slot of the table":           make(func(w *writer) { w.columns.words[columnSlots][1]++ }, nil),
		"a fingerprint":                 make(func(w *writer) { w.columns.longs[columnFingerprints][2]++ }, nil),
		"a generation":                  make(func(w *writer) { w.columns.words[columnGenerations][0]++ }, nil),
		"a time":                        make(func(w *writer) { w.columns.words[columnTimes][0]++ }, nil),
		"a language":                    make(func(w *writer) { w.columns.langs, w.columns.lang[0] = []string{"", "xx"}, 1 }, nil),
		"a SimHash":                     make(func(w *writer) { w.columns.longs[columnSimHashes][0]++ }, nil),
		"the first slot":                make(func(w *writer) { w.summary.First-- }, nil),
		"the last slot":                 make(func(w *writer) { w.summary.Last++ }, nil),
		"bytes of text":                 make(func(w *writer) { w.summary.TextBytes++ }, nil),
		"number of terms":               make(func(w *writer) { w.dict.terms++ }, nil),
		"tokens of a field":             make(func(w *writer) { w.dict.tokens[Title]++ }, nil),
		"an unknown document":           make(nil, func(l []uint64) { l[1], l[2] = 3<<32|5, 3<<32|6 }),
		"a frequency of the dictionary": make(func(w *writer) { w.dict.block[len("\x00\x04term")+2]++ }, nil),
		"order of documents": make(func(w *writer) {
			w.docs.block[0].URL, w.docs.block[1].URL = w.docs.block[1].URL, w.docs.block[0].URL
		}, nil),
	} {
		if err := checkBytes(data); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
