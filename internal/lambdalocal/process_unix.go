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

// ownGroup puts the process into a group of its own, so that signals reach what it starts
// and nothing else. If we die first, the system continues and hangs up groups that are
// left stopped (setpgid(2), orphaned groups), so nothing stays frozen forever.
func ownGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// Errors mean that the group is gone, which whoever waits for it will see.

func killGroup(pid int) { syscall.Kill(-pid, syscall.SIGKILL) } //nolint:errcheck // see above

func stopGroup(pid int) { syscall.Kill(-pid, syscall.SIGSTOP) } //nolint:errcheck // see above

func continueGroup(pid int) { syscall.Kill(-pid, syscall.SIGCONT) } //nolint:errcheck // see above

// peakMemoryMB is the most that a process has had resident, in MB, rounded up; 0 if that
// cannot be known (proc_pid_status(5), VmHWM).
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
