package blobschema

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSums checks that sums of figures add every field.
func TestSums(t *testing.T) {
	count := func(of any, by int64) { // sets the fields to by, 2*by, ...
		v, n := reflect.ValueOf(of).Elem(), int64(0)
		for i := range v.NumField() {
			if f := v.Field(i); f.CanInt() {
				n += by
				f.SetInt(n)
			}
		}
	}
	check := func(got, want any) {
		t.Helper()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
	}
	var a, b, sum Totals
	count(&a, 1)
	count(&b, 10)
	count(&sum, 11)
	a.Topics, b.Topics = nil, map[uint8]TopicTotals{3: {1, 2, 3}}
	b.Outcomes = map[string]int64{"ok": 5}
	a.Add(&b)
	a.Add(&Totals{Topics: b.Topics, Outcomes: b.Outcomes})
	sum.Topics, sum.Outcomes = map[uint8]TopicTotals{3: {2, 4, 6}}, map[string]int64{"ok": 10}
	check(a, sum)

	var index, more, all IndexTotals
	count(&index, 1)
	count(&more, 10)
	count(&all, 11)
	index.Add(&more)
	check(index, all)

	var calls, since, now Calls
	count(&calls, 1)
	count(&since, 10)
	count(&now, 11)
	calls.Add(since)
	check(calls, now)
	count(&calls, 1)
	check(now.Minus(since), calls)
}
