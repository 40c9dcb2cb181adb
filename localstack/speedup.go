package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// The web of the speed-up is bound by latency: what one worker fetches follows from how
// many connections it may have, and not from the processor, which all workers, the servers
// and the emulators share here.
const (
	speedPartitions  = 8
	speedSteps       = 2 // of each worker, so that four of them work on all partitions
	speedConnections = 16
	speedLatency     = 500 * time.Millisecond
	speedStepTime    = 5 * time.Second
)

func (w *world) speedWeb() simweb.Config {
	pages := 10
	if w.fast {
		pages = 4
	}
	return simweb.Config{
		Seed: 4, Hosts: 256, Pages: simweb.Pages{Min: pages}, LinksPerPage: 10, CrossHost: 0.2,
		Connection: simweb.Connection{LatencyMin: speedLatency, LatencyMax: speedLatency},
	}
}

// speed is what so many workers did.
type speed struct {
	workers, pages int
	seconds        float64 // from the first request to the last
	rate           float64 // pages a second in between: without the first and the last tenth
}

// speedup crawls the same web by 1, 2 and 4 workers, and compares their rates.
func speedup(ctx context.Context, w *world) (map[string]any, error) {
	var all []speed
	for _, n := range []int{1, 2, 4} {
		s, err := w.speed(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d workers: %w", n, err)
		}
		all = append(all, s)
	}
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	rows := [][]string{{"workers", "pages", "seconds", "pages/s", "speed-up", "of ideal", "of the whole"}}
	for _, s := range all {
		up := s.rate / all[0].rate
		rows = append(rows, []string{
			strconv.Itoa(s.workers), strconv.Itoa(s.pages), strconv.FormatFloat(s.seconds, 'f', 1, 64), strconv.FormatFloat(s.rate, 'f', 1, 64),
			strconv.FormatFloat(up, 'f', 2, 64), strconv.FormatFloat(up/float64(s.workers), 'f', 2, 64),
			strconv.FormatFloat(all[0].seconds/s.seconds, 'f', 2, 64), // beginning and end too
		})
	}
	for _, r := range rows {
		for _, cell := range r {
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	if err := t.Flush(); err != nil {
		return nil, err
	}
	last := all[len(all)-1]
	figures := map[string]any{
		"processors": runtime.NumCPU(), "connections_each": speedConnections, "latency_ms": speedLatency.Milliseconds(),
		"speedup_" + strconv.Itoa(last.workers): last.rate / all[0].rate,
	}
	if w.csv == "" {
		return figures, nil
	}
	f, err := os.Create(w.csv)
	if err != nil {
		return figures, err
	}
	return figures, errors.Join(csv.NewWriter(f).WriteAll(rows), f.Close())
}

// speed crawls the web by n workers, all of which are there before it begins.
func (w *world) speed(ctx context.Context, n int) (s speed, err error) {
	srv, err := w.serve(ctx, w.speedWeb())
	if err != nil {
		return s, err
	}
	back, err := w.bare(ctx, fmt.Sprintf("speed-%d", n))
	if err != nil {
		return s, err
	}
	defer back()
	limit, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var list []*worker
	for range n {
		k, err := w.worker(limit, "--idle-exit", "--steps", strconv.Itoa(speedSteps), "--connections", strconv.Itoa(speedConnections),
			"--step-time", speedStepTime.String())
		if err != nil {
			return s, err
		}
		list = append(list, k)
	}
	args := []string{"crawl", "--detach", "--scope", "any", "--sitemaps=false", "--delay", "0s", "--partitions", strconv.Itoa(speedPartitions)}
	if out, err := w.orbweaver(limit, append(args, srv.Web().Seeds()...)...); err != nil {
		return s, fmt.Errorf("%w\n%s", err, tail(out))
	}
	for _, k := range list {
		if err := k.ends(limit); err != nil {
			return s, err
		}
	}
	if s.pages, err = w.compare(ctx, srv.Web()); err != nil {
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
