// Package lambdalocal runs functions as AWS Lambda does, on one machine. It starts the shipped bootstrap
// binaries as processes and drives them through the Runtime API.
//
// A [Function] keeps instances: each is a process of the bootstrap with its own Runtime API server on loopback.
// An instance runs one invocation at a time. Between two invocations it is frozen (SIGSTOP), so that work that
// outlives an invocation stops and is noticed. It is killed without warning when its time or memory is used up.
// A chain of calls ends after 16 calls of a function, unless the function allows more. A [Poller] passes
// messages of an SQS queue to a function as an event source mapping does. A [Schedule] calls a function at a
// fixed rate.
//
// Differences from Lambda: the processor is not rationed by memory, instances share the machine's file system
// and clock, idle instances live until [Function.Recycle], and a failed invocation of a schedule is not
// retried. Memory means that of the bootstrap's own process, and is watched only on systems with /proc.
//
// Sources: the Lambda developer guide, chapters "Building a custom runtime",
// "Understanding the Lambda execution environment lifecycle" and "Defined runtime
// environment variables".
package lambdalocal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Limits of AWS. Terraform's provider checks those of a configuration.
const (
	maxPayload = 6 << 20 // bytes of a request, and of a response
	maxInit    = 10 * time.Second

	defaultConcurrency = 1000

	account = "000000000000" // account in names of resources, as in emulators
)

// Errors of calls that ran nothing and are not billed.
var (
	ErrThrottled = errors.New("too many invocations at once")
	ErrClosed    = errors.New("the function is closed")
	ErrTooLarge  = errors.New("the payload is larger than 6 MB")
	ErrRecursive = errors.New("the function was called 16 times in one chain already, and is not configured to allow more")
)

// Config describes a function.
type Config struct {
	Name      string
	Bootstrap string            // path of the executable; its folder is the task root
	Env       map[string]string // added to the variables of Lambda, and overrides them
	MemoryMB  int
	Timeout   time.Duration // of an invocation

	Region string // "us-east-1" if empty

	// Concurrency bounds the concurrent invocations; more are throttled. 0 means the limit of an account,
	// 1,000.
	Concurrency int

	// RecursiveLoop decides about a chain in which the function has been called 16 times: [Allow]
	// continues it, anything else ends it.
	RecursiveLoop string

	// Log receives the output of instances and Lambda's own log lines, each line preceded by the id of its
	// instance; nil: no log.
	Log io.Writer
}

// Function is a deployed function. Its methods may be called concurrently.
type Function struct {
	config Config
	arn    string
	task   string // absolute path of the bootstrap's folder
	dir    string // of the instances' temporary folders

	mu     sync.Mutex
	closed bool
	idle   []*instance // the most recently used one is used next
	all    map[*instance]bool
	busy   int // invocations, including those whose instance is starting
	totals Totals

	logMu   sync.Mutex
	started sync.WaitGroup // processes not yet reaped
}

// Open prepares a function; instances start when they are needed. Close it.
func Open(c Config) (*Function, error) {
	c.Region = cmp.Or(c.Region, "us-east-1")
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	bootstrap, err := exec.LookPath(c.Bootstrap)
	if err == nil {
		c.Bootstrap, err = filepath.Abs(bootstrap)
	}
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", c.Name, err)
	}
	dir, err := os.MkdirTemp("", "lambda-"+c.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", c.Name, err)
	}
	return &Function{
		config: c,
		arn:    fmt.Sprintf("arn:aws:lambda:%s:%s:function:%s", c.Region, account, c.Name),
		task:   filepath.Dir(c.Bootstrap),
		dir:    dir,
		all:    map[*instance]bool{},
	}, nil
}

// Config returns the configuration of the function, with its defaults.
func (f *Function) Config() Config { return f.config }

// invoke runs the function on a payload, a JSON text, and returns when the instance has requested more work or
// is dead. header is the trace header of the event, or "". An error means that nothing ran. A failure of the
// function is an outcome, not an error.
func (f *Function) invoke(payload []byte, header string) (Invocation, error) {
	if len(payload) > maxPayload {
		return Invocation{}, fmt.Errorf("function %s: %w", f.config.Name, ErrTooLarge)
	}
	trace, calls := f.next(header)
	if err := f.enter(calls); err != nil {
		return Invocation{}, fmt.Errorf("function %s: %w", f.config.Name, err)
	}
	inv := f.run(event{payload, trace})
	f.leave(inv)
	return inv, nil
}

