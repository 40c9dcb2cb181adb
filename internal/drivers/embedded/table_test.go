package embedded

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableConditions(t *testing.T) {
	tb := NewTable(nil)
	r1, err := tb.Create("k", []byte("1"))
	ok(t, err)
	if _, err := tb.Create("k", nil); !errors.Is(err, ErrExists) {
		t.Fatalf("create again: %v", err)
	}
	r2, err := tb.Replace("k", []byte("2"), r1)
	ok(t, err)
	if _, err := tb.Replace("k", nil, r1); !errors.Is(err, ErrConflict) {
		t.Fatalf("replace of an old revision: %v", err)
	}
	if err := tb.Delete("k", r1); !errors.Is(err, ErrConflict) {
		t.Fatalf("delete of an old revision: %v", err)
	}
	r3, err := tb.Replace("k", []byte("3"), 0)
	ok(t, err)
	r4 := tb.Put("k", []byte("4"))
	v, rev, has := tb.Get("k")
	if string(v) != "4" || rev != r4 || !has {
		t.Fatalf("got %q %d %v", v, rev, has)
	}
	ok(t, tb.Delete("k", r4))
	ok(t, tb.Delete("k", 0)) // gone already
	for name, err := range map[string]error{
		"replace":    second(tb.Replace("k", nil, r4)),
		"delete":     tb.Delete("k", r4),
		"one, batch": third(tb.Batch([]Op{{Kind: OpReplace, Key: "k", Rev: r4}})),
	} {
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%s of a deleted key's revision: %v", name, err)
		}
	}
	if _, err := tb.Replace("k", nil, 0); !errors.Is(err, ErrNotFound) {
		t.Fatalf("replace of nothing: %v", err)
	}
	r5, err := tb.Create("k", nil)
	ok(t, err)
	revs := []uint64{r1, r2, r3, r4, r5}
	if !slices.IsSorted(revs) || len(slices.Compact(revs)) != 5 {
		t.Fatalf("revisions %v", revs)
	}
}

func third[A, B any](_ A, _ B, err error) error { return err }

func TestBatchIsAtomic(t *testing.T) {
	tb := NewTable(nil)
	ra := tb.Put("a", []byte("a"))
	tb.Put("b", []byte("b"))
	before := dump(tb)
	for _, tc := range []struct {
		name   string
		ops    []Op
		failed int
		want   error
	}{
		{"exists", []Op{{OpPut, "c", nil, 0}, {OpCreate, "b", nil, 0}}, 1, ErrExists},
		{"conflict", []Op{{OpDelete, "b", nil, 0}, {OpPut, "x", nil, 0}, {OpReplace, "a", nil, ra + 1}}, 2, ErrConflict},
		{"missing", []Op{{OpReplace, "z", nil, 0}, {OpPut, "a", nil, 0}}, 0, ErrNotFound},
		{"twice", []Op{{OpPut, "a", nil, 0}, {OpDelete, "a", nil, 0}}, 1, ErrRepeated},
		{"kind", []Op{{OpPut, "a", nil, 0}, {9, "b", nil, 0}}, 1, nil},
	} {
		_, failed, err := tb.Batch(tc.ops)
		if failed != tc.failed || err == nil || (tc.want != nil && !errors.Is(err, tc.want)) {
			t.Errorf("%s: operation %d, %v", tc.name, failed, err)
		}
		if diff := cmp.Diff(before, dump(tb)); diff != "" {
			t.Fatalf("%s left (-want +got):\n%s", tc.name, diff)
		}
	}
	revs, failed, err := tb.Batch([]Op{{OpReplace, "a", []byte("A"), ra}, {OpDelete, "b", nil, 0}, {OpCreate, "c", []byte("C"), 0}})
	if err != nil || failed != -1 {
		t.Fatal(failed, err)
	}
	if diff := cmp.Diff([]string{"a=A", "c=C"}, dump(tb)); diff != "" || revs[1] != 0 || revs[0] >= revs[2] {
		t.Fatalf("revisions %v (-want +got):\n%s", revs, diff)
	}
}

func dump(tb *Table) []string {
	var out []string
	for k, it := range tb.Scan("", "") {
		out = append(out, k+"="+string(it.Value))
	}
	return out
}

