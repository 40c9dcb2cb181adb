package platform_test

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"testing"

	"github.com/orbweaver/orbweaver/platform"
)

func TestPermanent(t *testing.T) {
	for err, want := range map[error]bool{
		io.ErrUnexpectedEOF:                                false,
		fmt.Errorf("put: %w", syscall.ENOSPC):              true,
		errors.New("put: " + syscall.EDQUOT.Error()):       true,
		fmt.Errorf("driver: %w", platform.ErrStopped):      true,
		fmt.Errorf("%w: head", platform.ErrConflict):       false,
		fmt.Errorf("%w: by another", platform.ErrNotFound): false,
	} {
		if platform.Permanent(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}
