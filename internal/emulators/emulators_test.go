//go:build unix

package emulators

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain also serves as a small emulator, for the tests that start one.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "serve" {
		port, child := os.Args[2], os.Args[3]
		if err := os.WriteFile("pid", fmt.Append(nil, os.Getpid()), 0o644); err != nil {
			panic(err)
		}
		if child == "dies" {
			fmt.Println("the port is taken")
			os.Exit(1)
		}
		if child != "hangs" {
			http.Handle("/ready", http.NotFoundHandler())
			panic(http.ListenAndServe("127.0.0.1:"+port, nil))
		}
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

func serve(how string) func(dir string, port int) spec {
	return func(_ string, port int) spec {
		return spec{args: []string{os.Args[0], "serve", fmt.Sprint(port), how}, ready: "/ready"}
	}
}

// pid returns the process id of the small emulator in dir.
func pid(t *testing.T, dir string) int {
	t.Helper()
	var n int
	for end := time.Now().Add(10 * time.Second); n == 0; time.Sleep(time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(dir, "pid"))
		if err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
		fmt.Sscan(string(b), &n)
	}
	return n
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

func TestStartAndEnd(t *testing.T) {
	dir := t.TempDir()
	p, url, err := start(t.Context(), "little", dir, dir, serve("well"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.Get(url + "/ready")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	p.End()
	ends(t, pid(t, dir))
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := start(t.Context(), "little", dir, dir, serve("dies")); err == nil || !strings.Contains(err.Error(), "the port is taken") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	dir = t.TempDir()
	go func() {
		pid(t, dir)
		cancel()
	}()
	if _, _, err := start(ctx, "little", dir, dir, serve("hangs")); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	ends(t, pid(t, dir))
}

func TestRunningIsOnLoopback(t *testing.T) {
	for _, c := range []struct {
		aws, dynamodb string
		want          bool
	}{
		{"http://127.0.0.1:1/", "http://localhost:2", true},
		{"http://[::1]:1", "http://127.0.0.2:2", true},
		{"http://127.0.0.1:1", "", false},
		{"", "http://127.0.0.1:1", false},
		{"https://sqs.us-east-1.amazonaws.com", "http://127.0.0.1:1", false},
		{"http://127.0.0.1.example.org", "http://127.0.0.1:1", false},
		{"127.0.0.1:1", "http://127.0.0.1:1", false},
	} {
		t.Setenv("AWS_ENDPOINT_URL", c.aws)
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", c.dynamodb)
		s := Running()
		if (s != nil) != c.want {
			t.Errorf("%q and %q: %+v", c.aws, c.dynamodb, s)
		}
		if s != nil && (strings.HasSuffix(s.AWS, "/") || s.Close() != nil) {
			t.Errorf("%+v", s)
		}
	}
}

// TestMissingProgramsAreNamed runs with a PATH of fake programs.
func TestMissingProgramsAreNamed(t *testing.T) {
	for _, c := range []struct{ python, java, want string }{
		{"", "", "found: none"},
		{"exit 1", "", "found: none"},
		{"echo 3 10", "", "found: 3.10"},
		{"echo 3 14", "", "found: 3.14"},
		{`case "$2" in *ensurepip*) exit 1;; esac; echo 3 11`, "", "apt-get install python3-venv"},
		{"echo 3 11", "", "there is no java"},
		{"echo 3 13", `echo 'openjdk version "11.0.2" 2019-01-15' >&2`, "is 11"},
		{"echo 3 12", "echo nonsense", "does not run"},
		{"echo 3 11", `echo 'openjdk version "17.0.15" 2025-04-15' >&2`, ""},
		{"echo 3 11", `echo 'openjdk version "25" 2025-09-16' >&2`, ""},
	} {
		dir := t.TempDir()
		for name, text := range map[string]string{"python3": c.python, "java": c.java} {
			if text != "" {
				if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		t.Setenv("PATH", dir)
		_, err := findPython(t.Context())
		if err == nil {
			_, err = findJava(t.Context())
		}
		var missing Missing
		if c.want == "" && err != nil || c.want != "" && (!errors.As(err, &missing) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q and %q: %v, want %q", c.python, c.java, err, c.want)
		}
	}
}

func TestFetchedOnceWhileThePinStays(t *testing.T) {
	k := &Kit{dir: t.TempDir(), sources: t.TempDir()}
	fetched := 0
	p := part{"thing", []string{"pin"}, func(_ context.Context, _ *Kit, _ part, into string, _ io.Writer) error {
		fetched++
		return os.MkdirAll(into, 0o755)
	}}
	var out bytes.Buffer
	for _, pin := range []string{"1", "1", "2"} {
		if err := os.WriteFile(filepath.Join(k.sources, "pin"), []byte(pin), 0o644); err != nil {
			t.Fatal(err)
		}
		done, err := k.done(p)
		if err != nil {
			t.Fatal(err)
		}
		if !done {
			if err := k.fetch(t.Context(), p, &out); err != nil {
				t.Fatal(err)
			}
		}
	}
	if fetched != 2 {
		t.Errorf("fetched %d times, want 2:\n%s", fetched, &out)
	}
	p.fetch = func(_ context.Context, _ *Kit, _ part, into string, _ io.Writer) error {
		return Missing("nothing here")
	}
	if err := os.WriteFile(filepath.Join(k.sources, "pin"), []byte("3"), 0o644); err != nil {
		t.Fatal(err)
	}
	var missing Missing
	if err := k.fetch(t.Context(), p, &out); !errors.As(err, &missing) {
		t.Errorf("%v", err)
	}
	if done, err := k.done(p); done || err != nil {
		t.Errorf("what failed counts as fetched: %v", err)
	}
}

// TestPinsAreThere checks that the pinned files fit the code.
func TestPinsAreThere(t *testing.T) {
	k, err := kit()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if _, err := k.stamp(p); err != nil {
			t.Error(err)
		}
	}
	for name, wants := range map[string]string{
		"requirements.txt": "localstack-core==4.12.0 " + strings.ReplaceAll(sourceOnly, ",", "== ") + "==", "requirements-moto.txt": "moto==5.2.1",
		"pom.xml": "<version>2.6.1<", "compose.yaml": "localstack:4.14.0 dynamodb-local:2.6.1 moto:5.2.1",
	} {
		text, err := os.ReadFile(filepath.Join(k.sources, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range strings.Fields(wants) {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: no %s", name, want)
			}
		}
	}
}

// TestEmulatorsAnswer starts the real emulators if they were fetched before.
func TestEmulatorsAnswer(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	k, err := kit()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if done, err := k.done(p); err != nil {
			t.Fatal(err)
		} else if !done {
			t.Skip("not fetched yet: ", p.name)
		}
	}
	if k.java, err = findJava(t.Context()); err != nil {
		t.Skip(err)
	}
	s, err := k.Start(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(s.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left", s.dir)
		}
	}()
	for name, v := range s.Environment() {
		if v == "" {
			t.Errorf("%s is empty", name)
		}
	}
}
