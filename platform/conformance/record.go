package conformance

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/orbweaver/orbweaver/platform"
)

func conflict(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, platform.ErrConflict) {
		t.Errorf("%s: %v, want a conflict", what, err)
	}
}

func (s *suite) tryWrite(t *testing.T, key, value string, rev platform.Revision) error {
	_, err := s.p.WriteRecord(t.Context(), key, []byte(value), rev)
	return err
}

// createsOnce checks that a second create is a conflict and changes nothing.
func (s *suite) createsOnce(t *testing.T) {
	s.write(t, "c1/head/00001", "first", nil)
	conflict(t, "create again", s.tryWrite(t, "c1/head/00001", "second", nil))
	if got := s.read(t, "c1/head/00001")[0]; string(got.Value) != "first" {
		t.Errorf("it holds %q", got.Value)
	}
}

// replaces checks that a record is replaced only by its current revision.
func (s *suite) replaces(t *testing.T) {
	old := s.write(t, "c1/head/00002", "first", nil)
	rev := s.write(t, "c1/head/00002", "second", old)
	conflict(t, "replace a stale revision", s.tryWrite(t, "c1/head/00002", "third", old))
	got := s.read(t, "c1/head/00002")[0]
	if string(got.Value) != "second" {
		t.Errorf("it holds %q", got.Value)
	}
	next := s.write(t, "c1/head/00002", "fourth", got.Revision) // a revision that was read works too
	conflict(t, "replace the revision that was read", s.tryWrite(t, "c1/head/00002", "fifth", rev))
	s.write(t, "c1/head/00002", "sixth", next)
	conflict(t, "replace a missing record", s.tryWrite(t, "c1/head/09999", "lost", next))
	if s.read(t, "c1/head/09999")[0].Found {
		t.Error("a replace created it")
	}
}

// oneWinner checks that exactly one of several writers of the same revision wins.
func (s *suite) oneWinner(t *testing.T) {
	rev := platform.Revision(nil)
	for round := range 6 {
		const writers = 5
		revs, errs := make([]platform.Revision, writers), make([]error, writers)
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				revs[i], errs[i] = s.p.WriteRecord(t.Context(), "c1/grants", fmt.Appendf(nil, "%d by %d", round, i), rev)
			})
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			if err != nil {
				conflict(t, "the loser", err)
			} else if winner >= 0 {
				t.Fatalf("round %d: %d and %d both won", round, winner, i)
			} else {
				winner = i
			}
		}
		if winner < 0 {
			t.Fatalf("round %d: no write succeeded: %v", round, errs)
		}
		if got, want := string(s.read(t, "c1/grants")[0].Value), fmt.Sprintf("%d by %d", round, winner); got != want {
			t.Errorf("it holds %q, the winner wrote %q", got, want)
		}
		rev = revs[winner]
	}
}

// readsWritten checks that each read sees the last write.
func (s *suite) readsWritten(t *testing.T) {
	rev := platform.Revision(nil)
	for i := range 30 {
		value := fmt.Sprintf("{\"n\":%d,\"text\":\"ü\\u0000\"}", i)
		rev = s.write(t, "c1/wish", value, rev)
		if got := s.read(t, "c1/wish")[0]; string(got.Value) != value {
			t.Fatalf("read %q after writing %q", got.Value, value)
		}
	}
}

// readsMany reads many keys at once, some of them missing.
func (s *suite) readsMany(t *testing.T) {
	const n = 150
	key := func(i int) string { return fmt.Sprintf("many/head/%05d", i) }
	var wg sync.WaitGroup
	for i := range n {
		if i%3 != 0 {
			wg.Go(func() {
				if err := s.tryWrite(t, key(i), fmt.Sprint(i), nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	var keys []string
	for i := range n {
		keys = append(keys, key(i))
	}
	for i, r := range s.read(t, keys...) {
		if want := i%3 != 0; r.Found != want || want && string(r.Value) != fmt.Sprint(i) {
			t.Errorf("record %d: found %v, %q", i, r.Found, r.Value)
		}
	}
	if got := s.read(t, "many/none"); got[0].Found {
		t.Error("a missing record was found")
	}
}

// readsTwice reads a list of keys that names some of them twice.
func (s *suite) readsTwice(t *testing.T) {
	s.write(t, "twice/a", "first", nil)
	s.write(t, "twice/b", "second", nil)
	got := s.read(t, "twice/a", "twice/b", "twice/none", "twice/a", "twice/none")
	for i, want := range []string{"first", "second", "", "first", ""} {
		if r := got[i]; r.Found != (want != "") || string(r.Value) != want || r.Found && r.Revision == nil {
			t.Errorf("record %d: found %v, %q, revision %v", i, r.Found, r.Value, r.Revision)
		}
	}
}

// sharesRecords opens the platform a second time, as another process does. Each sees the writes of the other, and only one
// of them replaces a revision.
func (s *suite) sharesRecords(t *testing.T) {
	if s.p.Exclusive {
		t.Log("not tested: the platform has a single owner")
		return
	}
	other := &suite{traits: s.traits, ledger: s.ledger, p: s.open(t, s.ledger)}
	rev := s.write(t, "shared/a", "first", nil)
	conflict(t, "the other creates it", other.tryWrite(t, "shared/a", "second", nil))
	got := other.read(t, "shared/a")[0]
	if string(got.Value) != "first" {
		t.Errorf("the other reads %q", got.Value)
	}
	other.write(t, "shared/a", "second", got.Revision)
	conflict(t, "a write after the other's", s.tryWrite(t, "shared/a", "third", rev))
	if got := s.read(t, "shared/a")[0]; string(got.Value) != "second" {
		t.Errorf("it reads %q", got.Value)
	}
}

// largeRecords reads many records near the bound together. A record over the bound must be an error other than
// a conflict.
func (s *suite) largeRecords(t *testing.T) {
	const n, size = 12, 390_000
	var keys []string
	for i := range n {
		keys = append(keys, fmt.Sprintf("large/head/%05d", i))
		s.write(t, keys[i], strings.Repeat(string(rune('a'+i%26)), size), nil)
	}
	for i, r := range s.read(t, keys...) {
		if len(r.Value) != size || r.Value[0] != byte('a'+i%26) {
			t.Errorf("record %d: found %v, %d bytes", i, r.Found, len(r.Value))
		}
	}
	if s.traits.MaxRecord > 0 {
		err := s.tryWrite(t, "large/over", strings.Repeat("x", s.traits.MaxRecord), nil)
		if err == nil || errors.Is(err, platform.ErrConflict) {
			t.Errorf("a record over the bound: %v", err)
		}
		t.Log(err)
	}
}
