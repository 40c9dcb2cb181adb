package ui

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// made is a store in memory that counts the objects that are read.
type made struct {
	records, objects map[string][]byte
	reads            chan string
}

func (m *made) Records(_ context.Context, keys ...string) (out [][]byte, _ error) {
	for _, key := range keys {
		out = append(out, m.records[key])
	}
	return out, nil
}

func (m *made) Object(_ context.Context, name string, _, _ int64) ([]byte, error) {
	m.reads <- name
	return m.objects[name], nil
}

func (m *made) List(context.Context, string) iter.Seq2[blobschema.StoredObject, error] {
	return func(func(blobschema.StoredObject, error) bool) {}
}

// TestTimeline reads the history of two partitions: exact at commits, interpolated between them, and with few reads.
func TestTimeline(t *testing.T) {
	s := &made{records: map[string][]byte{}, objects: map[string][]byte{}, reads: make(chan string, 5000)}
	record := func(key string, v any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s.records[key] = data
	}
	start := time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)
	key := [16]byte{1}
	record(naming.ActiveKey, map[string]string{"crawl": "made"})
	record(naming.CrawlKey("made"), blobschema.Crawl{Version: wire.Version, ID: "made", HashKey: key[:], Slots: 8, Partitions: 2, Created: start})
	hash, err := partition.NewHash(key, 8)
	if err != nil {
		t.Fatal(err)
	}
	seqs := [2]uint64{}
	commit := func(p partition.ID, second int, pages int64) {
		seqs[p]++
		m := blobschema.Manifest{Crawl: "made", Partition: p, Fence: 1, Seq: seqs[p], Time: start.Add(time.Duration(second) * time.Second)}
		if m.Seq > 1 {
			m.Commits = []blobschema.CommitRange{{Fence: 1, From: 1, To: m.Seq - 1}}
		}
		m.Totals, m.Calls.BlobPuts = blobschema.Totals{Pages: pages, Outcomes: map[string]int64{"ok": pages}}, 5*int64(m.Seq)
		name := naming.Commit("made", p, m.Seq, 1)
		data, _, err := blobschema.EncodeCommit(&blobschema.Commit{Manifest: m}, name, hash)
		if err != nil {
			t.Fatal(err)
		}
		s.objects[name] = data
		record(naming.HeadKey("made", p), blobschema.Head{Partition: p, Fence: 1, Commit: name, Seq: m.Seq})
	}
	commit(0, 50, 20)
	commit(0, 100, 30)
	commit(1, 100, 20)
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	var l timeline
	points, err := l.read(t.Context(), v, 5)
	if err != nil {
		t.Fatal(err)
	}
	var pages, ok []int64
	for _, p := range points {
		pages, ok = append(pages, p.Totals.Pages), append(ok, p.Totals.Outcomes["ok"])
	}
	if want := []int64{0, 15, 30, 40, 50}; !slices.Equal(pages, want) || !slices.Equal(ok, want) {
		t.Errorf("pages %v, outcomes %v, want %v", pages, ok, want)
	}
	if p := points[4]; p.Calls.BlobPuts != 15 || !p.Time.Equal(start.Add(100*time.Second)) {
		t.Errorf("the last point is %+v", p)
	}
	reads := func() (n int) {
		for ; len(s.reads) > 0; n++ {
			<-s.reads
		}
		return n
	}
	reads()
	if _, err := l.read(t.Context(), v, 5); err != nil || len(s.reads) != 2 {
		t.Errorf("%d commits are read of a crawl that has not changed, %v", reads(), err)
	}
	for i := range 1000 {
		commit(0, 101+i, int64(31+i))
	}
	reads()
	if _, err := l.read(t.Context(), v, 20); err != nil || len(s.reads) > 24 || len(s.reads) < 6 {
		t.Errorf("%d of 1,000 commits are read, %v", reads(), err)
	}
	// A partition at work that has not committed for long ends the line.
	record(naming.HeadKey("made", 1), blobschema.Head{
		Partition: 1, Fence: 1, Commit: naming.Commit("made", 1, 1, 1), Seq: 1, Owner: "p/s", LeaseUntil: time.Now().Add(time.Minute),
	})
	if points, err = l.read(t.Context(), v, 20); err != nil || !points[19].Time.Equal(start.Add(100*time.Second)) {
		t.Errorf("the line ends at %v, %v", points[19].Time, err)
	}
}
