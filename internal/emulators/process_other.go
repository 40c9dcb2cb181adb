//go:build !unix

package emulators

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) {}

// lock returns an error: emulators run on Unix only.
func lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
