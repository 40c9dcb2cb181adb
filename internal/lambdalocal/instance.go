package lambdalocal

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	memoryInterval = 10 * time.Millisecond
	reapTime       = time.Second // for output that children hold open
)

// instance is a process of the bootstrap and its Runtime API.
type instance struct {
	id      string
	f       *Function
	started time.Time
	dir     string // its temporary folder
	cmd     *exec.Cmd
	out     *lineWriter
	api     *http.Server

	ready chan struct{} // receives when the runtime requests work and waits
	work  chan job      // jobs for the runtime
	gone  chan struct{} // closed when the process is reaped

	mu      sync.Mutex
	reaped  bool
	current string // request id of the current job
	since   time.Time
	reply   *reply // to the current job
	initErr *reply
	peakMB  int
}

// job is the answer to a runtime that requests work.
type job struct {
	event
	id       string
	deadline time.Time
}

// reply is the result of a job as the runtime posted it.
type reply struct {
	failed       bool
	body         []byte
	errorType    string
	errorMessage string
}

// newInstance starts a process and its API. The caller must call reap.
func newInstance(f *Function) (*instance, error) {
	i := &instance{
		id: newID(), f: f, started: time.Now(),
		ready: make(chan struct{}), work: make(chan job), gone: make(chan struct{}),
	}
	i.dir = filepath.Join(f.dir, i.id)
	if err := os.Mkdir(i.dir, 0o700); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i.out = &lineWriter{f: f, prefix: i.id[:8]}
	i.cmd = exec.Command(f.config.Bootstrap)
	i.cmd.Dir = f.task
	i.cmd.Env = i.environ(listener.Addr().String())
	i.cmd.Stdout, i.cmd.Stderr = i.out, i.out
	i.cmd.WaitDelay = reapTime
	if err := ownGroup(i.cmd); err != nil {
		listener.Close()
		return nil, err
	}
	i.api = &http.Server{Handler: i.routes(), ReadHeaderTimeout: 10 * time.Second}
	if err := i.cmd.Start(); err != nil {
		listener.Close()
		return nil, err
	}
	go i.api.Serve(listener) //nolint:errcheck // it ends by Close, in reap
	return i, nil
}

// reap waits for the process to end, and cleans up after it.
func (i *instance) reap() {
	i.cmd.Wait() //nolint:errcheck // its state holds the result
	i.mu.Lock()
	i.reaped = true
	i.mu.Unlock()
	killGroup(i.cmd.Process.Pid) // the processes that it started
	i.f.forget(i)
	close(i.gone)
	i.api.Close()
	i.out.flush()
	os.RemoveAll(i.dir)
}

func (i *instance) kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.reaped {
		killGroup(i.cmd.Process.Pid)
	}
}

// end kills the process and waits until it is gone.
func (i *instance) end() {
	i.kill()
	<-i.gone
}

// exitStatus describes how the process ended. The process must be gone.
func (i *instance) exitStatus() string {
	return "the bootstrap ended: " + i.cmd.ProcessState.String()
}

func (i *instance) snapshot() Instance {
	i.mu.Lock()
	defer i.mu.Unlock()
	return Instance{ID: i.id, PID: i.cmd.Process.Pid, Started: i.started, RequestID: i.current, Since: i.since}
}

// init waits until the runtime is ready for its first job, and reports whether it is.
func (i *instance) init(inv *Invocation) bool {
	inv.Instance = i.id
	ended := i.await(inv, maxInit)
	inv.Init = time.Since(i.started)
	inv.Billed = roundUp(inv.Init)
	inv.MaxMemoryMB = i.memory()
	i.mu.Lock()
	initErr := i.initErr
	i.mu.Unlock()
	switch ended {
	case "":
		return true
	case TimedOut:
		inv.ErrorType, inv.ErrorMessage = "Sandbox.Timedout", fmt.Sprintf("not ready after %v", maxInit)
	case Exited:
		inv.ErrorType, inv.ErrorMessage = "Runtime.ExitError", i.exitStatus()
		if initErr != nil {
			inv.ErrorType, inv.ErrorMessage = initErr.errorType, initErr.errorMessage
		}
	}
	inv.Outcome = ended
	return false
}

