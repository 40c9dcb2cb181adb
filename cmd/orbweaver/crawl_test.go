package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// Limits of time. A busy machine gets a second and a third attempt.
const (
	firstPageWithin = time.Second
	stopWithin      = 2 * time.Second
	tries           = 3
)

// program is the program under test with its output collected.
func program(t *testing.T, args ...string) (_ *exec.Cmd, out, errOut *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command("orbweaver", args...) // installed by TestMain
	out, errOut = new(bytes.Buffer), new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = out, errOut
	return cmd, out, errOut
}

func TestFirstPageSoon(t *testing.T) {
	var took time.Duration
	for range tries {
		s := newSite()
		defer s.close()
		// robots.txt comes first, and the first page of a host right after it.
		cmd, _, errOut := program(t, "crawl", "--data", t.TempDir(), "--allow-net", "127.0.0.1", "--delay", "100ms", "--max-pages", "1", s.url+"/0")
		began := time.Now()
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, errOut)
		}
		if took = s.first().Sub(began); took < firstPageWithin {
			t.Logf("first page requested after %v", took)
			return
		}
	}
	t.Errorf("first page requested after %v, more than %v", took, firstPageWithin)
}

func TestStopsAtASignal(t *testing.T) {
	for _, c := range []struct {
		name   string
		signal os.Signal
	}{{"interrupt", os.Interrupt}, {"terminate", syscall.SIGTERM}} {
		t.Run(c.name, func(t *testing.T) {
			var took time.Duration
			for range tries {
				if took = stopOnce(t, c.signal); took < stopWithin {
					t.Logf("stopped after %v", took)
					return
				}
			}
			t.Errorf("stopped after %v, more than %v", took, stopWithin)
		})
	}
}

// stopOnce stops a crawl in the middle and resumes it: in the end every page was requested once.
func stopOnce(t *testing.T, sig os.Signal) time.Duration {
	s := newSite()
	defer s.close()
	args := []string{"crawl", "--data", filepath.Join(t.TempDir(), "it's"), "--allow-net", "127.0.0.1", "--delay", "20ms"}
	cmd, out, errOut := program(t, append(args, s.url+"/0")...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !s.wait(5) {
		t.Error("fewer than five pages were requested")
	}
	began := time.Now()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	took := time.Since(began)
	if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != int(exitStopped) {
		t.Fatalf("ended with %v, want status %d\n%s", err, exitStopped, errOut)
	}
	_, resume, ok := strings.Cut(out.String(), "resume     ")
	if !ok {
		t.Fatalf("no command that resumes the crawl in\n%s", out)
	}
	resume, _, _ = strings.Cut(resume, "\n")
	again := exec.Command("sh", "-c", resume+" --delay 0s --quiet")
	if text, err := again.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", resume, err, text)
	}
	// 40 pages, a redirect and a missing page; the aborted request may have been made twice.
	if n := s.count(); n < sitePages+2 || n > sitePages+3 {
		t.Errorf("%d pages were requested, want %d or one more", n, sitePages+2)
	}
	return took
}

func TestSecondSignalQuitsAtOnce(t *testing.T) {
	// A clean stop cannot be delayed from outside, so both signals are sent at once. The crawl must end with the status of
	// a stop.
	s := newSite()
	defer s.close()
	cmd, _, _ := program(t, "crawl", "--data", t.TempDir(), "--allow-net", "127.0.0.1", s.url+"/slow/1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.wait(1)
	for range 2 {
		_ = cmd.Process.Signal(os.Interrupt) // the second may come too late
	}
	err := cmd.Wait()
	if e := (*exec.ExitError)(nil); !errors.As(err, &e) || e.ExitCode() != int(exitStopped) {
		t.Errorf("ended with %v, want status %d", err, exitStopped)
	}
}

// TestEvents reads the events as a program does.
func TestEvents(t *testing.T) {
	s := newSite()
	defer s.close()
	cmd, out, errOut := program(t, "crawl", "--json", "--data", t.TempDir(), "--allow-net", "127.0.0.1", "--delay", "0s", s.url+"/0")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	var last struct {
		Event   string
		Time    time.Time
		Summary summary
	}
	var names []string
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if err := json.Unmarshal(sc.Bytes(), &last); err != nil {
			t.Fatalf("%v: %s", err, sc.Bytes())
		}
		names = append(names, last.Event)
		if time.Since(last.Time) > time.Minute {
			t.Errorf("event at %v", last.Time)
		}
	}
	if names[0] != "started" || names[len(names)-1] != "finished" {
		t.Errorf("events %v", names)
	}
	if s := &last.Summary; s.Totals.Pages != sitePages || s.Pages != sitePages || s.Calls.BlobPuts == 0 || s.Cost.Total <= 0 {
		t.Errorf("summary %+v", s)
	}
}

