//go:build unix

package lambdalocal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// ownGroup puts the process into its own group, so that signals reach it and its children and nothing else. If
// this process dies first, the system continues stopped groups and sends them SIGHUP (setpgid(2), orphaned
// groups), so nothing stays frozen forever.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// An error means that the group is gone, which reap notices.

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) } //nolint:errcheck // see above

func stopGroup(pid int) { syscall.Kill(-pid, syscall.SIGSTOP) } //nolint:errcheck // see above

func continueGroup(pid int) { syscall.Kill(-pid, syscall.SIGCONT) } //nolint:errcheck // see above

// peakMemoryMB returns the peak resident memory of a process in MB, rounded up; 0 if it is unknown
// (proc_pid_status(5), VmHWM).
func peakMemoryMB(pid int) int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, found := bytes.Cut(status, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return 0
	}
	kb, err := strconv.Atoi(string(fields[0]))
	if err != nil {
		return 0
	}
	return (kb + 1023) / 1024
}
