package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// orbweaver is the command itself: the test binary under its name (see TestMain).
func orbweaver(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self, args...)
	c.Args[0] = "orbweaver"
	return c
}

// TestKilledTenTimes kills a crawl with SIGKILL at ten moments and resumes it each time. It expects the same pages as without
// kills.
func TestKilledTenTimes(t *testing.T) {
	t.Parallel()
	srv, err := simweb.Start(t.Context(), simweb.Config{
		Seed: 5, Hosts: 12, Pages: simweb.Pages{Min: 40, Max: 80}, PageBytes: 4 << 10, LinksPerPage: 12,
		Connection: simweb.Connection{LatencyMin: 2 * time.Millisecond, LatencyMax: 20 * time.Millisecond},
		Kinds:      simweb.PageShares{Redirect: 0.05, Gone: 0.05},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	data := filepath.Join(t.TempDir(), "data")
	args := []string{"crawl", "--data", data, "--scope", "any", "--requisites=false", "--delay", "20ms", "--allow-net", "127.0.0.0/8", "--quiet"}
	rng := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for kills < 10 {
		c := orbweaver(t, append(args, web.Seeds()...)...)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- c.Wait() }()
		select {
		case <-time.After(time.Duration(100+rng.IntN(400)) * time.Millisecond):
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-done
			kills++
		case err := <-done:
			t.Fatalf("the crawl ended after %d kills: %v", kills, err)
		}
	}
	if out, err := orbweaver(t, args...).CombinedOutput(); err != nil {
		t.Fatalf("the last run: %v\n%s", err, out)
	}
	if out, err := orbweaver(t, "fsck", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("fsck: %v\n%s", err, out)
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{}), exported(t, data)); d != "" {
		t.Error(d)
	}
}

// TestKilledYoung kills a crawl with SIGKILL some seconds after its first page, and checks that the pages of the first
// seconds are stored.
func TestKilledYoung(t *testing.T) {
	t.Parallel()
	const links = 400
	began := make(chan struct{})
	var once sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		for i := range links {
			fmt.Fprintf(w, `<a href="/%d">%d</a>`, i, i)
		}
		once.Do(func() { close(began) })
	}))
	defer srv.Close()
	data := filepath.Join(t.TempDir(), "data")
	c := orbweaver(t, "crawl", "--data", data, "--delay", "100ms", "--allow-net", "127.0.0.0/8", "--quiet", srv.URL+"/")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	<-began
	select {
	case <-time.After(6 * time.Second):
	case err := <-done:
		t.Fatalf("the crawl ended: %v", err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-done
	if got := len(exported(t, data)); got < 10 || got >= links {
		t.Errorf("%d pages are left of six seconds at ten a second", got)
	}
}

// exported reads the page records that `export --format jsonl` writes.
func exported(t *testing.T, data string) map[string]simweb.Got {
	t.Helper()
	out, err := orbweaver(t, "export", "--data", data, "--format", "jsonl", "--out", "-").Output()
	if err != nil {
		t.Fatalf("export: %v", err)
	}
	return decodeExport(t, string(out))
}

func decodeExport(t *testing.T, text string) map[string]simweb.Got {
	t.Helper()
	got := map[string]simweb.Got{}
	for line := range strings.Lines(text) {
		var p struct {
			URL    string
			Robots bool
			simweb.Got
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		if !p.Robots {
			got[p.URL] = p.Got
		}
	}
	if len(got) == 0 {
		t.Fatal("no pages were exported")
	}
	return got
}
