package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
)

// TestScaledWhileItRuns changes the number of partitions several times while a crawl runs. It expects the same pages as
// without changes, each once.
func TestScaledWhileItRuns(t *testing.T) {
	t.Parallel()
	srv, err := simweb.Start(t.Context(), simweb.Config{
		Seed: 6, Hosts: 40, Pages: simweb.Pages{Min: 30, Max: 60}, PageBytes: 4 << 10, LinksPerPage: 12,
		Connection: simweb.Connection{LatencyMin: 2 * time.Millisecond, LatencyMax: 20 * time.Millisecond},
		Kinds:      simweb.PageShares{Redirect: 0.05, Gone: 0.05},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	web := srv.Web()
	data := filepath.Join(t.TempDir(), "data")
	delay := "160ms" // leaves time for all changes
	if raced {
		delay = "1s"
	}
	args := []string{"crawl", "--data", data, "--scope", "any", "--requisites=false", "--delay", delay, "--allow-net", "127.0.0.0/8", "--quiet", "--slots", "64", "--partitions", "4"}
	crawl := orbweaver(t, append(args, web.Seeds()...)...)
	var out strings.Builder
	crawl.Stdout, crawl.Stderr = &out, &out
	if err := crawl.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- crawl.Wait() }()
	for !fetched(t, data, 20) {
		time.Sleep(20 * time.Millisecond)
	}
	pages := int64(0)
	for _, change := range []struct {
		args   []string
		owners int
	}{
		{[]string{"scale", "8"}, 8}, {[]string{"scale", "3"}, 3}, {[]string{"move", "0-9", "--to", "7"}, 4}, {[]string{"rollback"}, 3},
	} {
		var r repartitioned
		told(t, &r, append(append([]string{"partitions"}, change.args...), "--data", data, "--wait", "--json")...)
		if !r.Changed || !r.Arrived || r.Owners != change.owners || r.PID != crawl.Process.Pid {
			t.Errorf("%v: %+v", change.args, r)
		}
		var l layoutReport
		told(t, &l, "partitions", "--data", data, "--json")
		held, with, stored := 0, 0, int64(0)
		for _, p := range l.Parts {
			held += p.Slots
			stored += p.Pages
			if p.Slots > 0 {
				with++
			}
		}
		if held != 64 || with != change.owners || len(l.Parts) < 4 || stored < pages {
			t.Errorf("after %v: %+v", change.args, l)
		}
		pages = stored
		u := web.Seeds()[0]
		var e struct{ State string }
		if told(t, &e, "explain", "--data", data, "--json", u); e.State != "fetched" {
			t.Errorf("after %v %s is %s", change.args, u, e.State)
		}
	}
	select {
	case err := <-done:
		t.Errorf("the crawl ended before it was changed for the last time: %v\n%s", err, &out)
	default:
		if err := <-done; err != nil {
			t.Errorf("the crawl: %v\n%s", err, &out)
		}
	}
	if out, err := orbweaver(t, "fsck", "--data", data).CombinedOutput(); err != nil {
		t.Errorf("fsck: %v\n%s", err, out)
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{}), exported(t, data)); d != "" {
		t.Error(d)
	}
	list, err := orbweaver(t, "export", "--data", data, "--format", "urls", "--history", "--out", "-").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for u := range strings.Lines(string(list)) {
		if seen[u] {
			t.Errorf("%s is visible twice", u)
		}
		seen[u] = true
	}
}

