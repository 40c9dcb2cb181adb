// Package process starts servers on this machine, for tests and for use by hand. A server and its children form a group,
// which ends with this process, whatever ends it.
package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startTime bounds the start of a server on a busy machine.
const startTime = 2 * time.Minute

// Command is the command of a server.
type Command struct {
	Args []string
	Env  map[string]string // beside PATH, HOME, TMPDIR and LANG
	Dir  string            // working directory, home, and place of temporary files
	Log  string            // file of its output
	User string            // user that it runs as if this process is root's; "" for the same
}

// Process is a running server with its children.
type Process struct {
	cmd    *exec.Cmd
	log    string
	keeper io.WriteCloser // the group ends when this closes, so also when this process dies
	gone   chan struct{}
}

// keep runs a command in the group, and ends the group when the command or its standard
// input ends.
const keep = `{ "$@" </dev/null; kill -9 0; } & cat >/dev/null; kill -9 0`

// Start starts a server.
func Start(c Command) (*Process, error) {
	temporary := filepath.Join(c.Dir, "tmp")
	if err := os.MkdirAll(temporary, 0o755); err != nil {
		return nil, err
	}
	out, err := os.Create(c.Log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command("sh", append([]string{"-c", keep, "sh"}, c.Args...)...)
	cmd.Dir = c.Dir
	env := map[string]string{"PATH": os.Getenv("PATH"), "HOME": c.Dir, "TMPDIR": temporary, "LANG": "C.UTF-8"}
	maps.Copy(env, c.Env)
	for name, v := range env {
		cmd.Env = append(cmd.Env, name+"="+v)
	}
	cmd.Stdout, cmd.Stderr = out, out
	if err := ownGroup(cmd, c.User); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, log: c.Log, gone: make(chan struct{})}
	if p.keeper, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		cmd.Wait() //nolint:errcheck // it always ends by a kill
		close(p.gone)
	}()
	return p, nil
}

// End kills the group, as kill -9 does, and waits for its leader.
func (p *Process) End() {
	p.keeper.Close()
	killGroup(p.cmd)
	<-p.gone
}

// Await waits until the server answers. Its error has the end of the log.
func (p *Process) Await(ctx context.Context, answers func(ctx context.Context) bool) (err error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w; the end of %s:\n%s", err, p.log, tail(p.log))
		}
	}()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-p.gone:
			return errors.New("it ended")
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", ctx.Err())
		case <-again.C:
		}
		if answers(ctx) {
			return nil
		}
	}
}

// tail returns the last lines of a log.
func tail(name string) []byte {
	b, err := os.ReadFile(name)
	if err != nil {
		return []byte(err.Error())
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return bytes.Join(lines[max(0, len(lines)-15):], []byte("\n"))
}

// FreePort returns a port of the loopback interface that nobody uses now.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
