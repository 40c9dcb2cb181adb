package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

// TestCloudRank computes ranks by functions in a cloud.
func TestCloudRank(t *testing.T) {
	c := memoryCloud(t)
	c.run("rank").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("rank", "--show").ends(exitUsage, `there is no crawl in aws://test yet`)
	c.run("crawl", "--quality", "opic", c.site.url+"/0").ends(exitUsage, `--quality opic has no effect with --policy breadth-first`)
	c.run("crawl", "--delay", "0s", "--detach", c.site.url+"/0").ends(exitOK)
	c.run("rank", "--show").ends(exitNothing, `no ranks were computed in aws://test yet`)
	c.run("rank").ends(exitUsage, `nothing is crawled in aws://test yet`)
	off := c.functions()
	c.run("crawl", "--every", "50ms").ends(exitOK, `^Finished`)
	off()
	c.run("rank", "--wait=false").ends(exitOK, `^job 1 is under way; see 'orbweaver rank --platform .* --show'$`)
	c.run("rank", "--show").ends(exitNothing, `the first ranks are being computed`)
	c.run("rank", "--damping", "0.5").ends(exitInUse, `already, with other parameters`, `--force`)
	off = c.rankFunction()
	c.run("rank").ends(exitOK, `^ranks +job 1 of crawl .* in aws://test, `, `^pages +42 known, 41 answered; 42 links; 21 without$`)
	r := c.run("rank", "--damping", "0.5", "--json", "--top", "3").ends(exitOK)
	off()
	var got rankReport
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || got.Job != 2 || got.Cloud != c.url || len(got.Hosts) != 1 || len(got.Pages) != 3 || got.Totals.Pages != 42 {
		t.Errorf("%v, %+v", err, got)
	}
	c.run("fsck").ends(exitOK, `^clean: `)
}

// rankFunction runs rank steps as the function does, until off is called.
func (c *cloud) rankFunction() (off func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	p := c.platform()
	step := func() error {
		v, err := view.New(ctx, engine.Store{Platform: p})
		if err != nil {
			return err
		}
		e, err := newFunction(ctx, p, v)
		if err != nil {
			return err
		}
		if _, err := e.Open(); err != nil {
			return err
		}
		q, err := p.Queue(naming.RankQueue)
		if err != nil {
			return err
		}
		got, err := q.Receive(ctx, 1, 20*time.Millisecond)
		if err != nil || len(got) == 0 {
			return err
		}
		_, part, err := blobschema.DecodeJob(got[0].Body)
		if err == nil {
			_, err = e.RankStep(ctx, part, time.Second)
		}
		if err != nil {
			return err
		}
		return q.Acknowledge(ctx, []platform.Receipt{got[0].Receipt})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := step(); err != nil && ctx.Err() == nil {
				c.t.Error(err)
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// TestRankOut checks the note about rows that do not fit into a table.
func TestRankOut(t *testing.T) {
	t.Parallel()
	srv, err := simweb.Start(t.Context(), simweb.Config{Seed: 5, Hosts: 1, Pages: simweb.Pages{Min: 150, Max: 150}, PageBytes: 1 << 10, LinksPerPage: 12})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	dir := t.TempDir()
	run := func(args ...string) (stdout, stderr string) {
		c := orbweaver(t, args...)
		var out, errOut strings.Builder
		c.Dir, c.Stdout, c.Stderr = dir, &out, &errOut
		if err := c.Run(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, &errOut)
		}
		return out.String(), errOut.String()
	}
	run(append([]string{"crawl", "--quiet", "--partitions", "1", "--delay", "0s", "--allow-net", "127.0.0.0/8"}, srv.Web().Seeds()...)...)
	if _, said := run("rank", "--level", "pages", "--out", "pages"); !strings.HasSuffix(said, "orbweaver: the table has the best 100 of 150 pages only: a rank job keeps no more\n") {
		t.Error(said)
	}
	table, err := os.ReadFile(filepath.Join(dir, "pages"))
	if err != nil || strings.Count(string(table), "\n") != 100 {
		t.Errorf("%v\n%s", err, table)
	}
	for _, args := range [][]string{{"--level", "hosts", "--out", "-"}, {"--level", "pages", "--out", "-", "--top", "100"}} {
		if out, said := run(append([]string{"rank", "--show"}, args...)...); said != "" || out == "" {
			t.Errorf("%s: %s\n%s", args, said, out)
		}
	}
	if out, _ := run("rank", "--show", "--level", "pages", "--out", "-", "--top", "7"); strings.Count(out, "\n") != 7 || !strings.HasPrefix(string(table), out) {
		t.Errorf("--top 7:\n%s", out)
	}
	if _, said := run("rank", "--show", "--top", "101"); !strings.Contains(said, "the list has the best 100 of 150 pages only") {
		t.Error(said)
	}
}

func TestParseWeight(t *testing.T) {
	for item, want := range map[string]ranks.Weight{
		"Example.org":              {Host: "example.org", Weight: 1},
		"example.org=3":            {Host: "example.org", Weight: 3},
		"https://example.org/?a=3": {URL: "https://example.org/?a=3", Weight: 1},
	} {
		if got, err := parseWeight(item); err != nil || got != want {
			t.Errorf("%s is %+v, %v, want %+v", item, got, err, want)
		}
	}
	for _, item := range []string{"example.org=x", "no host", "example.org="} {
		if _, err := parseWeight(item); err == nil {
			t.Errorf("%s was accepted", item)
		}
	}
}
