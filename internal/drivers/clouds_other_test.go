//go:build !gcp

package drivers_test

import (
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/internal/drivers"
)

// TestWithoutGoogleCloud checks that a binary without Google's clients says how to get one that has them.
func TestWithoutGoogleCloud(t *testing.T) {
	if _, err := drivers.Open(t.Context(), "gcp://my-project?bucket=pages", nil); err == nil || !strings.Contains(err.Error(), "make build TAGS=gcp") {
		t.Error(err)
	}
}
