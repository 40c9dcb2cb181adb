package view_test

import (
	"testing"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
)

// overlaid returns a crawl of that many pages in memory, and a view of it with the test's own records.
func overlaid(t *testing.T, pages int64) (*simweb.Web, overlay, *view.View) {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	web := crawlInto(t, p, pages)
	s := overlay{engine.Store{Platform: p}, p, map[string]any{}}
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return web, s, v
}
