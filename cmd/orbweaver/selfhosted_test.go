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
	t       *testing.T
	servers []*servers.Server
	env     []string
}

// withServers reports whether tests must use all servers, and fail if one is missing.
func withServers() bool { return os.Getenv("ORBWEAVER_TEST_SERVERS") != "" }

// tools is the folder of servers that are built once.
var tools = filepath.Join("..", "..", "bin", "tools")

func (s *selfHosted) onPostgres() string {
	s.t.Helper()
	db, err := servers.NewPostgres(s.t.Context())
	if errors.Is(err, servers.ErrMissing) && !withServers() {
		s.t.Skip(err)
	}
	must(s.t, err)
	s.t.Cleanup(func() {
		if err := db.Close(); err != nil {
			s.t.Error(err)
		}
	})
	s.servers = append(s.servers, &db.Server)
	return db.URL() + "?partitions=6"
}

func (s *selfHosted) onNATS() string {
	s.t.Helper()
	if !withServers() {
		s.t.Skip("not run: make selfhosted-test builds the servers")
	}
	n, err := servers.NewNATS(s.t.Context(), tools, s.t.TempDir())
	must(s.t, err)
	s.t.Cleanup(n.Kill)
	s.servers = append(s.servers, &n.Server)
	return n.URL() + "?partitions=6&sync=confirmed"
}

// blobs returns the URL of a bucket: of an object store if there are all servers, otherwise a folder.
func (s *selfHosted) blobs() string {
	s.t.Helper()
	if !withServers() {
		return "file://" + filepath.ToSlash(s.t.TempDir())
	}
	store, err := servers.NewObjectStore(s.t.Context(), tools, s.t.TempDir())
	must(s.t, err)
	s.t.Cleanup(store.Kill)
	s.servers = append(s.servers, &store.Server)
	return store.URL()
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

// TestSelfHosted crawls, indexes and ranks on servers of this machine. One worker is killed and one leaves; all servers
// are killed and restarted. The result equals the truth, and can be searched.
func TestSelfHosted(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*selfHosted) string{"postgres": (*selfHosted).onPostgres, "nats": (*selfHosted).onNATS} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &selfHosted{t: t}
			s.env = append(os.Environ(), platformVariable+"="+begin(s)+"&blobs="+s.blobs(),
				"AWS_ACCESS_KEY_ID="+servers.AccessKey, "AWS_SECRET_ACCESS_KEY="+servers.SecretKey)
			s.crawl()
		})
	}
}

func (s *selfHosted) crawl() {
	t := s.t
	srv, err := simweb.Start(t.Context(), simweb.Config{Seed: 21, Hosts: 16, Pages: simweb.Pages{Min: 40}, CrossHost: 0.3})
	must(t, err)
	t.Cleanup(func() { srv.Close() })
	first, second := s.work(), s.work()
	s.run(append([]string{"crawl", "--detach", "--index", "--scope", "any", "--delay", "150ms"}, srv.Web().Seeds()...)...)
	s.until("both workers have pages", func() bool { return first.pages.Load() > 0 && second.pages.Load() > 0 })

	must(t, first.Process.Kill())
	<-first.done
	for _, server := range s.servers {
		server.Kill()
	}
	time.Sleep(time.Second) // the workers meet dead servers
	for _, server := range s.servers {
		must(t, server.Start(t.Context()))
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