// told runs a command and decodes its JSON output.
func told(t *testing.T, into any, args ...string) {
	t.Helper()
	out, err := orbweaver(t, args...).Output()
	if err != nil {
		var stderr []byte
		if e, ok := err.(*exec.ExitError); ok {
			stderr = e.Stderr
		}
		t.Fatalf("%v: %v\n%s%s", args, err, out, stderr)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// fetched reports whether a crawl has committed n pages.
func fetched(t *testing.T, data string, pages int64) bool {
	out, err := orbweaver(t, "status", "--data", data, "--json").Output()
	var r statusReport
	return err == nil && json.Unmarshal(out, &r) == nil && r.Totals.Pages >= pages
}

func TestCloudPartitions(t *testing.T) { testCloudPartitions(memoryCloud(t)) }

// testCloudPartitions changes the partitions of a crawl in a cloud, before and after functions work on it.
func testCloudPartitions(c *cloud) {
	url := c.site.url
	c.run("partitions").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("partitions", "scale", "2").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("crawl", "--elastic", "1..4", url+"/0").ends(exitUsage, `--elastic 1..4 is too many: aws://test was deployed for 3`)
	c.run("crawl", "--delay", "0s", "--slots", "8", "--partitions", "2", "--detach", url+"/0").ends(exitOK)
	c.run("partitions").ends(exitOK, `^map +8 slots of 2 partitions, epoch 1$`, `^ *1 +4 +0 +0 +0 +0 +0 +- +- +0 +0 *$`)
	c.run("partitions", "scale", "4").ends(exitUsage, `4 partitions are too many: aws://test was deployed with 3`)
	c.run("partitions", "scale", "4", "--dry-run").ends(exitUsage, `4 partitions are too many: aws://test was deployed with 3`)
	c.run("partitions", "move", "1", "--to", "3").ends(exitUsage, `there can be no partition 3: aws://test was deployed with 3`)
	c.run("partitions", "scale", "3").ends(exitOK,
		`^crawl .* in aws://test: 2 slots move of 8 \(25%\) for 3 partitions instead of 2; steps at work begin with their next commit, others are woken$`)
	c.run("status").ends(exitOK, `^at work +\d of 3 partitions$`, `^moving +2 slots between partitions; see 'orbweaver partitions --platform `)
	off := c.functions()
	defer func() { off() }()
	c.run("crawl", "--every", "50ms").ends(exitOK, `^Finished: nothing is left to do, 40 pages\.$`)
	c.eventually("partitions", `(?m)^ *all +8 +0 +0 +42 +0 +40 `)
	c.run("partitions", "scale", "1", "--wait").ends(exitOK, `for 1 partition instead of 3; all have arrived after \d`)
	c.run("partitions").ends(exitOK, `^map +8 slots of 1 partition, epoch \d+$`, `^ *0 +8 +0 +0 +42 +0 `)
	c.run("recrawl", "--every", "50ms", url+"/3").ends(exitOK, `generation 1, unchanged$`)
	c.run("partitions", "rollback", "--wait", "--json").ends(exitOK, `"arrived": true`, `"owners": 3`)
	c.run("explain", url+"/3").ends(exitOK, `^state +fetched$`, `^earlier +generation 0, `)
	c.run("get", url+"/1").ends(exitOK, `<title>page 1</title>`)
	if r := c.run("export", "--format", "urls", "--outcome", "ok", "--out", "-").ends(exitOK); strings.Count(r.out, "\n") != 40 {
		c.t.Errorf("exported\n%s", r.out)
	}

	// The command waits for the requested URL even if its slot moves meanwhile.
	off()
	var e view.URLReport
	if err := json.Unmarshal([]byte(c.run("explain", "--json", url+"/5").ends(exitOK).out), &e); err != nil {
		c.t.Fatal(err)
	}
	answered := make(chan *result, 1)
	go func() { answered <- c.run("recrawl", "--every", "50ms", "--max-time", "30s", url+"/5") }()
	to := (e.Partition + 1) % 3
	c.run("partitions", "move", fmt.Sprint(e.Slot), "--to", fmt.Sprint(to)).ends(exitOK, `1 slot moves of 8 `)
	c.run("explain", url+"/5").ends(exitOK, fmt.Sprintf(`its slot will move from partition %d to %d$`, e.Partition, to))
	c.run("partitions").ends(exitOK, fmt.Sprintf(`^ *%d +[23] +1 +0 +42 `, e.Partition))
	off = c.functions()
	(<-answered).ends(exitOK, `1 of 1 URL answered`, `generation 1`)
	c.run("explain", url+"/5").ends(exitOK, fmt.Sprintf(`, partition %d$`, to))
	c.run("fsck").ends(exitOK, `^clean: `)
}
