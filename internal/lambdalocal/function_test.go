//go:build unix

package lambdalocal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var bootstrap string // the built one of testdata

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "lambdalocal")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		bootstrap = filepath.Join(dir, "bootstrap")
		build := exec.Command("go", "build", "-tags=lambda.norpc", "-o", bootstrap, "./testdata/bootstrap")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n%s", build, err, out)
			return 1
		}
		return m.Run()
	}())
}

// logBuffer is a log that can be read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// open opens the test function with a changed configuration.
func open(t *testing.T, change func(c *Config)) (*Function, *logBuffer) {
	t.Helper()
	log := &logBuffer{}
	c := Config{Name: "toy", Bootstrap: bootstrap, MemoryMB: 128, Timeout: 20 * time.Second, Log: log}
	if change != nil {
		change(&c)
	}
	f, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left := f.Instances(); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if t.Failed() {
			t.Log(log)
		}
	})
	return f, log
}

type answer struct {
	N        int64
	Text     string
	Env      []string
	Deadline time.Time
	ARN      string
}

// do invokes the test function and reads its answer.
func do(t *testing.T, f *Function, what string, n int) (Invocation, answer) {
	t.Helper()
	inv, err := f.invoke(fmt.Appendf(nil, `{"Do":%q,"N":%d}`, what, n), "")
	if err != nil {
		t.Fatal(err)
	}
	var a answer
	if inv.Outcome == Succeeded {
		if err := json.Unmarshal(inv.Response, &a); err != nil {
			t.Fatal(err)
		}
	}
	return inv, a
}

func TestOpenRefusesWhatLambdaWould(t *testing.T) {
	good := Config{Name: "toy", Bootstrap: bootstrap, MemoryMB: 128, Timeout: time.Second}
	for name, change := range map[string]func(c *Config){
		"no file":  func(c *Config) { c.Bootstrap += "-not" },
		"a folder": func(c *Config) { c.Bootstrap = filepath.Dir(bootstrap) },
	} {
		c := good
		change(&c)
		if f, err := Open(c); err == nil {
			t.Errorf("%s: opened", name)
			f.Close()
		}
	}
}

func TestWarmInstancesAreReused(t *testing.T) {
	var billed time.Duration
	f, log := open(t, nil)
	for n := int64(1); n <= 3; n++ {
		inv, a := do(t, f, "count", 0)
		if inv.Outcome != Succeeded || a.N != n || inv.Cold != (n == 1) || (inv.Init > 0) != inv.Cold {
			t.Errorf("call %d: %+v, answer %+v", n, inv, a)
		}
		if inv.Billed < inv.Init+inv.Duration || inv.Billed%time.Millisecond != 0 || inv.Billed > inv.Init+inv.Duration+time.Millisecond {
			t.Errorf("billed %v for %v and %v", inv.Billed, inv.Init, inv.Duration)
		}
		billed += inv.Billed
	}
	if got := f.Instances(); len(got) != 1 || got[0].RequestID != "" {
		t.Errorf("instances: %+v", got)
	}
	f.Recycle()
	inv, a := do(t, f, "count", 0)
	if !inv.Cold || a.N != 1 {
		t.Errorf("not cold after Recycle: %+v %+v", inv, a)
	}
	billed += inv.Billed
	total := f.Totals()
	if total.Invocations != 4 || total.Cold != 2 || total.Outcomes[Succeeded] != 4 || total.MostAtOnce != 1 {
		t.Errorf("totals: %+v", total)
	}
	if total.Billed != billed || math.Abs(total.GBSeconds-billed.Seconds()/8) > 1e-9 {
		t.Errorf("billed %v, %v GB-s; the invocations say %v", total.Billed, total.GBSeconds, billed)
	}
	if n := strings.Count(log.String(), "REPORT RequestId: "); n != 4 {
		t.Errorf("%d report lines in\n%s", n, log)
	}
}

