//go:build !unix

package process

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd, string) error { return errors.ErrUnsupported }

func killGroup(*exec.Cmd) {}

// Own returns an error: servers run on Unix only.
func Own(string, string) error { return errors.ErrUnsupported }

// Lock returns an error: servers run on Unix only.
func Lock(string) (unlock func(), err error) { return nil, errors.ErrUnsupported }
