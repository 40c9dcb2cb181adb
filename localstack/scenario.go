package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// scenario returns the steps in order.
func scenario(o options) []step {
	steps := []step{
		{"build the command and the functions, as they ship", build},
		{"deploy; meanwhile one conformance suite, over the emulators", deployAndConform},
		{"crawl a made-up web, while functions are killed and calls fail", disturbed},
		{"recrawl by a message written by hand", recrawl},
		{"recrawl by a list that is put into the bucket", upload},
		{"poisonous messages", poison},
		{"fsck of what is stored", check},
		{"recrawl in the middle of a long crawl; stop, resume", busy},
		{"another crawl, every call counted twice", counted},
		{"an idle minute", idle},
		{"search: crawl, index and rank, while functions are killed; find every page", searchable},
		{"workers that come and go, one killed, without functions", workers},
		{"restore table and bucket of one moment; end the crawl there", restored},
	}
	if !o.fast {
		steps = append(steps, step{"pages of many megabytes, within the functions' memory", heavy})
	}
	if o.few {
		steps = append(steps, step{"few hosts with long delays", few})
	}
	steps = append(steps, step{"fsck once more", check}, step{"a second plan of Terraform", plan}, step{"destroy", destroy})
	return slices.DeleteFunc(steps, func(s step) bool {
		needed := strings.HasPrefix(s.name, "build ") || strings.HasPrefix(s.name, "deploy") || s.name == "destroy"
		return !needed && !strings.Contains(s.name, o.only)
	})
}

// command runs a program in the folder of the module and returns its standard output. env is added
// to the environment of this process.
func (w *world) command(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = w.root
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // for child processes of a killed command
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, tail(stdout.String()+stderr.String()))
	}
	return stdout.String(), nil
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// program builds a program of the module and returns its path.
func (w *world) program(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(w.dir, filepath.Base(folder))
	_, err := w.command(ctx, nil, "go", "build", "-o", path, folder)
	return path, err
}

// orbweaver runs the command line against the deployment, as a user would. Its calls do not go
// through the taps, which count what the functions do.
func (w *world) orbweaver(ctx context.Context, args ...string) (string, error) {
	return w.command(ctx, []string{"ORBWEAVER_PLATFORM=" + w.deployed.platform}, filepath.Join(w.root, "bin", "orbweaver"), args...)
}

// crawl runs 'orbweaver crawl' over any host, and returns its output.
func (w *world) crawl(ctx context.Context, seeds []string, flags ...string) (string, error) {
	args := append([]string{"crawl", "--scope", "any", "--sitemaps=false"}, flags...)
	return w.orbweaver(ctx, append(args, seeds...)...)
}

// deployAndConform deploys and runs the conformance suite at the same time: a deployment mostly waits for the
// provider.
func deployAndConform(ctx context.Context, w *world) (map[string]any, error) {
	var passed map[string]any
	var failed error
	var wg sync.WaitGroup
	if strings.Contains("conformance", w.only) { // also true if -only is not set
		wg.Go(func() { passed, failed = conformance(ctx, w) })
	}
	figures, err := deploy(ctx, w)
	wg.Wait()
	if err := errors.Join(err, failed); err != nil {
		return figures, err
	}
	maps.Copy(figures, passed)
	return figures, nil
}

// conformance runs the test suite of all platforms against the emulators.
func conformance(ctx context.Context, w *world) (map[string]any, error) {
	out, err := w.command(ctx, []string{"ORBWEAVER_TEST_AWS=1", "AWS_EC2_METADATA_DISABLED=true"}, "go", "test", "-count=1", "-run=AWS", "-v", "./internal/service")
	if err != nil {
		// The error has only the end of the output, which may not name a failed case.
		return nil, fmt.Errorf("%s%w", failures(out), err)
	}
	if strings.Contains(out, "--- SKIP: TestAWS") {
		return nil, errors.New("the suite was skipped")
	}
	return map[string]any{"passed": strings.Count(out, "--- PASS")}, nil
}

// failures returns the lines of a test's output that name failed cases.
func failures(out string) string {
	var failed strings.Builder
	for line := range strings.Lines(out) {
		if strings.HasPrefix(strings.TrimSpace(line), "--- FAIL: ") {
			failed.WriteString(line)
		}
	}
	return failed.String()
}

// invocationLine is the log line of an invocation.
type invocationLine struct {
	Msg   string `json:"msg"`
	Pages int64  `json:"pages"`
	Calls calls  `json:"calls"`
	Took  int64  `json:"took_ms"`
	Err   string `json:"error"`

	Read     int64 `json:"read"`     // pages whose text an index step has read
	Repeated int64 `json:"repeated"` // pages among them that another step reads too
}

// lines returns the lines of a function's log from a position on, and the next position.
func (w *world) lines(function string, from int64) (out []invocationLine, next int64, err error) {
	f, err := os.Open(w.logFile(function))
	if err != nil {
		return nil, from, err
	}
	defer f.Close()
	if _, err := f.Seek(from, 0); err != nil {
		return nil, from, err
	}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for next = from; s.Scan(); {
		next += int64(len(s.Bytes())) + 1
		_, text, ok := strings.Cut(s.Text(), "{")
		var l invocationLine
		if ok && json.Unmarshal([]byte("{"+text), &l) == nil && l.Msg != "" {
			out = append(out, l)
		}
	}
	return out, next, s.Err()
}