// invoke passes an event to the instance and waits for the result. It returns false if the instance was already
// dead. The instance is frozen before the call and, if it lives, afterwards.
func (i *instance) invoke(inv *Invocation, e event) bool {
	timeout := i.f.config.Timeout
	begin := time.Now()
	i.mu.Lock()
	i.current, i.since, i.reply = inv.RequestID, begin, nil
	i.mu.Unlock()
	i.thaw()
	select {
	case i.work <- job{e, inv.RequestID, begin.Add(timeout)}:
	case <-i.gone:
		return false
	}
	inv.Instance = i.id
	ended := i.await(inv, timeout)
	inv.Duration = time.Since(begin)
	inv.Billed = roundUp(inv.Init + inv.Duration)
	inv.MaxMemoryMB = i.memory()

	i.mu.Lock()
	i.current, i.since = "", time.Now()
	r := i.reply
	i.mu.Unlock()
	switch {
	case ended == TimedOut:
		inv.Outcome, inv.ErrorType = TimedOut, "Sandbox.Timedout"
		inv.ErrorMessage = fmt.Sprintf("Task timed out after %.2f seconds", timeout.Seconds())
	case ended == OutOfMemory:
		inv.Outcome = OutOfMemory
	case ended == Exited:
		inv.Outcome, inv.ErrorType, inv.ErrorMessage = Exited, "Runtime.ExitError", i.exitStatus()
		if r != nil && r.failed { // a panic is reported, then the process ends
			inv.ErrorType, inv.ErrorMessage = r.errorType, r.errorMessage
		}
	case r == nil:
		inv.Outcome, inv.ErrorType, inv.ErrorMessage = Failed, "Runtime.NoReply", "the runtime asked for more work without a reply"
	case r.failed:
		inv.Outcome, inv.ErrorType, inv.ErrorMessage = Failed, r.errorType, r.errorMessage
	default:
		inv.Outcome, inv.Response = Succeeded, r.body
	}
	return true
}

// await waits until the runtime requests work, freezes it and returns "". If the instance ends first, await
// returns how it ended.
func (i *instance) await(inv *Invocation, limit time.Duration) Outcome {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	look := time.NewTicker(memoryInterval)
	defer look.Stop()
	for {
		select {
		case <-i.ready:
			i.freeze()
			if i.overMemory(inv) {
				i.end()
				return OutOfMemory
			}
			return ""
		case <-timeout.C:
			i.end()
			return TimedOut
		case <-look.C:
			if i.overMemory(inv) {
				i.end()
				return OutOfMemory
			}
		case <-i.gone:
			return Exited
		}
	}
}

// overMemory reports whether the instance has used too much memory. It checks the peak, so that no use between
// two checks is missed.
func (i *instance) overMemory(inv *Invocation) bool {
	mb := i.memory()
	if mb <= i.f.config.MemoryMB {
		return false
	}
	inv.ErrorType = "Runtime.OutOfMemory"
	inv.ErrorMessage = fmt.Sprintf("the instance has had %d MB of %d", mb, i.f.config.MemoryMB)
	return true
}

// memory returns the peak resident memory of the process in MB, as last read.
func (i *instance) memory() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.reaped {
		i.peakMB = max(i.peakMB, peakMemoryMB(i.cmd.Process.Pid))
	}
	return i.peakMB
}

func (i *instance) freeze() { i.signal(stopGroup) }

func (i *instance) thaw() { i.signal(continueGroup) }

// signal calls send for the process's group unless the process was reaped: then another process may have its
// number.
func (i *instance) signal(send func(pid int)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.reaped {
		send(i.cmd.Process.Pid)
	}
}
