package blobschema

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

func TestIndexManifestVersion(t *testing.T) {
	at := time.Unix(1e9, 1234).In(time.FixedZone("", 3600))
	data, err := EncodeIndexManifest(&IndexManifest{Crawl: "c", Time: at})
	if err != nil {
		t.Fatal(err)
	}
	m, err := DecodeIndexManifest(data)
	if err != nil || m.Version != wire.Version || m.Time != time.Unix(1e9, 1000).UTC() {
		t.Errorf("%+v, %v", m, err)
	}
	raw, err := cborEnc.Marshal(&IndexManifest{Version: wire.Version + 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		raw  []byte
		want error
	}{{raw, wire.ErrVersion}, {[]byte{0x60}, wire.ErrDamaged}} {
		if _, err := DecodeIndexManifest(wire.Append(nil, []wire.Section{{Name: sectionManifest, Data: wire.AppendPacked(nil, c.raw)}})); !errors.Is(err, c.want) {
			t.Errorf("%x: %v, want %v", c.raw, err, c.want)
		}
	}
}

func FuzzIndexManifest(f *testing.F) {
	for _, m := range []IndexManifest{
		{},
		{
			Crawl: "c", Partition: 3, Number: 7, Seq: 9, Time: time.Unix(1e9, 0).UTC(), AnchorJob: 2, Part: 5,
			Segments: []SegmentRef{{Object: "s", Bytes: 100, Documents: 8, Deleted: []byte{1, 2}, Gone: 1, First: 1, Last: 5, Lengths: []uint64{1, 2, 3}, Tier: 1}},
			Anchors:  []SegmentRef{{Object: "a"}}, Dropped: []DroppedSegment{{Object: "d", Time: time.Unix(1e9, 0).UTC()}},
			Totals: IndexTotals{Documents: 7, Deleted: 1}, Removed: []RemovedDocument{{Fingerprint: 1, Slot: 2, Generation: 3}},
		},
	} {
		data, err := EncodeIndexManifest(&m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeIndexManifest(data)
		if err != nil {
			if !errors.Is(err, wire.ErrDamaged) && !errors.Is(err, wire.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		again, err := EncodeIndexManifest(&m)
		if err != nil {
			t.Fatal(err)
		}
		n, err := DecodeIndexManifest(again)
		if err != nil {
			t.Fatal(err)
		}
		m.Time, n.Time = time.Time{}, time.Time{} // stored with less precision
		if d := cmp.Diff(m, n, cmp.AllowUnexported(RemovedDocument{})); d != "" {
			t.Error(d)
		}
	})
}