// event is the input of an invocation.
type event struct {
	payload []byte
	trace   string // header
}

// enter admits an invocation, given the number of calls of the function in its chain.
func (f *Function) enter(calls int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return ErrClosed
	case calls > maxChain && f.config.RecursiveLoop != Allow:
		f.totals.Recursive++
		return ErrRecursive
	case f.busy >= f.config.Concurrency:
		f.totals.Throttled++
		return ErrThrottled
	}
	f.busy++
	f.totals.MostAtOnce = max(f.totals.MostAtOnce, f.busy)
	return nil
}

func (f *Function) leave(inv Invocation) {
	f.report(inv)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy--
	f.totals.add(inv, f.config.MemoryMB)
}

// run finds or starts an instance for the event and invokes it.
func (f *Function) run(e event) Invocation {
	inv := Invocation{RequestID: newID()}
	for {
		i := f.warm()
		if i == nil {
			break
		}
		if i.invoke(&inv, e) {
			f.release(i, inv.Outcome)
			return inv
		}
		// The instance died while it was idle. Lambda does not notice that either.
	}
	inv.Cold = true
	i, err := f.start()
	if err != nil {
		inv.Outcome, inv.ErrorType, inv.ErrorMessage = Exited, "Runtime.InvalidEntrypoint", err.Error()
		return inv
	}
	if i.init(&inv) && !i.invoke(&inv, e) {
		inv.Outcome, inv.ErrorType, inv.ErrorMessage = Exited, "Runtime.ExitError", i.exitStatus()
	}
	f.release(i, inv.Outcome)
	return inv
}

// warm returns an idle instance, or nil.
func (f *Function) warm() *instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) == 0 {
		return nil
	}
	i := f.idle[len(f.idle)-1]
	f.idle = f.idle[:len(f.idle)-1]
	return i
}

// start begins a new instance.
func (f *Function) start() (*instance, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	i, err := newInstance(f)
	if err != nil {
		return nil, err
	}
	f.all[i] = true
	f.started.Go(i.reap)
	return i, nil
}

// forget removes an instance that is gone from the lists.
func (f *Function) forget(i *instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, i)
	f.idle = slices.DeleteFunc(f.idle, func(other *instance) bool { return other == i })
}

// release keeps an instance for the next invocation, or ends it.
func (f *Function) release(i *instance, o Outcome) {
	if o != Succeeded && o != Failed { // a function may report an error and continue
		i.end()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[i] {
		f.idle = append(f.idle, i)
	}
}

// Instance is a snapshot of a process of the bootstrap.
type Instance struct {
	ID        string
	PID       int
	Started   time.Time
	RequestID string // of its invocation, "" if it is frozen
	Since     time.Time
}

// Instances returns the living instances, the oldest first.
func (f *Function) Instances() []Instance {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]Instance, 0, len(f.all))
	for i := range f.all {
		out = append(out, i.snapshot())
	}
	slices.SortFunc(out, func(a, b Instance) int { return a.Started.Compare(b.Started) })
	return out
}

// Kill ends an instance with SIGKILL and reports whether it was alive. When it returns, the
// instance is gone. Its invocation ends as [Exited].
func (f *Function) Kill(id string) bool {
	f.mu.Lock()
	var victim *instance
	for i := range f.all {
		if i.id == id {
			victim = i
		}
	}
	f.mu.Unlock()
	if victim == nil {
		return false
	}
	victim.end()
	return true
}

// Recycle ends all idle instances, so that the next invocations are cold.
func (f *Function) Recycle() {
	f.mu.Lock()
	idle := f.idle
	f.idle = nil
	f.mu.Unlock()
	for _, i := range idle {
		i.end()
	}
}

// Totals returns the sums over all invocations so far.
func (f *Function) Totals() Totals {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.totals
	t.Outcomes = maps.Clone(t.Outcomes)
	return t
}

// Close kills all instances, including busy ones, and waits until they are gone.
func (f *Function) Close() error {
	f.mu.Lock()
	f.closed = true
	for i := range f.all {
		i.kill()
	}
	f.mu.Unlock()
	f.started.Wait()
	return os.RemoveAll(f.dir)
}
