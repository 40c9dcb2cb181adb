// Speedup measures how much faster several workers crawl than one: it crawls the same generated web by 1, 2, 4, 8 and 16
// processes of 'orbweaver work' that share a PostgreSQL server and a folder, and compares their rates.
//
//	make speedup                          # takes ten minutes; needs PostgreSQL
//	make speedup ARGS='-quick'
//	make speedup ARGS='-csv FILE'         # also writes the table
//
// The web is bound by latency: the rate of a worker follows from its number of connections and not from the processor,
// which all workers and servers share. The stored pages are compared with the ground truth.
package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/servers"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
)

const (
	partitions  = 8 // or enough for the steps of all workers
	steps       = 2 // of each worker
	connections = 16
	latency     = 500 * time.Millisecond
	atMost      = 10 * time.Minute // for one crawl
)

func main() {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "speedup:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	f := flag.NewFlagSet("speedup", flag.ExitOnError)
	quick := f.Bool("quick", false, "crawl a small web: to see that it works, not to measure")
	file := f.String("csv", "", "write the table to this `file`")
	_ = f.Parse(args)
	db, err := servers.NewPostgres(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	cfg := simweb.Config{
		Seed: 4, Hosts: 512, Pages: simweb.Pages{Min: 10}, LinksPerPage: 10, CrossHost: 0.2,
		Connection: simweb.Connection{LatencyMin: latency, LatencyMax: latency},
	}
	if *quick {
		cfg.Pages.Min = 4
	}
	var all []speed
	for _, n := range []int{1, 2, 4, 8, 16} {
		s, err := measure(ctx, db, cfg, n)
		if err != nil {
			return fmt.Errorf("%d workers: %w", n, err)
		}
		fmt.Fprintf(out, "%d workers: %d pages in %.1f s\n", n, s.pages, s.seconds)
		all = append(all, s)
	}
	return report(out, *file, all)
}

// speed is the result of a number of workers.
type speed struct {
	workers, pages int
	seconds        float64 // from the first request to the last
	rate           float64 // pages per second without the first and the last tenth of the requests
}

// report prints the table and writes it to a file, if one is named.
func report(out io.Writer, file string, all []speed) error {
	rows := [][]string{{"workers", "pages", "seconds", "pages/s", "speed-up", "of ideal", "of the whole"}}
	for _, s := range all {
		up := s.rate / all[0].rate
		rows = append(rows, []string{
			strconv.Itoa(s.workers), strconv.Itoa(s.pages), strconv.FormatFloat(s.seconds, 'f', 1, 64), strconv.FormatFloat(s.rate, 'f', 1, 64),
			strconv.FormatFloat(up, 'f', 2, 64), strconv.FormatFloat(up/float64(s.workers), 'f', 2, 64),
			strconv.FormatFloat(all[0].seconds/s.seconds, 'f', 2, 64), // includes the beginning and the end
		})
	}
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, r := range rows {
		fmt.Fprintln(t, strings.Join(r, "\t")+"\t")
	}
	if err := t.Flush(); err != nil || file == "" {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close())
}

// measure crawls a web by n workers, all of which run before the crawl begins.
func measure(ctx context.Context, db *servers.Postgres, cfg simweb.Config, n int) (s speed, err error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	srv, err := simweb.Start(ctx, cfg)
	if err != nil {
		return s, err
	}
	defer srv.Close()
	blobs, err := os.MkdirTemp("", "orbweaver-speedup-")
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(blobs)) }()
	location := fmt.Sprintf("%s?name=speedup_%d&partitions=%d&blobs=file://%s", db.URL(), n, max(partitions, steps*n), filepath.ToSlash(blobs))
	var workers errgroup.Group
	for range n {
		workers.Go(func() error {
			return orbweaver(ctx, location, "work", "--json", "--allow-net", "127.0.0.0/8", "--lease", "5s", "--tick", "1s", "--idle-exit",
				"--steps", strconv.Itoa(steps), "--connections", strconv.Itoa(connections), "--step-time", "5s")
		})
	}
	err = orbweaver(ctx, location, append([]string{
		"crawl", "--detach", "--scope", "any", "--sitemaps=false", "--delay", "0s",
	}, srv.Web().Seeds()...)...)
	if err != nil {
		cancel()
	}
	if err := errors.Join(err, workers.Wait()); err != nil {
		return s, err
	}
	if s.pages, err = compare(ctx, location, srv.Web()); err != nil {
		return s, err
	}
	s.workers = n
	var at []time.Time
	for h := range srv.Web().Hosts() {
		at = append(at, srv.Starts(h)...)
	}
	slices.SortFunc(at, time.Time.Compare)
	from, to := len(at)/10, len(at)*9/10
	s.seconds = at[len(at)-1].Sub(at[0]).Seconds()
	s.rate = float64(to-from) / at[to].Sub(at[from]).Seconds()
	return s, nil
}

// orbweaver runs a command on a platform.
func orbweaver(ctx context.Context, location string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "orbweaver"), args...)
	cmd.Env = append(os.Environ(), "ORBWEAVER_PLATFORM="+location)
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("orbweaver %s: %w\n%s", args[0], err, said[max(0, len(said)-2000):])
	}
	return nil
}

// compare compares the stored pages with the ground truth of a web, and counts them.
func compare(ctx context.Context, location string, web *simweb.Web) (pages int, err error) {
	p, err := drivers.Open(ctx, location, nil)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	v, err := view.New(ctx, engine.Store{Platform: p})
	if err != nil {
		return 0, err
	}
	got := map[string]simweb.Got{}
	for pg, err := range v.Pages(ctx, view.EveryRecord) {
		if err != nil {
			return 0, err
		}
		if pg.Robots {
			continue
		}
		if _, twice := got[pg.URL]; twice {
			return 0, fmt.Errorf("%s is stored twice", pg.URL)
		}
		got[pg.URL] = simweb.GotOf(pg)
	}
	if d := simweb.Diff(web.Truth(simweb.Scope{Attempts: 3}), got); d != "" {
		return len(got), errors.New(d)
	}
	return len(got), nil
}
