//go:build gcp

package service_test

import (
	"testing"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/drivers/gcp/fake"
	"github.com/orbweaver/orbweaver/internal/ledger"
)

// TestGoogleCloudCrawl crawls a generated web on a fake of Google Cloud.
func TestGoogleCloudCrawl(t *testing.T) {
	c, err := fake.Start("pages")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // clients may be connected still
	for name, value := range c.Variables() {
		t.Setenv(name, value)
	}
	led := &ledger.Ledger{}
	p, err := drivers.Open(t.Context(), "gcp://orbweaver-test?bucket=pages", led)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	crawlDemo(t, p, led)
}
