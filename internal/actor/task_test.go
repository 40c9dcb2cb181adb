package actor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var errDown = errors.New("down")

// carry runs a procedure to its end and answers the latest effect first. It returns the total time of its sleeps.
func carry(t *testing.T, body func(*Task) error, answer func(Effect) (any, error)) (slept time.Duration, err error) {
	t.Helper()
	p := &Procedure{Body: body}
	due := p.Start(Now{})
	for range 1000 {
		if ended, err := p.Ended(); ended {
			return slept, err
		}
		is := due[len(due)-1]
		due = due[:len(due)-1]
		r := Reply{ID: is.ID}
		if s, ok := is.Effect.(Sleep); ok {
			slept += s.For
		} else {
			r.Value, r.Err = answer(is.Effect)
		}
		due = append(due, p.Handle(Now{Mono: slept}, r)...)
	}
	t.Fatal("the procedure does not end")
	return 0, nil
}

// failing returns an answer that fails a number of times and then succeeds.
func failing(times int, err error, answer func(Effect) (any, error)) func(Effect) (any, error) {
	return func(e Effect) (any, error) {
		if times--; times >= 0 {
			return nil, err
		}
		return answer(e)
	}
}

// TestAll checks that at most limit effects are under way at once and that each reply comes with its index. After an error no
// further effect begins, but All waits for those under way.
func TestAll(t *testing.T) {
	var effects []Effect
	for i := range 7 {
		effects = append(effects, call(fmt.Sprint(i)))
	}
	for _, limit := range []int{1, 3, 7, 100} {
		for fails := -1; fails < len(effects); fails++ {
			l, open, begun, most, after := newLoop(), map[string]uint64{}, 0, 0, 0
			got := map[int]any{}
			var failure error
			ended := false
			l.Spawn(func(t *Task) error {
				failure = t.All(limit, effects, func(i int, v any, err error) error {
					if got[i] = v; err != nil {
						after++
					}
					return err
				})
				ended = true
				return nil
			})
			issued := func(list []Issue) {
				for _, is := range list {
					begun++
					open[string(is.Effect.(call))] = is.ID
				}
				most = max(most, len(open))
			}
			issued(l.Flush())
			for step := 0; len(open) > 0; step++ {
				name := slices.Max(mapKeys(open)) // the latest effect
				r := Reply{ID: open[name], Value: name}
				if delete(open, name); fails >= 0 && step >= fails {
					r.Err = fmt.Errorf("%w %d", errDown, step)
				}
				before := begun
				issued(deliver(l, r))
				if r.Err != nil && begun > before {
					t.Errorf("limit %d: %d effects begin after an error", limit, begun-before)
				}
				if ended != (len(open) == 0) {
					t.Fatalf("limit %d: All has ended: %v, with %d under way", limit, ended, len(open))
				}
			}
			if most != min(limit, len(effects)) || len(got) != begun || (fails < 0 && begun != len(effects)) {
				t.Errorf("limit %d: %d at once, %d begun, %d answered", limit, most, begun, len(got))
			}
			if fails < 0 && failure != nil || fails >= 0 && (failure == nil || failure.Error() != fmt.Sprint("down ", fails) || after == 0) {
				t.Errorf("limit %d: the error is %v, but reply %d failed first", limit, failure, fails)
			}
			for i, v := range got {
				if v != fmt.Sprint(i) {
					t.Errorf("limit %d: got reply %v to effect %d", limit, v, i)
				}
			}
		}
	}
	if _, err := carry(t, func(t *Task) error { return t.All(3, nil, nil) }, nil); err != nil {
		t.Error(err)
	}
}

