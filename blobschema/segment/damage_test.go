package segment

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// walk reads everything in a segment, and merges it.
func walk(src Source, size int64) error {
	r, err := Open(src, size)
	if err != nil {
		return err
	}
	if _, err := r.Columns(); err != nil {
		return err
	}
	for doc := 0; doc < r.Documents(); doc += 10 { // Merge reads all
		d, err := r.Document(uint32(doc))
		if err != nil {
			return err
		}
		if _, err := r.Text(uint32(doc)); err != nil {
			return err
		}
		if _, _, err := r.Site(d.Host, d.Slot); err != nil {
			return err
		}
	}
	for f := range NumFields {
		infos, err := termsOf(r, f, "")
		if err != nil {
			return err
		}
		for _, info := range infos {
			p, err := r.Postings(info.TermInfo, true)
			if err != nil {
				return err
			}
			if err := walkPostings(p); err != nil {
				return err
			}
		}
	}
	_, err = Merge([]Input{{Reader: r}, {Reader: r}}, r.size/5)
	return err
}

func walkPostings(p *Postings) error {
	for p.Next() {
		p.Positions(nil)
	}
	return p.Err()
}

func known(err error) bool {
	return err == nil || errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrVersion)
}

// smallSegment returns a segment with every kind of list: inline, short, and of full blocks.
func smallSegment(t testing.TB) []byte {
	w := newWeb(6, 20, 3)
	var docs []document
	for i := range 150 {
		d := w.page(uint64(i), 0)
		d.fields[Anchor] = append(d.fields[Anchor], TermPosition{"everywhere", 3}, TermPosition{"everywhere", 70_000})
		docs = append(docs, d)
	}
	data, _ := build(t, docs)
	return data
}

// TestDamageIsFound inverts every byte of a segment, one at a time.
func TestDamageIsFound(t *testing.T) {
	data := smallSegment(t)
	if err := walk(InMemory(data), int64(len(data))); err != nil {
		t.Fatal(err)
	}
	r, _ := open(t, data)
	info, ok, err := termIn(r, Anchor, "everywhere")
	if err != nil || !ok || info.Documents < group || info.list.inline != nil {
		t.Fatalf("%+v, %t, %v: it shows nothing", info, ok, err)
	}
	step := 1 + len(data)/300
	for i := header; i < len(data); i++ {
		if i < len(data)-100 && i%step != 0 {
			continue
		}
		data[i] ^= 0x41
		if err := walk(InMemory(data), int64(len(data))); err == nil || !known(err) {
			t.Errorf("byte %d of %d: %v", i, len(data), err)
		}
		data[i] ^= 0x41
	}
	for _, n := range []int{0, 1, header + tailSize - 1, header + tailSize, len(data) / 2, len(data) - 1} {
		if err := walk(InMemory(data[:n]), int64(n)); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("cut to %d bytes: %v", n, err)
		}
	}
	data[len(data)-len(magicEnd)-1]++
	if _, err := Open(InMemory(data), int64(len(data))); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("another version: %v", err)
	}
}

