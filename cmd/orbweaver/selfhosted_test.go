package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/servers"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// selfHosted is a platform of servers on this machine, and the commands on it.
type selfHosted struct {
	t        *testing.T
	postgres *servers.Postgres
	store    *servers.ObjectStore // nil if the bucket is a folder
	env      []string
}

// startSelfHosted starts PostgreSQL. With ORBWEAVER_TEST_SERVERS it also starts an object store, and a missing server is an error.
func startSelfHosted(t *testing.T) *selfHosted {
	t.Helper()
	demanded := os.Getenv("ORBWEAVER_TEST_SERVERS") != ""
	s := &selfHosted{t: t}
	var err error
	s.postgres, err = servers.NewPostgres(t.Context())
	if errors.Is(err, servers.ErrMissing) && !demanded {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() {
		if err := s.postgres.Close(); err != nil {
			t.Error(err)
		}
	})
	blobs := "file://" + filepath.ToSlash(t.TempDir())
	if demanded {
		s.store, err = servers.NewObjectStore(t.Context(), filepath.Join("..", "..", "bin", "tools"), t.TempDir())
		must(t, err)
		t.Cleanup(s.store.Kill)
		blobs = s.store.URL()
	}
	s.env = append(os.Environ(), platformVariable+"="+s.postgres.URL()+"?partitions=6&blobs="+blobs,
		"AWS_ACCESS_KEY_ID="+servers.AccessKey, "AWS_SECRET_ACCESS_KEY="+servers.SecretKey)
	return s
}

// run runs a command and returns its output.
func (s *selfHosted) run(args ...string) string {
	s.t.Helper()
	c := orbweaver(s.t, args...)
	c.Env = s.env
	var msgs strings.Builder
	c.Stderr = &msgs
	out, err := c.Output()
	if err != nil {
		s.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, out, &msgs)
	}
	return string(out)
}

// peer is a worker process.
type peer struct {
	*exec.Cmd
	pages atomic.Int64
	done  chan error
}

func (s *selfHosted) work(args ...string) *peer {
	s.t.Helper()
	p := &peer{Cmd: orbweaver(s.t, append([]string{"work", "--json", "--allow-net", "127.0.0.0/8", "--lease", "5s", "--tick", "1s", "--steps", "2"}, args...)...), done: make(chan error, 1)}
	p.Env, p.Stderr = s.env, os.Stderr
	out, err := p.StdoutPipe()
	must(s.t, err)
	must(s.t, p.Start())
	go func() {
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var event struct {
				Pages int64 `json:"pages"`
			}
			if json.Unmarshal(lines.Bytes(), &event) == nil {
				p.pages.Store(max(event.Pages, p.pages.Load()))
			}
		}
		p.done <- p.Wait()
	}()
	return p
}

// until waits up to a minute for a condition.
func (s *selfHosted) until(what string, holds func() bool) {
	s.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > time.Minute {
			s.t.Fatalf("after a minute still not: %s", what)
		}
	}
}

// TestSelfHosted crawls, indexes and ranks on servers of this machine. One worker is killed and one leaves; both servers
// are killed and restarted. The result equals the truth, and can be searched.
func TestSelfHosted(t *testing.T) {
	t.Parallel()
	s := startSelfHosted(t)
	srv, err := simweb.Start(t.Context(), simweb.Config{Seed: 21, Hosts: 16, Pages: simweb.Pages{Min: 40}, CrossHost: 0.3})
	must(t, err)
	t.Cleanup(func() { srv.Close() })
	first, second := s.work(), s.work()
	s.run(append([]string{"crawl", "--detach", "--index", "--scope", "any", "--delay", "150ms"}, srv.Web().Seeds()...)...)
	s.until("both workers have pages", func() bool { return first.pages.Load() > 0 && second.pages.Load() > 0 })

	must(t, first.Process.Kill())
	<-first.done
	s.postgres.Kill()
	if s.store != nil {
		s.store.Kill()
	}
	time.Sleep(time.Second) // the workers meet dead servers
	must(t, s.postgres.Start(t.Context()))
	if s.store != nil {
		must(t, s.store.Start(t.Context()))
	}
	third := s.work("--idle-exit")
	s.until("the third worker has pages", func() bool { return third.pages.Load() > 0 })
	must(t, second.Process.Signal(syscall.SIGTERM))
	if err := <-second.done; err != nil {
		t.Errorf("the worker that leaves: %v", err)
	}
	if err := <-third.done; err != nil {
		t.Errorf("the last worker: %v", err)
	}
	s.run("fsck")
	if d := simweb.Diff(srv.Web().Truth(simweb.Scope{}), decodeExport(t, s.run("export", "--format", "jsonl", "--out", "-"))); d != "" {
		t.Error(d)
	}
	var found struct{ Results []struct{ URL string } }
	must(t, json.Unmarshal([]byte(s.run("search", "--json", "--lang", "en")), &found))
	if len(found.Results) == 0 {
		t.Error("nothing is found")
	}
	if ranks := s.run("rank", "--show", "--top", "1", "--json"); !strings.Contains(ranks, `"crawled": `) {
		t.Errorf("ranks: %s", ranks)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
