package fsck_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
)

// encoded encodes and decodes a state.
func encoded(t testing.TB, s *fsck.State) *fsck.State {
	t.Helper()
	b, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err = fsck.DecodeState(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestState takes WARC objects over from check to check.
func TestState(t *testing.T) {
	m := recrawled(t)
	first := check(t, m.memory, fsck.Options{State: &fsck.State{}})
	if !first.Clean() || first.TakenOver != 0 || first.WARCsRead != first.WARCs {
		t.Fatalf("%+v", first)
	}
	second := check(t, m.memory, fsck.Options{State: encoded(t, first.State)})
	if second.TakenOver+second.WARCsRead != second.WARCs || second.WARCsRead > 1 || second.Read.Bytes >= first.Read.Bytes {
		t.Errorf("%+v", second)
	}
	if d := cmp.Diff(first, second, cmpopts.IgnoreFields(fsck.Report{}, "Read", "WARCsRead", "TakenOver", "Invariants", "State")); d != "" {
		t.Errorf("a second check (-first +second):\n%s", d)
	}
	if d := cmp.Diff(first.State.Partitions, second.State.Partitions); d != "" || second.State.Checks != 2 {
		t.Errorf("a second state (-first +second):\n%s", d)
	}

	m.answer(0, "http://"+m.host(0, 0)+"/", 3, body+"new", nil)
	m.commit(0, blobschema.Commit{})
	third := check(t, m.memory, fsck.Options{State: encoded(t, second.State)})
	if !third.Clean() || third.WARCs != first.WARCs+1 || third.TakenOver+third.WARCsRead != third.WARCs || third.WARCsRead < 1 {
		t.Errorf("%+v", third)
	}
	quick := check(t, m.memory, fsck.Options{State: encoded(t, second.State), WARCs: fsck.SomeWARCs})
	if d := cmp.Diff(second.State.Partitions, quick.State.Partitions); d != "" {
		t.Errorf("a check of few WARC objects leaves another state:\n%s", d)
	}
}

// TestStateSampled reads all WARC objects again in time.
func TestStateSampled(t *testing.T) {
	m := recrawled(t)
	state := check(t, m.memory, fsck.Options{State: &fsck.State{}}).State
	h := newHand(t, m.memory)
	warc := h.commit(h.head(0).Commit).Manifest.WARCs[0]
	h.flip(warc, len(h.objects[warc])-30)
	for range 32 {
		rep := check(t, m.memory, fsck.Options{State: state})
		if !rep.Clean() {
			if rep.State.Checks < 2 || rep.State.Partitions[0] != state.Partitions[0] {
				t.Errorf("what is broken is taken into the state: %+v", rep.State)
			}
			return
		}
		state = encoded(t, rep.State)
	}
	t.Error("a damaged WARC object is not found in 32 checks")
}

func TestStateFindsChange(t *testing.T) {
	for _, tt := range []struct {
		name, invariant, says string
		do                    func(*maker)
	}{
		{"a commit has changed", "I6", "are not those of the check before", func(m *maker) {
			m.at(0, 1, func(c *blobschema.Commit) { c.Manifest.Time = c.Manifest.Time.Add(time.Second) })
		}},
		{"a head went back", "I4", "was 3 at the check before", func(m *maker) {
			m.records[naming.HeadKey(crawlID, 0)] = m.heads[0][1]
		}},
		{"a WARC object is gone", "I6", "does not exist", func(m *maker) {
			delete(m.objects, m.own(1).Manifest.WARCs[0])
		}},
	} {
		m := recrawled(t)
		state := check(t, m.memory, fsck.Options{State: &fsck.State{}}).State
		tt.do(m)
		found := false
		rep := check(t, m.memory, fsck.Options{State: state})
		for _, v := range rep.Violations {
			found = found || v.Invariant == tt.invariant && strings.Contains(v.What, tt.says)
		}
		if !found {
			t.Errorf("%s: found %v", tt.name, rep.Violations)
		}
	}
}

func TestStateOfAnother(t *testing.T) {
	m := recrawled(t)
	state := check(t, m.memory, fsck.Options{State: &fsck.State{}}).State
	edit(m.hand, naming.CrawlKey(crawlID), func(c *blobschema.Crawl) { c.Created = c.Created.Add(time.Hour) })
	if _, err := fsck.Check(t.Context(), m.memory, fsck.Options{State: state}); !errors.Is(err, fsck.ErrState) {
		t.Errorf("error %v", err)
	}
	for _, text := range []string{"", "{", "{}", `{"version":2,"crawl":"test"}`, `{"version":1}`, `[]`} {
		if _, err := fsck.DecodeState([]byte(text)); !errors.Is(err, fsck.ErrState) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

func FuzzDecodeState(f *testing.F) {
	f.Add([]byte(`{"version":1,"crawl":"test","checks":1,"partitions":{"0":{"seq":3,"lineage":"00","stored":7}},"orphans":{"x":"2026-01-02T03:04:05Z"}}`))
	m := recrawled(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := fsck.DecodeState(b)
		if err != nil {
			return
		}
		if _, err := fsck.Check(t.Context(), m.memory, fsck.Options{State: s}); err != nil && !errors.Is(err, fsck.ErrState) {
			t.Error(err)
		}
	})
}