// TestSourceFails checks that the source's errors are returned, and that a wrong length is an error.
// TestReadsStayInside checks that no offset or number in a segment leads to a read outside it.
func TestReadsStayInside(t *testing.T) {
	data := smallSegment(t)
	size := int64(len(data))
	r, err := Open(func(off, length int64) ([]byte, error) {
		if off < 0 || length <= 0 || off+length > size {
			t.Errorf("%d bytes at %d are read", length, off)
		}
		return data[off : off+length], nil
	}, size)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		off, length int64
		ok          bool
	}{
		{0, size, true}, {size - 1, 1, true}, {size, 0, true}, {0, 0, true},
		{-1, 1, false}, {0, -1, false}, {size, 1, false}, {1, size, false}, {size + 1, 0, false}, {math.MaxInt64, 1, false}, {1, math.MaxInt64, false}, {math.MinInt64, math.MinInt64, false},
	} {
		if b, err := r.read(c.off, c.length); (err == nil) != c.ok || c.ok && int64(len(b)) != c.length || err != nil && !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%d bytes at %d: %d, %v", c.length, c.off, len(b), err)
		}
	}
	n := uint32(r.Documents())
	for doc, ok := range map[uint32]bool{0: true, n - 1: true, n: false, n + docsBlock: false, math.MaxUint32: false} {
		if _, err := r.Document(doc); (err == nil) != ok || err != nil && !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("document %d of %d: %v", doc, n, err)
		}
	}
	c, err := r.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if got, least := c.Bytes(), int64(n)*(4*4+2*8+1); got < least || got > 2*least {
		t.Errorf("columns of %d documents take %d bytes, at least %d", n, got, least)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		n    int
		want string
	}{{0, ""}, {1, "a"}, {2, "a"}, {3, "aä"}, {5, "aä"}, {6, "aä日"}, {9, "aä日"}} {
		if got := cut("aä日", c.n); got != c.want {
			t.Errorf("to %d bytes: %q, want %q", c.n, got, c.want)
		}
	}
}

