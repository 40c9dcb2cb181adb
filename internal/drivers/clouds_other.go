//go:build !gcp

package drivers

import (
	"context"
	"errors"

	"github.com/orbweaver/orbweaver/platform"
)

// openGCP returns an error: Google's clients are large, so only binaries with the tag gcp link them.
func openGCP(context.Context, string, platform.Meter) (*platform.Platform, error) {
	return nil, errors.New("this binary was built without Google Cloud: build it with 'make build TAGS=gcp'")
}
