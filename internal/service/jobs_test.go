package service_test

import (
	"context"
	"errors"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestNoQueuesOfJobs checks that without the queues of jobs no searchable crawl can be created, but any other can.
func TestNoQueuesOfJobs(t *testing.T) {
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	missing := errors.New("there is no queue")
	p.CheckQueue = func(_ context.Context, name string) error {
		if name == naming.RankQueue {
			return missing
		}
		return nil
	}
	e, err := service.New(p, service.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := blobschema.Crawl{
		Version: wire.Version, ID: "test", HashKey: make([]byte, 16), Slots: 16, Partitions: 1,
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: "orbweaver/test", MaxBody: 1 << 20, Index: true},
	}
	seed, err := weburl.Parse("http://host.example/")
	if err != nil {
		t.Fatal(err)
	}
	seeds := crawl.Seeds([]weburl.URL{seed})
	if _, _, _, err := e.Begin(want, seeds, nil); !errors.Is(err, missing) {
		t.Errorf("it begins: %v", err)
	}
	if _, err := e.Open(); !errors.Is(err, crawl.ErrNoCrawl) {
		t.Errorf("a crawl that did not begin has a record: %v", err)
	}
	want.Settings.Index = false
	if _, created, _, err := e.Begin(want, seeds, nil); err != nil || !created {
		t.Errorf("created %v, %v", created, err)
	}
	want.ID, want.Settings.Index = "another", true
	if _, err := e.BeginAnother(t.Context(), want, seeds); !errors.Is(err, missing) {
		t.Errorf("another begins: %v", err)
	}
}