func TestSourceFails(t *testing.T) {
	data := smallSegment(t)
	gone := errors.New("gone")
	for n := range 40 {
		left := n
		src := func(off, length int64) ([]byte, error) {
			if left--; left < 0 {
				return nil, gone
			}
			return data[off : off+length], nil
		}
		if err := walk(src, int64(len(data))); !errors.Is(err, gone) {
			t.Fatalf("after %d reads: %v", n, err)
		}
		left = n
		short := func(off, length int64) ([]byte, error) {
			if left--; left < 0 {
				length--
			}
			return data[off : off+length], nil
		}
		if err := walk(short, int64(len(data))); !errors.Is(err, wire.ErrDamaged) {
			t.Fatalf("cut after %d reads: %v", n, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	data := smallSegment(f)
	f.Add(data)
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := walk(InMemory(data), int64(len(data))); !known(err) {
			t.Fatal(err)
		}
	})
}

// FuzzIndex fuzzes indexes with a right checksum.
func FuzzIndex(f *testing.F) {
	data := smallSegment(f)
	r, _ := open(f, data)
	lists := int64(0)
	for _, d := range r.x.dict {
		lists += d.end - d.lists
	}
	index := r.x.append(nil, lists)
	end := r.x.columns[numColumns-1]
	body := data[: end.off+end.length : end.off+end.length]
	whole := seal(body, index)
	if err := walk(InMemory(whole), int64(len(whole))); err != nil {
		f.Fatal(err)
	}
	f.Add(index)
	f.Fuzz(func(t *testing.T, index []byte) {
		data := seal(body, index)
		if err := walk(InMemory(data), int64(len(data))); !known(err) {
			t.Fatal(err)
		}
	})
}

func FuzzDictionary(f *testing.F) {
	r, s := open(f, smallSegment(f))
	ref := r.x.dict[0]
	raw, err := ref.piece.read(s.read, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, 150)
	f.Fuzz(func(t *testing.T, raw []byte, documents int) {
		if documents < 0 || documents > maxDocuments {
			return
		}
		d := ref.open(raw, documents)
		for d.next() {
			for _, info := range d.infos {
				l := &info.list
				if info.Documents > documents || l.postings+l.size > ref.end || l.positions+l.length > ref.end {
					t.Fatalf("%+v", info)
				}
				if info.list.inline != nil {
					var p Postings
					if p.open(&info, documents, l.inline, nil) == nil {
						walkPostings(&p)
					}
				}
			}
		}
		if !known(d.c.Err) {
			t.Fatal(d.c.Err)
		}
	})
}

func FuzzDocuments(f *testing.F) {
	r, s := open(f, smallSegment(f))
	ref := r.x.docs[0]
	raw, err := ref.piece.read(s.read, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw, uint8(docsBlock))
	f.Fuzz(func(t *testing.T, raw []byte, n uint8) {
		var d docsDecoder
		docs, err := d.decode(raw, &ref, int(n%docsBlock)+1)
		if !known(err) {
			t.Fatal(err)
		}
		for i := range docs {
			x := &docs[i].text
			if x.from > x.to || int64(x.to) > x.piece.raw || x.piece.off+x.piece.length > ref.piece.off {
				t.Fatalf("%+v", x)
			}
		}
	})
}

func FuzzPostings(f *testing.F) {
	r, s := open(f, smallSegment(f))
	for _, term := range []string{"everywhere", "ba"} {
		info, _, err := termIn(r, Anchor, term)
		if err != nil {
			f.Fatal(err)
		}
		if info.list.size == 0 {
			continue
		}
		postings, _ := s.read(info.list.postings, info.list.size-4)
		positions, _ := s.read(info.list.positions, info.list.length-4)
		f.Add(postings, positions, info.Documents, 150)
	}
	f.Fuzz(func(t *testing.T, postings, positions []byte, count, documents int) {
		if count < 0 || documents < 0 || documents > maxDocuments || count > documents || positions == nil {
			return
		}
		for step := range 2 {
			var p Postings
			err := p.open(&TermInfo{Documents: count}, documents, postings, positions)
			if !known(err) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			last, n := -1, 0
			for p.Next() || step == 1 && p.Advance(uint32(last+100)) {
				if int(p.Doc()) <= last || int(p.Doc()) >= documents {
					t.Fatalf("document %d of %d after %d", p.Doc(), documents, last)
				}
				last = int(p.Doc())
				if n++; n < 100 {
					p.Positions(nil)
				}
			}
			if !known(p.Err()) || n > count {
				t.Fatalf("%d of %d documents, %v", n, count, p.Err())
			}
		}
	})
}

func FuzzColumns(f *testing.F) {
	f.Add([]byte("\x02\x02en\x02de\x00\x01\x02"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		if n < 0 || n > 1<<20 {
			return
		}
		var c Columns
		for i := range numColumns {
			if err := c.load(i, raw, n); !known(err) {
				t.Fatal(err)
			} else if err == nil && i == columnLangs {
				for doc := range n {
					c.Lang(uint32(doc))
				}
			}
		}
	})
}

func FuzzSet(f *testing.F) {
	s := &Set{}
	s.Add(3)
	s.Add(900)
	b := s.AppendTo(nil)
	f.Add(b[:len(b)-4], 1000)
	f.Fuzz(func(t *testing.T, b []byte, documents int) {
		if documents < 0 || documents > 1<<20 {
			return
		}
		s, err := DecodeSet(appendChecked(nil, b), documents)
		if !known(err) {
			t.Fatal(err)
		}
		if err == nil && s.Len() > len(b) {
			t.Fatalf("%d documents of %d bytes", s.Len(), len(b))
		}
	})
}

// FuzzBuild compares a built segment with the added documents.
func FuzzBuild(f *testing.F) {
	f.Add("a b c a", "x a", "example.org", uint64(7), int64(1))
	f.Fuzz(func(t *testing.T, body, title, host string, fp uint64, seconds int64) {
		var d document
		d.URL, d.Host, d.Fingerprint, d.Time = "https://"+host+"/", host, fp, time.Unix(seconds%1e10, 0).UTC()
		d.Title, d.Text = cut(title, MaxTitle), cut(body, MaxText)
		for i, term := range strings.Fields(body) {
			if len(term) <= MaxTerm {
				d.fields[Body] = append(d.fields[Body], TermPosition{term, int32(i)})
			}
		}
		if len(host) > MaxHost {
			return
		}
		other := d
		other.Fingerprint, other.URL = fp^1<<40, d.URL+"x"
		data, _ := build(t, []document{d, other})
		mustEqual(t, data, []document{d, other})
	})
}
