package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// mutant is one change and its result.
type mutant struct {
	id  int
	out bool // not in the sample

	File     string   `json:"file"`
	Line     int      `json:"line"`
	Column   int      `json:"column"`
	Operator string   `json:"operator"`
	Change   string   `json:"change"`
	Fate     fate     `json:"fate"`
	By       string   `json:"by,omitempty"`    // a test, "time" or "memory"
	Reach    []string `json:"reach,omitempty"` // the tests that reach it, the fastest first
}

func (m *mutant) place() string { return fmt.Sprintf("%s:%d:%d", m.File, m.Line, m.Column) }

type fate string

const (
	killed     fate = "killed"
	survived   fate = "survived"
	notReached fate = "not reached"
	noCompile  fate = "does not compile"
)

// program is the test binary of a package, with mutants.
type program struct {
	binary string
	dir    string // folder of the package
}

// test is one top-level test of a program.
type test struct {
	program *program
	name    string
	outcome        // result without a mutant
	reached []byte // by number of the mutant
}

// build compiles the tests of packages with an overlay.
func build(ctx context.Context, root, folder string, overlay map[string]string, packages []string) ([]*program, error) {
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		return nil, err
	}
	var out []*program
	for i, pkg := range packages {
		p := &program{filepath.Join(folder, fmt.Sprintf("%d.test", i)), filepath.Join(root, filepath.FromSlash(pkg))}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", file, "-o", p.binary, "./"+pkg)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build the tests of %s: %w\n%s", pkg, err, text)
		}
		out = append(out, p)
	}
	return out, nil
}

// outcome is the result of a run.
type outcome struct {
	by        string // the failed test, "time" or "memory"; "" if nothing failed
	cpu, wall time.Duration
}

var failed = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// run runs tests of a program. It gives a seed to random numbers without one.
func (p *program) run(ctx context.Context, most time.Duration, tests []string, env ...string) (o outcome, err error) {
	limited, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	cmd := exec.CommandContext(limited, p.binary, "-test.run", "^("+strings.Join(tests, "|")+")$", "-test.failfast", "-test.timeout", "0", "-test.paniconexit0")
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), append([]string{"GOMAXPROCS=1", "GODEBUG=randautoseed=0"}, env...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it is killed with all its children
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	begun := time.Now()
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return o, ctx.Err()
	}
	if cmd.ProcessState == nil {
		return o, err
	}
	o.cpu, o.wall = cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime(), time.Since(begun)
	if err == nil {
		return o, nil
	}
	name := failed.FindSubmatch(output)
	switch {
	case name != nil:
		o.by = string(name[1])
	case limited.Err() != nil, bytes.Contains(output, []byte("SIGXCPU")):
		o.by = "time"
	case bytes.Contains(output, []byte("out of memory")), bytes.Contains(output, []byte("cannot allocate memory")):
		o.by = "memory"
	default:
		o.by = "panic in " + strings.Join(tests[:min(len(tests), 3)], ", ")
	}
	return o, nil
}

// tests runs each test of a program without a mutant, to record its time and the mutants that it reaches. It returns the names
// of tests that fail, for example because the switches make them slow.
func (p *program) tests(ctx context.Context, count int) (good []*test, bad []string, err error) {
	list := exec.CommandContext(ctx, p.binary, "-test.list", ".")
	list.Dir = p.dir
	out, err := list.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("list the tests of %s: %w", p.dir, err)
	}
	file := p.binary + ".reached"
	for _, name := range strings.Fields(string(out)) {
		if strings.HasPrefix(name, "Benchmark") {
			continue
		}
		if err := os.WriteFile(file, make([]byte, max(count, 1)), 0o600); err != nil {
			return nil, nil, err
		}
		o, err := p.run(ctx, 10*time.Minute, []string{name}, "MUTANTS_REACHED="+file)
		if err != nil {
			return nil, nil, err
		}
		if o.by != "" {
			bad = append(bad, name)
			continue
		}
		t := &test{program: p, name: name, outcome: o}
		if t.reached, err = os.ReadFile(file); err != nil {
			return nil, nil, err
		}
		good = append(good, t)
	}
	return good, bad, nil
}

// judge runs mutants, several at a time.
func judge(ctx context.Context, mutants []*mutant, tests []*test, workers int, progress func(done int)) error {
	slices.SortFunc(tests, func(a, b *test) int { return cmp.Or(cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.name, b.name)) })
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		next int
		errs []error
	)
	for range workers {
		wg.Go(func() {
			for {
				mu.Lock()
				if next == len(mutants) || len(errs) > 0 {
					mu.Unlock()
					return
				}
				m := mutants[next]
				next++
				progress(next)
				mu.Unlock()
				if err := m.judge(ctx, tests); err != nil {
					mu.Lock()
					errs = append(errs, err)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// judge runs the tests that reach a mutant until one fails: first the fast ones in one process, then slower ones.
func (m *mutant) judge(ctx context.Context, tests []*test) error {
	if m.Fate == killed {
		return nil // already judged
	}
	var reach []*test
	for _, t := range tests {
		if t.reached[m.id] != 0 {
			reach = append(reach, t)
			m.Reach = append(m.Reach, t.name)
		}
	}
	m.Fate = survived
	if len(reach) == 0 {
		m.Fate = notReached
	}
	for most := 200 * time.Millisecond; len(reach) > 0; most *= 3 {
		var names []string
		var cpu, wall time.Duration
		program := reach[0].program
		for len(reach) > 0 && reach[0].program == program && (len(names) == 0 || cpu+reach[0].cpu <= most) {
			names = append(names, reach[0].name)
			cpu += reach[0].cpu
			wall += reach[0].wall
			reach = reach[1:]
		}
		// The limit is several times the CPU time without a mutant, so that a busy machine kills no mutant. Only
		// a run that waits forever is ended by the clock.
		seconds := strconv.Itoa(1 + int(4*cpu/time.Second))
		o, err := program.run(ctx, time.Minute+20*wall, names, "MUTANTS_ACTIVE="+strconv.Itoa(m.id), "MUTANTS_SECONDS="+seconds)
		if err != nil {
			return err
		}
		if o.by != "" {
			m.Fate, m.By = killed, o.by
			return nil
		}
	}
	return nil
}
