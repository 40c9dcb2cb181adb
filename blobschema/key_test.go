package blobschema

import "testing"

func TestKey(t *testing.T) {
	for _, tt := range []struct {
		by     PartitionBy
		host   string
		key    string
		placed bool
	}{
		{"", "www.a.example:8080", "www.a.example:8080", false},
		{ByHost, "www.a.co.uk", "www.a.co.uk", false},
		{ByDomain, "www.a.co.uk:8080", "a.co.uk", false},
		{ByDomain, "192.0.2.1", "192.0.2.1", false},
		{ByIP, "www.a.example", "www.a.example", false},
		{ByIP, "192.0.2.1:444", "[192.0.2.1]", true},
		{ByIP, "[2001:db8::1]", "[2001:db8::1]", true},
	} {
		if key, placed := tt.by.Key(tt.host); key != tt.key || placed != tt.placed {
			t.Errorf("%s by %q: %q, %v", tt.host, tt.by, key, placed)
		}
	}
}

func TestCrawlHash(t *testing.T) {
	c := Crawl{ID: "c", HashKey: make([]byte, 16), Slots: 64}
	if h, err := c.Hash(); err != nil || h.Slots() != 64 {
		t.Errorf("%d slots, %v", h.Slots(), err)
	}
	c.HashKey = c.HashKey[:15]
	if _, err := c.Hash(); err == nil {
		t.Error("a hash key of 15 bytes is accepted")
	}
}
