package drivers

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gocloud.dev/docstore"
	"gocloud.dev/gcerrors"
)

type doc = map[string]any

// eachStore runs f on a Store of each kind.
func eachStore(t *testing.T, f func(t *testing.T, s *Store, m *calls)) {
	for name, open := range stores() {
		t.Run(name, func(t *testing.T) {
			m := &calls{}
			f(t, open(t, Options{Meter: m}), m)
		})
	}
}

// collectionOf returns a collection that is closed when the test ends.
func collectionOf(t testing.TB, s *Store, name, key string) *docstore.Collection {
	c := s.Collection(name, key)
	t.Cleanup(func() { must(t, c.Close()) })
	return c
}

func wantCode(t *testing.T, what string, err error, want gcerrors.ErrorCode) {
	t.Helper()
	if got := gcerrors.Code(err); got != want {
		t.Errorf("%s: %v: %v, want %v", what, err, got, want)
	}
}

func TestRevisions(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, _ *calls) {
		ctx, coll := t.Context(), collectionOf(t, s, "c", "k")
		first := doc{"k": "a", "v": 1, "DocstoreRevision": nil}
		must(t, coll.Create(ctx, first))
		second := doc{"k": "a", "v": 2, "DocstoreRevision": first["DocstoreRevision"]}
		must(t, coll.Replace(ctx, second))
		stale := func() doc { return doc{"k": "a", "v": 3, "DocstoreRevision": first["DocstoreRevision"]} }
		wantCode(t, "stale replace", coll.Replace(ctx, stale()), gcerrors.FailedPrecondition)
		wantCode(t, "stale put", coll.Put(ctx, stale()), gcerrors.FailedPrecondition)
		wantCode(t, "stale update", coll.Update(ctx, stale(), docstore.Mods{"v": 3}), gcerrors.FailedPrecondition)
		wantCode(t, "stale delete", coll.Delete(ctx, stale()), gcerrors.FailedPrecondition)
		must(t, coll.Delete(ctx, second))
		wantCode(t, "replace of a deleted one", coll.Replace(ctx, stale()), gcerrors.FailedPrecondition)
		wantCode(t, "update of a deleted one", coll.Update(ctx, stale(), docstore.Mods{"v": 3}), gcerrors.FailedPrecondition)
		wantCode(t, "delete of a deleted one", coll.Delete(ctx, stale()), gcerrors.FailedPrecondition)
		wantCode(t, "get of a deleted one", coll.Get(ctx, doc{"k": "a"}), gcerrors.NotFound)
		wantCode(t, "replace of nothing", coll.Replace(ctx, doc{"k": "a"}), gcerrors.NotFound)
		wantCode(t, "not a revision", coll.Replace(ctx, doc{"k": "a", "DocstoreRevision": 7}), gcerrors.InvalidArgument)
		again := doc{"k": "a", "DocstoreRevision": nil}
		must(t, coll.Create(ctx, again)) // no ABA
		if again["DocstoreRevision"] == first["DocstoreRevision"] {
			t.Error("a revision came again")
		}
		wantCode(t, "replace of the old life", coll.Replace(ctx, stale()), gcerrors.FailedPrecondition)
	})
}

func TestRevisionsAfterReopening(t *testing.T) {
	dir := t.TempDir()
	ctx := t.Context()
	s, err := openStore(dir, Options{})
	must(t, err)
	old := doc{"k": "a", "DocstoreRevision": nil}
	must(t, collectionOf(t, s, "c", "k").Create(ctx, old))
	stale := doc{"k": "a", "DocstoreRevision": old["DocstoreRevision"]}
	must(t, collectionOf(t, s, "c", "k").Delete(ctx, old))
	must(t, s.Close())
	s = openDir(t, dir, Options{})
	must(t, collectionOf(t, s, "c", "k").Create(ctx, doc{"k": "a"}))
	wantCode(t, "replace", collectionOf(t, s, "c", "k").Replace(ctx, stale), gcerrors.FailedPrecondition)
}