func mapKeys(m map[string]uint64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

// tried returns the total pause after a number of failures.
func tried(times int) (slept time.Duration) {
	for i := range times {
		slept += 50 * time.Millisecond << min(i, 7)
	}
	return slept
}

// TestReads checks that a failed read is retried eight times over some seconds, but a missing object is not.
func TestReads(t *testing.T) {
	stored := func(e Effect) (any, error) {
		if g, ok := e.(GetObject); ok {
			return []byte(fmt.Sprint(g.Name, g.Offset, g.Length)), nil
		}
		return []Record{{Value: []byte(e.(ReadRecords).Keys[1])}, {}}, nil
	}
	for times, ok := range map[int]bool{0: true, 1: true, 8: true, 9: false} {
		slept, err := carry(t, func(t *Task) error {
			b, err := t.Object("o", 3, -1)
			if err == nil && string(b) != "o3 -1" {
				return fmt.Errorf("object %s", b)
			}
			return err
		}, failing(times, errDown, stored))
		if (err == nil) != ok || slept != tried(min(times, 8)) || !ok && (!errors.Is(err, errDown) || !strings.Contains(err.Error(), "get o")) {
			t.Errorf("an object, after %d failures and %v: %v", times, slept, err)
		}
		slept, err = carry(t, func(t *Task) error {
			recs, err := t.Records("a", "b")
			if err == nil && (len(recs) != 2 || string(recs[0].Value) != "b") {
				return fmt.Errorf("records %v", recs)
			}
			return err
		}, failing(times, errDown, stored))
		if (err == nil) != ok || slept != tried(min(times, 8)) || !ok && (!errors.Is(err, errDown) || !strings.Contains(err.Error(), "read a")) {
			t.Errorf("records, after %d failures and %v: %v", times, slept, err)
		}
	}
	slept, err := carry(t, func(t *Task) error { _, err := t.Object("o", 0, -1); return err }, failing(1, ErrNotFound, stored))
	if !errors.Is(err, ErrNotFound) || slept > 0 {
		t.Errorf("a missing object is read for %v: %v", slept, err)
	}
}

// TestPut checks that a failing write is attempted ten times in all, not counting lost races.
func TestPut(t *testing.T) {
	pauses := []time.Duration{0, 50, 150, 350, 750, 1550, 3150, 6350, 9550, 12750} // milliseconds, by number of failures
	for times := range 12 {
		puts := 0
		slept, err := carry(t, func(t *Task) error { return t.Put("o", []byte("data")) }, failing(times, errDown, func(e Effect) (any, error) {
			if p := e.(PutObject); p.Name != "o" || len(p.Parts) != 1 || string(p.Parts[0]) != "data" {
				t.Errorf("the effect is %+v", p)
			}
			puts++
			return nil, nil
		}))
		if (err == nil) != (times < 10) || puts != 1 && times < 10 || slept != pauses[min(times, 9)]*time.Millisecond || err != nil && (!errors.Is(err, errDown) || !strings.Contains(err.Error(), "write o")) {
			t.Errorf("after %d failures and %v: %v", times, slept, err)
		}
	}
	if slept, err := carry(t, func(t *Task) error { return t.Put("o", nil) }, failing(30, ErrConflict, func(Effect) (any, error) { return nil, nil })); err != nil || slept > 0 {
		t.Errorf("races that were lost: %v after %v", err, slept)
	}
}

// table is a table of one record whose writes fail as configured, before or after the record is written.
type table struct {
	rec   Record
	fails []fault
	reads int // number of reads that fail after the first failed write
	down  bool
}

type fault struct {
	err     error
	written bool
	meant   func(*table) // what another writer does then
}

func (x *table) answer(e Effect) (any, error) {
	if _, ok := e.(ReadRecords); ok {
		if x.down && x.reads > 0 {
			x.reads--
			return nil, errDown
		}
		return []Record{x.rec}, nil
	}
	w := e.(WriteRecord)
	if w.Revision != x.rec.Revision {
		return nil, ErrConflict
	}
	store := func() {
		n, _ := x.rec.Revision.(int)
		x.rec = Record{Value: w.Value, Revision: n + 1, Found: true}
	}
	if len(x.fails) == 0 {
		store()
		return x.rec.Revision, nil
	}
	f := x.fails[0]
	x.fails, x.down = x.fails[1:], true
	if f.written {
		store()
	}
	if f.meant != nil {
		f.meant(x)
	}
	return nil, f.err
}

// TestWrite checks that after an error the record shows whether the write took place, and after a conflict whose it is.
func TestWrite(t *testing.T) {
	another := func(x *table) { x.rec = Record{Value: []byte(`"theirs"`), Revision: 7, Found: true} }
	for name, c := range map[string]struct {
		fails []fault
		reads int
		want  error
		value string
	}{
		"done":                       {nil, 0, nil, `"ours"`},
		"lost once":                  {[]fault{{err: errDown}}, 0, nil, `"ours"`},
		"lost nine times":            {slices.Repeat([]fault{{err: errDown}}, 9), 0, nil, `"ours"`},
		"lost ten times":             {slices.Repeat([]fault{{err: errDown}}, 10), 0, errDown, ""},
		"done, and the answer lost":  {[]fault{{err: errDown, written: true}}, 0, nil, `"ours"`},
		"done, and said to conflict": {[]fault{{err: ErrConflict, written: true}}, 0, nil, `"ours"`},
		"done by another":            {[]fault{{err: ErrConflict, meant: another}}, 0, ErrConflict, `"theirs"`},
		"lost, then by another":      {[]fault{{err: errDown, meant: another}}, 0, ErrConflict, `"theirs"`},
		"the result is unknown":      {[]fault{{err: errDown, written: true}}, 9, errDown, `"ours"`},
	} {
		x := &table{fails: c.fails, reads: c.reads}
		_, err := carry(t, func(t *Task) error { return t.Write("k", "ours", nil) }, x.answer)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || string(x.rec.Value) != c.value || err != nil && !strings.Contains(err.Error(), " k") {
			t.Errorf("%s: %v, the record is %s", name, err, x.rec.Value)
		}
	}
}

// TestUpdate checks that a change is made exactly once, whatever happens to the writes, and on top of what others wrote.
func TestUpdate(t *testing.T) {
	add := func(n *int) bool { *n++; return true }
	set := func(v string) func(*table) {
		return func(x *table) { x.rec = Record{Value: []byte(v), Revision: 7, Found: true} }
	}
	gone := func(x *table) { x.rec = Record{} }
	for name, c := range map[string]struct {
		before string
		fails  []fault
		reads  int
		change func(*int) bool
		want   error
		value  string
	}{
		"new record":                {"", nil, 0, add, nil, "1"},
		"existing record":           {"4", nil, 0, add, nil, "5"},
		"nothing to change":         {"4", nil, 0, func(*int) bool { return false }, nil, "4"},
		"lost nine times":           {"4", slices.Repeat([]fault{{err: errDown}}, 9), 0, add, nil, "5"},
		"lost ten times":            {"4", slices.Repeat([]fault{{err: errDown}}, 10), 0, add, errDown, "4"},
		"done, and the answer lost": {"4", []fault{{err: errDown, written: true}}, 0, add, nil, "5"},
		"another was faster":        {"4", []fault{{err: ErrConflict, meant: set("8")}}, 0, add, nil, "9"},
		"another, and conflicts":    {"4", slices.Repeat([]fault{{err: ErrConflict, meant: set("8")}}, 20), 0, add, nil, "9"},
		"deleted meanwhile":         {"4", []fault{{err: errDown, written: true, meant: gone}}, 0, add, nil, "1"},
		"the result is unknown":     {"4", []fault{{err: errDown, written: true}}, 9, add, errDown, "5"},
	} {
		x := &table{fails: c.fails, reads: c.reads}
		if c.before != "" {
			set(c.before)(x)
		}
		_, err := carry(t, func(t *Task) error { return Update(t, "k", c.change) }, x.answer)
		if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || string(x.rec.Value) != c.value {
			t.Errorf("%s: %v, the record is %s", name, err, x.rec.Value)
		}
	}
	x := &table{rec: Record{Value: []byte(`"text"`), Revision: 1, Found: true}}
	if _, err := carry(t, func(t *Task) error { return Update(t, "k", add) }, x.answer); err == nil || !strings.Contains(err.Error(), "decode k") {
		t.Errorf("a text was decoded as a number: %v", err)
	}
}

func TestEncodeRecords(t *testing.T) {
	if n, err := Decode[int](Record{Value: Encode(4)}, "number"); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := Decode[int](Record{Value: Encode("four")}, "number"); err == nil || !strings.Contains(err.Error(), "decode number") {
		t.Errorf("%v", err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a function is stored")
		}
	}()
	Encode(func() {})
}

// TestDrop checks that a dropped actor leaves nothing behind.
func TestDrop(t *testing.T) {
	unwound := 0
	p := &Procedure{Body: func(t *Task) error {
		defer func() { unwound++ }()
		t.Sleep(time.Hour)
		unwound += 10
		return errDown
	}}
	due := p.Start(Now{Mono: time.Second})
	p.Drop()
	if ended, err := p.Ended(); !ended || err != nil || unwound != 1 {
		t.Errorf("ended %v with %v, unwound %d", ended, err, unwound)
	}
	if again := p.Handle(Now{}, Reply{ID: due[0].ID}); len(again) > 0 || unwound != 1 {
		t.Errorf("a dropped actor continues: %v", again)
	}
}
