package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// handmade is a store whose records and objects a test writes.
type handmade struct {
	t       *testing.T
	hash    partition.Hash
	records map[string][]byte
	objects map[string][]byte
	last    map[partition.ID]*blobschema.Manifest
	heads   map[partition.ID]blobschema.Head
	// before, if not nil, is called before each read.
	before func()
}

const (
	handID    = "hand"
	handSlots = 8
)

func newHandmade(t *testing.T) *handmade {
	t.Helper()
	h, err := partition.NewHash([16]byte{1}, handSlots)
	if err != nil {
		t.Fatal(err)
	}
	s := &handmade{
		t: t, hash: h, records: map[string][]byte{}, objects: map[string][]byte{}, last: map[partition.ID]*blobschema.Manifest{},
		heads: map[partition.ID]blobschema.Head{},
	}
	key := [16]byte{1}
	s.write(naming.ActiveKey, map[string]string{"crawl": handID})
	s.write(naming.CrawlKey(handID), blobschema.Crawl{
		Version: wire.Version, ID: handID, HashKey: key[:], Slots: handSlots, Partitions: 2,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1},
	})
	return s
}

// clone returns a copy of the store, which can be changed independently.
func (s *handmade) clone() *handmade {
	c := *s
	c.records, c.objects = map[string][]byte{}, map[string][]byte{}
	for k, v := range s.records {
		c.records[k] = v
	}
	for k, v := range s.objects {
		c.objects[k] = v
	}
	return &c
}

func (s *handmade) write(key string, v any) {
	s.t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	s.records[key] = b
}

// commit makes the next commit of a partition from its last one, as modified by change.
func (s *handmade) commit(p partition.ID, change func(c *blobschema.Commit)) {
	s.t.Helper()
	var c blobschema.Commit
	if m := s.last[p]; m != nil {
		c.Manifest = *m
		c.Manifest.Commits = []blobschema.CommitRange{{Fence: 1, From: 1, To: m.Seq}}
	}
	m := &c.Manifest
	m.Crawl, m.Partition, m.Fence, m.Seq = handID, p, 1, m.Seq+1
	change(&c)
	m.Totals = blobschema.Totals{Pages: m.Totals.Pages + int64(len(c.Pages))}
	for _, sum := range m.Slots {
		m.Totals.Known += int64(sum.Known)
		m.Totals.Pending += int64(sum.Pending)
		m.Totals.Unexamined += int64(sum.Unexamined)
	}
	name := naming.Commit(handID, p, m.Seq, 1)
	data, stored, err := blobschema.EncodeCommit(&c, name, s.hash)
	if err != nil {
		s.t.Fatal(err)
	}
	s.objects[name] = data
	s.last[p] = &stored
	h := s.heads[p]
	h.Partition, h.Fence, h.Commit, h.Seq, h.Totals = p, 1, name, stored.Seq, stored.Totals
	h.Gives = nil
	for _, g := range stored.Given {
		h.Gives = map[partition.ID]partition.Epoch{g.To: g.Epoch}
	}
	s.head(h)
}

func (s *handmade) head(h blobschema.Head) {
	s.heads[h.Partition] = h
	s.write(naming.HeadKey(handID, h.Partition), h)
}

func (s *handmade) putMap(m *partition.Map) string {
	s.t.Helper()
	name, data, err := blobschema.MapObjectName(handID, m)
	if err != nil {
		s.t.Fatal(err)
	}
	s.objects[name] = data
	return name
}

func (s *handmade) reading() {
	if s.before != nil {
		s.before()
	}
}

func (s *handmade) Records(_ context.Context, keys ...string) ([][]byte, error) {
	values := make([][]byte, len(keys))
	for i, key := range keys {
		s.reading()
		values[i] = s.records[key]
	}
	return values, nil
}

func (s *handmade) Object(_ context.Context, name string, offset, length int64) ([]byte, error) {
	s.reading()
	b, ok := s.objects[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if length < 0 {
		return b[offset:], nil
	}
	return b[offset:][:length], nil
}

func (s *handmade) List(context.Context, string) iter.Seq2[blobschema.StoredObject, error] {
	return func(func(blobschema.StoredObject, error) bool) {}
}

// hostIn returns a host in a slot.
func (s *handmade) hostIn(slot partition.Slot, but ...string) string {
	for n := 0; ; n++ {
		if h := fmt.Sprintf("h%d.example", n); s.hash.Slot(h) == slot && !slices.Contains(but, h) {
			return h
		}
	}
}

func (s *handmade) queued(url string) blobschema.Queued {
	u := mustParse(s.t, url)
	key, _ := blobschema.ByHost.Key(string(u.Host()))
	return blobschema.Queued{Slot: s.hash.Slot(key), Key: key, Rank: 1, URL: url}
}

func (s *handmade) fetched(url string, p partition.ID, seq uint32) blobschema.Settled {
	return blobschema.Settled{
		Slot: s.queued(url).Slot, Fingerprint: s.hash.Fingerprint(url), State: blobschema.Refused,
		Record: blobschema.RecordRef{Partition: p, Seq: seq},
	}
}

// page returns a page without an answer, of which only the record is stored.
func page(url string, at int) blobschema.Page {
	return blobschema.Page{URL: url, Time: time.Unix(1e9+int64(at), 0).UTC(), Outcome: blobschema.OutcomeRobots}
}