func TestScan(t *testing.T) {
	tb := NewTable(nil)
	for _, k := range []string{"b/2", "a", "b/1", "c", "b/3", "b"} {
		tb.Put(k, nil)
	}
	for _, tc := range []struct {
		prefix, from string
		want         string
	}{
		{"", "", "a b b/1 b/2 b/3 c"},
		{"b/", "", "b/1 b/2 b/3"},
		{"b/", "b/2", "b/2 b/3"},
		{"b/", "b/20", "b/3"},
		{"b/", "c", ""},
		{"", "b/4", "c"},
		{"x", "", ""},
	} {
		var got []string
		for k := range tb.Scan(tc.prefix, tc.from) {
			got = append(got, k)
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("prefix %q from %q (-want +got):\n%s", tc.prefix, tc.from, diff)
		}
	}
	for range tb.Scan("", "") { // stopping is allowed
		break
	}
	for range NewTable(nil).Scan("", "") {
		t.Fatal("empty table yields")
	}
}

// TestScanWhileWriting: a scan meets every key that was there all the time once.
func TestScanWhileWriting(t *testing.T) {
	tb := NewTable(nil)
	for i := range 3000 {
		tb.Put(fmt.Sprintf("%05d", i*2), nil)
	}
	seen := 0
	last := ""
	for k := range tb.Scan("", "") {
		if k <= last {
			t.Fatalf("%s after %s", k, last)
		}
		last = k
		ok(t, tb.Delete(k, 0))
		if k[4]%2 == 0 {
			seen++
			tb.Put(k[:4]+string(k[4]+1), nil) // just ahead
			tb.Put("!"+k, nil)                // behind
		}
	}
	if seen != 3000 {
		t.Fatalf("met %d of 3000 keys", seen)
	}
}

func TestTableAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		log, d := NewLog(), newDisk()
		tb := NewTable(log)
		model := map[string]string{}
		top := uint64(0)
		for i := range 6000 {
			k := fmt.Sprint(rng.IntN(2500))
			switch rng.IntN(5) {
			case 0, 1, 2:
				v := fmt.Sprint(i)
				rev := tb.Put(k, []byte(v))
				if rev <= top {
					t.Fatalf("revision %d after %d", rev, top)
				}
				top, model[k] = rev, v
			case 3:
				ok(t, tb.Delete(k, 0))
				delete(model, k)
			case 4:
				if i%500 == 0 {
					d.apply(log.Drain())
					_, tb = d.load(t, log)
				}
				v, _, has := tb.Get(k)
				if want, there := model[k]; string(v) != want || has != there {
					t.Fatalf("get %s: %q %v, want %q %v", k, v, has, want, there)
				}
			}
		}
		var want []string
		for _, k := range slices.Sorted(maps.Keys(model)) {
			want = append(want, k+"="+model[k])
		}
		if diff := cmp.Diff(want, dump(tb)); diff != "" || tb.Len() != len(model) {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}

// TestRevisionsAreNotReused: not even when the key with the highest one was
// deleted before the file was closed.
func TestRevisionsAreNotReused(t *testing.T) {
	log, d := NewLog(), newDisk()
	tb := NewTable(log)
	old := tb.Put("k", nil)
	ok(t, tb.Delete("k", old))
	d.apply(log.Drain())
	_, tb = d.load(t, log)
	again, err := tb.Create("k", nil)
	ok(t, err)
	if again <= old {
		t.Fatalf("revision %d came again as %d", old, again)
	}
}

func BenchmarkTable(b *testing.B) {
	tb := NewTable(nil)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = fmt.Sprintf("heads/%08x", uint32(i)*2654435761)
	}
	b.Run("fill", func(b *testing.B) {
		for b.Loop() {
			tb = NewTable(nil)
			for _, k := range keys {
				tb.Put(k, nil)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(keys)), "ns/key")
	})
	i := 0
	b.Run("get", func(b *testing.B) {
		for b.Loop() {
			i++
			tb.Get(keys[i%len(keys)])
		}
	})
	b.Run("put", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			i++
			tb.Put(keys[i%len(keys)], nil)
		}
	})
}
