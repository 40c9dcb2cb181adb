package view_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
)

// owned is a folder with a crawl whose owner answers as o does.
type owned struct {
	*testing.T
	dir   string
	view  *view.View
	leave func() // ends the owner
}

func newOwned(t *testing.T, o view.Owner) *owned {
	t.Helper()
	dir := t.TempDir()
	p, err := drivers.Local(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	crawlInto(t, p, 5)
	o.Snapshot = func() any { return nil }
	stop, err := view.Serve(t.Context(), dir, p, o)
	if err != nil {
		t.Fatal(err)
	}
	return &owned{t, dir, open(t, dir), func() {
		t.Helper()
		if err := errors.Join(stop(), p.Close()); err != nil {
			t.Fatal(err)
		}
	}}
}

// refuses posts what is unfit.
func (o *owned) refuses(path string, bodies map[string]string) {
	o.Helper()
	for name, body := range bodies {
		if status := o.post(path, body); status != http.StatusBadRequest {
			o.Errorf("%s: status %d", name, status)
		}
	}
}

// post posts to the socket without looking at what it posts.
func (o *owned) post(path, body string) int {
	o.Helper()
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(o.dir, "orbweaver.sock"))
		},
	}}
	defer client.CloseIdleConnections()
	resp, err := client.Post("http://owner"+path, "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		o.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// overlaid is a crawl of so many pages in memory, and a view of it in which a test puts records.
func overlaid(t *testing.T, pages int64) (*simweb.Web, overlay, *view.View) {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	web := crawlInto(t, p, pages)
	s := overlay{view.OfPlatform(p), p, map[string]any{}}
	v, err := view.New(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return web, s, v
}