func TestEnvironmentIsLambdas(t *testing.T) {
	t.Setenv("OF_THE_USER", "1")
	f, _ := open(t, func(c *Config) {
		c.Env = map[string]string{"OURS": "x=y", "AWS_ACCESS_KEY_ID": "key"}
		c.MemoryMB, c.Region = 512, "eu-west-1"
	})
	begin := time.Now()
	_, a := do(t, f, "env", 0)
	for _, want := range []string{
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=512", "AWS_LAMBDA_FUNCTION_NAME=toy", "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=key",
		"LAMBDA_TASK_ROOT=" + filepath.Dir(bootstrap), "OURS=x=y", "AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
	} {
		if !slices.Contains(a.Env, want) {
			t.Errorf("no %s in %q", want, a.Env)
		}
	}
	for _, e := range a.Env {
		if strings.HasPrefix(e, "OF_THE_USER") || strings.HasPrefix(e, "AWS_EXECUTION_ENV") {
			t.Errorf("%s is not of Lambda", e)
		}
	}
	if a.ARN != f.arn || a.ARN != "arn:aws:lambda:eu-west-1:000000000000:function:toy" {
		t.Errorf("invoked as %s", a.ARN)
	}
	if left := a.Deadline.Sub(begin); left < 19*time.Second || left > 21*time.Second {
		t.Errorf("deadline in %v", left)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	hasty, log := open(t, func(c *Config) { c.Timeout = 300 * time.Millisecond })
	patient, _ := open(t, func(c *Config) { c.Timeout = 20 * time.Second }) // a busy machine is slow
	for _, c := range []struct {
		do       string
		n        int
		outcome  Outcome
		kind     string
		message  string
		survives bool
	}{
		{"count", 0, Succeeded, "", "", true},
		{"error", 0, Failed, "errorString", "no luck", true},
		{"long", maxPayload, Exited, "Function.ResponseSizeTooLarge", "6 MB", false},
		{"panic", 0, Exited, "string", "oh no", false},
		{"exit", 3, Exited, "Runtime.ExitError", "exit status 3", false},
		{"exit", 0, Exited, "Runtime.ExitError", "exit status 0", false},
		{"sleep", 60_000, TimedOut, "Sandbox.Timedout", "timed out after 0.30 seconds", false},
		{"child", 0, TimedOut, "Sandbox.Timedout", "timed out", false},
		{"hold", 150, OutOfMemory, "Runtime.OutOfMemory", "of 128", false},
	} {
		f := patient
		if c.outcome == TimedOut {
			f = hasty
		}
		if _, err := os.Stat("/proc/self/status"); err != nil && c.outcome == OutOfMemory {
			continue
		}
		inv, _ := do(t, f, c.do, c.n)
		if inv.Outcome != c.outcome || inv.ErrorType != c.kind || !strings.Contains(inv.ErrorMessage, c.message) || inv.Instance == "" {
			t.Errorf("%s: %+v", c.do, inv)
		}
		if alive := slices.ContainsFunc(f.Instances(), func(i Instance) bool { return i.ID == inv.Instance }); alive != c.survives {
			t.Errorf("%s: the instance lives: %v", c.do, alive)
		}
	}
	if !strings.Contains(log.String(), "sleeping\n") {
		t.Error("what the function printed is not in the log")
	}
}

func TestBrokenBootstrap(t *testing.T) {
	f, log := open(t, func(c *Config) { c.Env = map[string]string{"BROKEN": "1"} })
	if inv, _ := do(t, f, "count", 0); inv.Outcome != Exited || !strings.Contains(inv.ErrorMessage, "exit status 7") || inv.Billed == 0 {
		t.Errorf("%+v", inv)
	}
	if !strings.Contains(log.String(), "cannot start") {
		t.Error("its last words are not in the log")
	}
	text := filepath.Join(t.TempDir(), "bootstrap")
	if err := os.WriteFile(text, []byte("no program"), 0o755); err != nil {
		t.Fatal(err)
	}
	f, _ = open(t, func(c *Config) { c.Bootstrap = text })
	if inv, _ := do(t, f, "count", 0); inv.Outcome != Exited || inv.ErrorType != "Runtime.InvalidEntrypoint" {
		t.Errorf("%+v", inv)
	}
}

// TestFrozenBetweenInvocations checks that a goroutine that outlives an invocation stops until the next one.
func TestFrozenBetweenInvocations(t *testing.T) {
	f, _ := open(t, nil)
	do(t, f, "beat", 0)
	_, before := do(t, f, "beat", 0)
	time.Sleep(300 * time.Millisecond)
	_, after := do(t, f, "beat", 0)
	if beats := after.N - before.N; beats > 50 {
		t.Errorf("%d beats between two invocations", beats)
	}
	do(t, f, "sleep", 200)
	if _, later := do(t, f, "beat", 0); later.N-after.N < 20 {
		t.Errorf("only %d beats during an invocation: the test sees nothing", later.N-after.N)
	}
}

func TestConcurrency(t *testing.T) {
	f, _ := open(t, func(c *Config) { c.Concurrency = 2 })
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() { do(t, f, "sleep", 500) })
	}
	for len(busy(f)) < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := f.invoke([]byte(`{"Do":"count"}`), ""); !errors.Is(err, ErrThrottled) {
		t.Errorf("a third invocation: %v", err)
	}
	wait.Wait()
	if total := f.Totals(); total.Invocations != 2 || total.Cold != 2 || total.Throttled != 1 || total.MostAtOnce != 2 {
		t.Errorf("%+v", total)
	}
}