func TestAtomicWrites(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, m *calls) {
		ctx, coll := t.Context(), collectionOf(t, s, "c", "k")
		must(t, coll.Put(ctx, doc{"k": "there", "n": 1}))
		must(t, coll.Put(ctx, doc{"k": "too"}))
		m.take()
		err := coll.Actions().Put(doc{"k": "single"}).AtomicWrites().
			Create(doc{"k": "new"}).
			Update(doc{"k": "there"}, docstore.Mods{"n": docstore.Increment(1)}).
			Create(doc{"n": "no key"}).
			Create(doc{"k": "too"}).
			Do(ctx)
		var list docstore.ActionListError
		if !errors.As(err, &list) || len(list) != 4 || list[0].Index != 1 {
			t.Fatalf("errors: %v", err)
		}
		for _, e := range list {
			wantCode(t, fmt.Sprint("action ", e.Index), e.Err, gcerrors.AlreadyExists)
		}
		if diff := cmp.Diff([]string{"single", "there", "too"}, keys(t, coll.Query())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		got := doc{"k": "there"}
		must(t, coll.Get(ctx, got))
		if got["n"] != int64(1) {
			t.Errorf("n is %v", got["n"])
		}
		if n := m.count("write"); n != 1+2*4 {
			t.Errorf("%d writes counted, want 1 and twice 4", n)
		}
		many := coll.Actions().AtomicWrites()
		for i := range maxAtomicWrites + 1 {
			many.Put(doc{"k": fmt.Sprint("many", i)})
		}
		wantCode(t, "too many", firstError(t, many.Do(ctx)), gcerrors.InvalidArgument)
	})
}

func firstError(t *testing.T, err error) error {
	t.Helper()
	var list docstore.ActionListError
	if !errors.As(err, &list) {
		t.Fatalf("no list of errors: %v", err)
	}
	return list[0].Err
}

func keys(t *testing.T, q *docstore.Query) []string {
	t.Helper()
	it := q.Get(t.Context())
	defer it.Stop()
	var out []string
	for {
		d := doc{}
		err := it.Next(t.Context(), d)
		if err == io.EOF {
			return out
		}
		must(t, err)
		out = append(out, d["k"].(string))
	}
}

func TestQueries(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, m *calls) {
		coll := collectionOf(t, s, "c", "k")
		list := coll.Actions()
		for _, k := range []string{"b/2", "a", "b/1", "b/3", "c"} {
			list.Put(doc{"k": k, "n": len(k)})
		}
		must(t, list.Do(t.Context()))
		must(t, collectionOf(t, s, "c2", "k").Put(t.Context(), doc{"k": "b/9"}))
		must(t, collectionOf(t, s, "b", "k").Put(t.Context(), doc{"k": "b/0"}))
		for name, tc := range map[string]struct {
			q    *docstore.Query
			want string
			plan string
		}{
			"all":       {coll.Query(), "a b/1 b/2 b/3 c", "scan"},
			"prefix":    {coll.Query().Where("k", ">=", "b/").Where("k", "<", "b0"), "b/1 b/2 b/3", "range"},
			"above":     {coll.Query().Where("k", ">", "b/2"), "b/3 c", "range"},
			"up to":     {coll.Query().Where("k", "<=", "b/2"), "a b/1 b/2", "range"},
			"equal":     {coll.Query().Where("k", "=", "b/2"), "b/2", "range"},
			"empty":     {coll.Query().Where("k", ">", "b").Where("k", "<", "a"), "", "range"},
			"limit":     {coll.Query().Offset(1).Limit(2), "b/1 b/2", "scan"},
			"other":     {coll.Query().Where("n", "=", 1).Limit(2), "a c", "scan"},
			"both":      {coll.Query().Where("n", "=", 3).Where("k", "<", "b/3").Limit(9), "b/1 b/2", "range"},
			"in":        {coll.Query().Where("k", "in", []string{"c", "a"}).Limit(2), "a c", "scan"},
			"downwards": {coll.Query().OrderBy("k", docstore.Descending).Limit(2), "c b/3", "scan"},
			"mismatch":  {coll.Query().Where("n", "=", "1"), "", "scan"},
			"missing":   {coll.Query().Where("nope", ">", 0), "", "scan"},
		} {
			if diff := cmp.Diff(tc.want, strings.Join(keys(t, tc.q), " ")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if plan, err := tc.q.Plan(); err != nil || plan != tc.plan {
				t.Errorf("%s: plan %s, %v", name, plan, err)
			}
		}
	})
}

