//go:build !unix

package lambdalocal

import (
	"errors"
	"os/exec"
)

// ownGroup returns an error: instances need process groups and signals.
func ownGroup(*exec.Cmd) error { return errors.ErrUnsupported }

func killGroup(pid int) {}

func stopGroup(pid int) {}

func continueGroup(pid int) {}

func peakMemoryMB(pid int) int { return 0 }