// busy returns the instances that run an invocation.
func busy(f *Function) []Instance {
	return slices.DeleteFunc(f.Instances(), func(i Instance) bool { return i.RequestID == "" })
}

func TestKill(t *testing.T) {
	f, _ := open(t, nil)
	do(t, f, "count", 0)
	idle := f.Instances()[0]
	if !f.Kill(idle.ID) {
		t.Error("the idle instance cannot be killed")
	}
	if inv, a := do(t, f, "count", 0); inv.Outcome != Succeeded || a.N != 1 {
		t.Errorf("after an idle instance died: %+v", inv)
	}

	ended := make(chan Invocation)
	go func() {
		inv, _ := do(t, f, "sleep", 60_000)
		ended <- inv
	}()
	for len(busy(f)) == 0 {
		time.Sleep(time.Millisecond)
	}
	if !f.Kill(busy(f)[0].ID) {
		t.Error("the busy instance cannot be killed")
	}
	if inv := <-ended; inv.Outcome != Exited || !strings.Contains(inv.ErrorMessage, "killed") {
		t.Errorf("%+v", inv)
	}
	if f.Kill(idle.ID) {
		t.Error("killed twice")
	}
}

func TestCloseEndsAll(t *testing.T) {
	f, _ := open(t, nil)
	do(t, f, "count", 0)
	ended := make(chan Invocation)
	go func() {
		inv, _ := do(t, f, "sleep", 60_000)
		ended <- inv
	}()
	for len(busy(f)) == 0 {
		time.Sleep(time.Millisecond)
	}
	pids := []int{}
	for _, i := range f.Instances() {
		pids = append(pids, i.PID)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if inv := <-ended; inv.Outcome != Exited {
		t.Errorf("%+v", inv)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if _, err := f.invoke([]byte("{}"), ""); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func TestPayloadsAreBounded(t *testing.T) {
	f, _ := open(t, nil)
	if _, err := f.invoke(make([]byte, maxPayload+1), ""); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestRuntimeAPI makes the requests of a runtime that breaks the rules.
func TestRuntimeAPI(t *testing.T) {
	f, _ := open(t, nil)
	i := &instance{f: f, current: "now"}
	for _, c := range []struct {
		path, body string
		status     int
	}{
		{"invocation/other/response", "{}", http.StatusBadRequest},
		{"invocation/now/response", "{}", http.StatusAccepted},
		{"invocation/now/response", "{}", http.StatusForbidden},
		{"invocation/now/error", "{}", http.StatusForbidden},
		{"init/error", `{"errorType":"a","errorMessage":"b"}`, http.StatusAccepted},
		{"init/other", "", http.StatusNotFound},
	} {
		w := &recorder{header: http.Header{}, status: http.StatusOK}
		r, err := http.NewRequest("POST", "http://runtime/2018-06-01/runtime/"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		i.routes().ServeHTTP(w, r)
		if w.status != c.status {
			t.Errorf("%s: status %d, want %d", c.path, w.status, c.status)
		}
	}
	if i.initErr == nil || i.initErr.errorType != "a" || i.initErr.errorMessage != "b" {
		t.Errorf("%+v", i.initErr)
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }

func TestLogLines(t *testing.T) {
	f, log := open(t, nil)
	w := &lineWriter{f: f, prefix: "p"}
	for _, s := range []string{"a\nb", "c\n\n", strings.Repeat("x", maxLine+3), "y\n", "end"} {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatal(n, err)
		}
	}
	w.flush()
	want := "p a\np bc\np \np " + strings.Repeat("x", maxLine) + "\np xxxy\np end\n"
	if log.String() != want {
		t.Errorf("%.100q", log)
	}
}
