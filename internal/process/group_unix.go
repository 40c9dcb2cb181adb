//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// ownGroup makes the command the leader of a group, and the process of another user if this one is root's.
func ownGroup(cmd *exec.Cmd, name string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if name == "" || os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ids(name)
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	return err
}

func ids(name string) (uid, gid uint32, err error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, 0, fmt.Errorf("run as another user than root: %w", err)
	}
	id, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	group, err := strconv.ParseUint(u.Gid, 10, 32)
	return uint32(id), uint32(group), err
}

// Own makes a folder one of a user, if this process is root's.
func Own(dir, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := ids(name)
	if err != nil {
		return err
	}
	return os.Chown(dir, int(uid), int(gid))
}

// killGroup kills the process group of cmd. An error means that the group is gone.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } //nolint:errcheck // see above

// Lock waits until this process holds the exclusive lock of a file.
func Lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}
