package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTableConditions(t *testing.T) {
	tb := NewTable(nil)
	first, err := tb.Write("k", []byte("a"), 0)
	ok(t, err)
	second, err := tb.Write("k", []byte("b"), first)
	ok(t, err)
	for name, rev := range map[string]uint64{"create again": 0, "stale": first, "never given": second + 1} {
		if _, err := tb.Write("k", []byte("c"), rev); !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tb.Write("none", nil, second); !errors.Is(err, ErrConflict) {
		t.Errorf("replace of nothing: %v", err)
	}
	if v, rev := tb.Get("k"); string(v) != "b" || rev != second {
		t.Errorf("it holds %q with revision %d, want b with %d", v, rev, second)
	}
	if _, rev := tb.Get("none"); rev != 0 || tb.Len() != 1 {
		t.Errorf("revision %d of nothing, %d keys", rev, tb.Len())
	}
}

// TestTableAgainstModel writes and reloads a table beside a model. No revision may come twice.
func TestTableAgainstModel(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 2))
		log, d := NewLog(), newDisk()
		tb := NewTable(log)
		model := map[string]string{}
		top := uint64(0)
		for i := range 6000 {
			k, v := fmt.Sprint(rng.IntN(2500)), fmt.Sprint(i)
			_, rev := tb.Get(k)
			next, err := tb.Write(k, []byte(v), rev)
			ok(t, err)
			if next <= top {
				t.Fatalf("revision %d after %d", next, top)
			}
			top, model[k] = next, v
			if i%500 == 0 {
				d.apply(log.Drain())
				_, tb = d.load(t, log)
			}
		}
		got := map[string]string{}
		before := ""
		for k, v := range tb.All() {
			if k <= before {
				t.Errorf("%s comes after %s", k, before)
			}
			before, got[k] = k, string(v)
		}
		if diff := cmp.Diff(model, got); diff != "" || tb.Len() != len(model) {
			t.Fatalf("seed %d (-want +got):\n%s", seed, diff)
		}
	}
}
