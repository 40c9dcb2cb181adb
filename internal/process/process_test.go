//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestEnds starts a process with a child. Both end with their group, and also when the pipe to them closes, as the
// system does when this process dies.
func TestEnds(t *testing.T) {
	for name, end := range map[string]func(*Process){"killed": (*Process).End, "left": func(p *Process) { p.keeper.Close() }} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "pids")
			p, err := Start(Command{Args: []string{"sh", "-c", `sleep 60 & echo $$ $! > new; mv new pids; wait`}, Dir: dir, Log: filepath.Join(dir, "log")})
			if err != nil {
				t.Fatal(err)
			}
			var pids [2]int
			if err := p.Await(t.Context(), func(context.Context) bool {
				text, err := os.ReadFile(file)
				if err == nil {
					_, err = fmt.Sscan(string(text), &pids[0], &pids[1])
				}
				return err == nil
			}); err != nil {
				t.Fatal(err)
			}
			end(p)
			<-p.gone
			for _, pid := range pids {
				ends(t, pid)
			}
		})
	}
}

// TestAwaitSaysWhy checks that the error of a server that does not start has the end of its log.
func TestAwaitSaysWhy(t *testing.T) {
	dir := t.TempDir()
	p, err := Start(Command{Args: []string{"sh", "-c", "echo the port is taken; exit 1"}, Dir: dir, Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	err = p.Await(t.Context(), func(context.Context) bool { return false })
	if err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Error(err)
	}
}

// ends waits until a process is gone.
func ends(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
		if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil && strings.Contains(string(state), ") Z ") {
			return // dead, but not reaped yet
		}
		if time.Now().After(end) {
			t.Fatalf("process %d lives", pid)
		}
	}
}
