package experiment

import (
	"context"
	"testing"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/lab/corpus"
	"github.com/orbweaver/orbweaver/partition"
)

// TestArchive reads the pages of an archive: each document is there once, in the right partition.
func TestArchive(t *testing.T) {
	c, err := corpus.New(1, 700)
	if err != nil {
		t.Fatal(err)
	}
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newArchive(p, c, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	urls := map[string]bool{}
	for part, list := range a.of {
		pages, err := storedPages(context.Background(), p, a.crawl.ID, partition.ID(part))
		if err != nil {
			t.Fatal(err)
		}
		if len(pages) != len(list) {
			t.Errorf("partition %d has %d pages, and %d documents", part, len(pages), len(list))
		}
		for i := range pages {
			urls[pages[i].URL] = true
		}
	}
	for i := range c.Len() {
		if !urls[c.URL(i)] {
			t.Errorf("%s is not there", c.URL(i))
		}
	}
	if a.text < 700*corpus.TextBytes*8/10 || a.pages < 2*a.text {
		t.Errorf("%d bytes of text in %d", a.text, a.pages)
	}
}
