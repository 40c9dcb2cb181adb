package frontier

import (
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/partition"
)

// TestMapping checks that a link has the key, slot and fingerprint of its URL, independent of earlier links, and that its
// stored form makes the same link.
func TestMapping(t *testing.T) {
	h, err := partition.NewHash([16]byte{1}, testSlots)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []blobschema.PartitionBy{blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP} {
		m := Mapping{Hash: h, By: by}
		for _, raw := range []string{
			"http://a.example.com/", "http://a.example.com/x?y", "https://b.example.com/", "http://192.0.2.1/", "http://a.example.com/", "http://192.0.2.1:81/z",
		} {
			u := mustParse(t, raw)
			key, placed := by.Key(string(u.Host()))
			l := m.Link(u)
			if l.URL != u || l.Key != key || l.Slot != h.Slot(key) || l.Fingerprint != h.Fingerprint(raw) || (l.Flags == blobschema.FlagPlaced) != placed {
				t.Errorf("%s by %s: %+v", raw, by, l)
			}
			l.Rank, l.Generation, l.Depth, l.Topic, l.Ask, l.Flags = 1, 2, 3, 4, 5, l.Flags|blobschema.FlagAgain
			for _, address := range []string{"", "[192.0.2.9]"} { // address to which the name of the host is pinned
				if address != "" {
					l.pin(h, address)
				}
				q := l.Queued()
				if again, ok := m.Stored(&q); !ok || again != l {
					t.Errorf("%s by %s: stored as %+v", raw, by, again)
				}
			}
		}
	}
	m := Mapping{Hash: h, By: blobschema.ByHost}
	for _, text := range []string{"", "http:///x", "ftp://a.example/", "a.example"} {
		if l, ok := m.Stored(&blobschema.Queued{URL: text}); ok {
			t.Errorf("%q is the link %+v", text, l)
		}
	}
}