// testRun returns a run in a new folder, without a pace.
func testRun(t *testing.T, seeds ...string) (*run, *bytes.Buffer) {
	t.Helper()
	log := new(bytes.Buffer)
	s, err := demoRun(folderTarget(t.TempDir()), "http://127.0.0.1/", &reporter{Writer: log, quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	s.seeds = nil
	for _, raw := range seeds {
		u, err := weburl.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		s.seeds = append(s.seeds, crawl.Seed{URL: u})
	}
	return s, log
}

func TestUnreachableSeed(t *testing.T) {
	s, _ := testRun(t, "http://127.0.0.1:1/")
	s.retry = polite.Retry{Attempts: 1, Wait: time.Millisecond}
	sum, err := s.do(t.Context(), s.conclude)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Status != exitNothing || len(sum.Seeds) != 1 {
		t.Fatalf("summary %+v", sum)
	}
	text := seedsFailed(sum.Seeds, s.earlier.Crawl.Settings.AllowNet)
	for _, want := range []string{"http://127.0.0.1:1/: ", "check", "server is up"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// TestComparesWithTheTruth crawls as the demo does, and compares the crawl with the ground truth, and with one that was
// falsified in each way.
func TestComparesWithTheTruth(t *testing.T) {
	t.Parallel()
	web, err := serveDemo()
	if err != nil {
		t.Fatal(err)
	}
	defer web.close()
	var log bytes.Buffer
	s, err := demoRun(folderTarget(t.TempDir()), web.seed, &reporter{Writer: &log, quiet: true})
	if err != nil {
		t.Fatal(err)
	}
	sum, err := s.do(t.Context(), func(ctx context.Context, _ *summary) error {
		root := web.pages[web.seed]
		for _, c := range []struct {
			name, want string
			change     func()
			restore    func()
		}{
			{"nothing", "", func() {}, func() {}},
			{"body", web.seed + ": another body", func() { root.body += "x" }, func() { root.body = root.body[:len(root.body)-1] }},
			{"status", "status 200, expected 404", func() { root.status = 404 }, func() { root.status = 200 }},
			{"redirect", "redirect to", func() { root.location = "/" }, func() { root.location = "" }},
			{"outcome", "expected robots", func() { root.want = blobschema.OutcomeRobots }, func() { root.want = blobschema.OutcomeOK }},
			{"missing", "http://x/: is missing", func() { web.pages["http://x/"] = root }, func() { delete(web.pages, "http://x/") }},
			{"extra", web.seed + ": is not expected", func() { delete(web.pages, web.seed) }, func() { web.pages[web.seed] = root }},
		} {
			c.change()
			diff, err := s.compare(ctx, web)
			if err != nil || c.want == "" && diff != "" || !strings.Contains(diff, c.want) || strings.Count(diff, "\n") > 0 {
				t.Errorf("%s: %q, %v", c.name, diff, err)
			}
			c.restore()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[blobschema.Outcome]bool{}
	for _, p := range web.truth() {
		outcomes[p.want] = true
	}
	if len(outcomes) < 7 || sum.Status != exitOK || log.Len() > 0 {
		t.Errorf("outcomes %v, status %d, warnings %s", outcomes, sum.Status, &log)
	}
}

// TestDemo runs the demo.
func TestDemo(t *testing.T) {
	t.Parallel()
	cmd, out, errOut := program(t, "demo", "--quiet")
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errOut)
	}
	if !strings.Contains(out.String(), "equal to the ground truth") {
		t.Error(out)
	}
}

func TestStatusOfEnds(t *testing.T) {
	for _, c := range []struct {
		totals blobschema.Totals
		want   exit
	}{
		{blobschema.Totals{Pages: 1}, exitOK},
		{blobschema.Totals{Pages: 1, DeadMail: 1}, exitDeadLetters},
		{blobschema.Totals{}, exitNothing},
	} {
		s := &run{target: folderTarget("d"), opened: &opened{platform: &platform.Platform{Exclusive: true}}, begun: &beginning{}, earlier: view.Status{Crawl: blobschema.Crawl{ID: "c"}}, now: view.Status{Totals: c.totals}}
		sum := s.ended("finished", nil)
		if sum.Status != c.want {
			t.Errorf("%+v: status %d, want %d", c.totals, sum.Status, c.want)
		}
	}
}