func TestValues(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, _ *calls) {
		type inner struct{ A, B string }
		type whole struct {
			K       string
			Big     uint64
			Small   int64
			F       float64
			At      time.Time
			Bytes   []byte
			List    []inner
			Map     map[string][]int
			Nothing *int
			Rev     any
		}
		ctx := t.Context()
		coll := docstore.NewCollection(newCollection(s, "c", collectionKey{field: "K"}, "Rev"))
		defer coll.Close()
		in := whole{
			K: "k", Big: math.MaxUint64, Small: math.MinInt64, F: 3, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC),
			Bytes: []byte{0, 255}, List: []inner{{"a", "b"}}, Map: map[string][]int{"x": {1, -1}},
		}
		must(t, coll.Create(ctx, &in))
		out := whole{K: "k"}
		must(t, coll.Get(ctx, &out))
		if diff := cmp.Diff(in, out); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		in.Bytes[0] = 9 // the caller's slice is its own again
		again := whole{K: "k"}
		must(t, coll.Get(ctx, &again))
		if diff := cmp.Diff(out, again); diff != "" {
			t.Errorf("shares memory (-want +got):\n%s", diff)
		}
	})
}

func TestRefusedDocuments(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, _ *calls) {
		ctx, coll := t.Context(), collectionOf(t, s, "c", "k")
		must(t, coll.Put(ctx, doc{"k": "there", "s": "text"}))
		for name, err := range map[string]error{
			"key type":     coll.Put(ctx, doc{"k": 7}),
			"long key":     coll.Put(ctx, doc{"k": strings.Repeat("k", maxKeyBytes+1)}),
			"large":        coll.Put(ctx, doc{"k": "k", "v": make([]byte, maxDocumentBytes)}),
			"not UTF-8":    coll.Put(ctx, doc{"k": "k", "v": []any{doc{"x": "\xff"}}}),
			"bad key":      coll.Put(ctx, doc{"k": "k", "\xff": 1}),
			"no type":      coll.Put(ctx, doc{"k": "k", "v": make(chan int)}),
			"update path":  coll.Update(ctx, doc{"k": "there"}, docstore.Mods{"n": 1, "s.x": 1}),
			"add to text":  coll.Update(ctx, doc{"k": "there"}, docstore.Mods{"n": 1, "s": docstore.Increment(1)}),
			"update text":  coll.Update(ctx, doc{"k": "there"}, docstore.Mods{"n": "\xff"}),
			"collection":   collectionOf(t, s, "", "k").Put(ctx, doc{"k": "k"}),
			"collection 0": collectionOf(t, s, "a\x00b", "k").Get(ctx, doc{"k": "k"}),
			"query":        collectionOf(t, s, "", "k").Query().Get(ctx).Next(ctx, doc{}),
			"no key field": collectionOf(t, s, "c", "").Create(ctx, doc{"k": "k"}),
		} {
			wantCode(t, name, err, gcerrors.InvalidArgument)
		}
		got := doc{"k": "there"}
		must(t, coll.Get(ctx, got))
		if diff := cmp.Diff(doc{"k": "there", "s": "text"}, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestRaceForOneDocument: of many writers of one revision one wins each round.
func TestRaceForOneDocument(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store, _ *calls) {
		ctx, coll := t.Context(), collectionOf(t, s, "c", "k")
		must(t, coll.Create(ctx, doc{"k": "head", "n": 0, "DocstoreRevision": nil}))
		var wg sync.WaitGroup
		wins := make(chan int, 1000)
		for range 8 {
			wg.Go(func() {
				for range 20 {
					d := doc{"k": "head"}
					if err := coll.Get(ctx, d); err != nil {
						t.Error(err)
						return
					}
					d["n"] = d["n"].(int64) + 1
					switch err := coll.Replace(ctx, d); gcerrors.Code(err) {
					case gcerrors.OK:
						wins <- 1
					case gcerrors.FailedPrecondition:
					default:
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		d := doc{"k": "head"}
		must(t, coll.Get(ctx, d))
		if d["n"] != int64(len(wins)) {
			t.Errorf("%v increments for %d wins", d["n"], len(wins))
		}
	})
}

// FuzzDocument: a document of the file, whatever it is, decodes or is an error.
func FuzzDocument(f *testing.F) {
	c := newCodec()
	seed, err := c.marshal(doc{"a": int64(-1), "b": []any{uint64(1), 1.5, nil, true}, "c": doc{"d": []byte{1}, "t": time.Unix(0, 1).UTC()}})
	must(f, err)
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		tree, err := c.unmarshal(b)
		if err != nil {
			return
		}
		again, err := c.marshal(tree)
		if err != nil {
			return // CBOR has types that documents have not
		}
		if _, err := c.unmarshal(again); err != nil {
			t.Fatalf("%v: cannot read what was written: %v", tree, err)
		}
	})
}
