package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/simweb"
)

// worker is a process of 'orbweaver work'.
type worker struct {
	cmd  *exec.Cmd
	out  string // file of its standard output and error
	done chan error
}

// workerEvent is a line of a worker's standard output.
type workerEvent struct {
	Event  string  `json:"event"`
	Pages  int64   `json:"pages"`
	AtWork int     `json:"partitions_at_work"`
	Rate   float64 `json:"pages_per_second"`
}

// worker starts a worker of the deployment that may fetch from this machine. It is killed when ctx ends.
func (w *world) worker(ctx context.Context, args ...string) (*worker, error) {
	out, err := os.CreateTemp(w.dir, "worker-*.log")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	k := &worker{out: out.Name(), done: make(chan error, 1)}
	k.cmd = exec.CommandContext(ctx, filepath.Join(w.root, "bin", "orbweaver"), append([]string{
		"work", "--json", "--allow-net", "127.0.0.0/8", "--lease", workerLease.String(), "--tick", "1s",
	}, args...)...)
	k.cmd.Env = append(os.Environ(), "ORBWEAVER_PLATFORM="+w.deployed.platform)
	k.cmd.Stdout, k.cmd.Stderr = out, out
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { k.done <- k.cmd.Wait() }()
	return k, nil
}

// output returns the output of a worker so far.
func (k *worker) output() []byte {
	text, err := os.ReadFile(k.out)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// told returns the last event of a worker.
func (k *worker) told() (e workerEvent) {
	for line := range bytes.Lines(k.output()) {
		_ = json.Unmarshal(line, &e) // a line may be incomplete, or an error
	}
	return e
}

// ends waits until the worker ends without an error.
func (k *worker) ends(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-k.done:
		if err != nil {
			return fmt.Errorf("a worker: %w\n%s", err, tail(string(k.output())))
		}
		return nil
	}
}

const (
	workerLease = 5 * time.Second
	workerDelay = 200 * time.Millisecond
)

// bare creates a deployment without functions, which the steps use until back is called.
func (w *world) bare(ctx context.Context, name string) (back func(), err error) {
	with := w.deployed
	back = func() { w.deployed = with }
	w.deployed = deployment{name: fmt.Sprintf("e2e-%x-%s", time.Now().Unix(), name)}
	if _, err := w.create(ctx); err != nil {
		back()
		return nil, err
	}
	return back, nil
}

// workers crawls a web with worker processes that come and go: one is killed, one is told to stop, one joins
// late and ends with the crawl. Meanwhile the crawl grows from four partitions to six, and shrinks to three. No
// page may be lost or repeated, and no host requested too soon.
func workers(ctx context.Context, w *world) (map[string]any, error) {
	srv, err := w.serve(ctx, simweb.Config{Seed: 21, Hosts: 24, Pages: simweb.Pages{Min: 20}, CrossHost: 0.3})
	if err != nil {
		return nil, err
	}
	back, err := w.bare(ctx, "workers")
	if err != nil {
		return nil, err
	}
	defer back()
	begin := time.Now()
	list, err := w.twoWorkers(ctx, srv.Web().Seeds())
	if err != nil {
		return nil, err
	}
	if _, err := w.orbweaver(ctx, "partitions", "scale", "6"); err != nil {
		return nil, err
	}
	if err := list[0].cmd.Process.Kill(); err != nil {
		return nil, err
	}
	if err := <-list[0].done; err == nil {
		return nil, errors.New("the worker had ended before it was killed")
	}
	killed := time.Now()
	at := count(srv)
	late, err := w.worker(ctx, "--idle-exit")
	if err != nil {
		return nil, err
	}
	list = append(list, late)
	if err := until(ctx, "the late worker has something to do", func() bool { return late.told().AtWork > 0 }); err != nil {
		return nil, err
	}
	if err := list[1].cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return nil, err
	}
	asked := time.Now()
	if err := list[1].ends(ctx); err != nil {
		return nil, err
	}
	left := time.Since(asked)
	if _, err := w.orbweaver(ctx, "partitions", "scale", "3", "--wait"); err != nil {
		return nil, err
	}
	scaled := time.Since(begin)
	if err := late.ends(ctx); err != nil {
		return nil, err
	}
	took := time.Since(begin)
	n, err := w.compare(ctx, srv.Web())
	if err != nil {
		return nil, err
	}
	figures, err := check(ctx, w)
	if err != nil {
		return nil, err
	}
	if err := paced(srv); err != nil {
		return nil, err
	}
	maps.Copy(figures, map[string]any{
		"records": n, "requests": count(srv), "seconds": took.Seconds(), "requests_before_the_kill": at, "seconds_after_the_kill": time.Since(killed).Seconds(),
		"asked_to_left_s": left.Seconds(), "scaled_at_s": scaled.Seconds(), "pages": []int64{list[0].told().Pages, list[1].told().Pages, late.told().Pages},
	})
	if list[1].told().Pages == 0 || late.told().Pages == 0 {
		return figures, errors.New("a worker has done nothing")
	}
	return figures, nil
}

// twoWorkers starts two workers and then a crawl, and waits until both have pages.
func (w *world) twoWorkers(ctx context.Context, seeds []string) (list []*worker, err error) {
	for range 2 {
		k, err := w.worker(ctx, "--steps", "2")
		if err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	if _, err := w.crawl(ctx, seeds, "--detach", "--delay", workerDelay.String()); err != nil {
		return nil, err
	}
	return list, until(ctx, "both workers have pages", func() bool { return list[0].told().Pages > 0 && list[1].told().Pages > 0 })
}

// until waits up to a minute for a condition.
func until(ctx context.Context, what string, holds func() bool) error {
	for begin := time.Now(); !holds(); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("after a minute still not: %s", what)
		}
	}
	return nil
}

// count returns the number of requests that a web has answered.
func count(srv *simweb.Server) (n int) {
	for _, c := range srv.Requests() {
		n += c
	}
	return n
}

// paced checks roughly when requests reached the hosts: on a busy machine a request may take a while to arrive,
// and fsck checks when requests were sent. A page may be requested immediately after a robots.txt.
func paced(srv *simweb.Server) error {
	robots := 0
	for url, n := range srv.Requests() {
		if strings.HasSuffix(url, "/robots.txt") {
			robots += n
		}
	}
	soon := 0
	var shortest time.Duration
	for h := range srv.Web().Hosts() {
		starts := srv.Starts(h)
		for i := 1; i < len(starts); i++ {
			if gap := starts[i].Sub(starts[i-1]); gap < workerDelay/2 {
				soon, shortest = soon+1, gap
			}
		}
	}
	if soon > robots {
		return fmt.Errorf("hosts were asked too soon %d times, and for %d robots.txt; once after %s", soon, robots, shortest)
	}
	return nil
}
