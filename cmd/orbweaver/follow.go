package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/view"
)

// refresh is how often the display is updated.
const refresh = 200 * time.Millisecond

// left is the end of a run whose crawl continues in a deployment.
const left service.End = "left"

// watch crawls or follows until the end of the crawl, of the request or of ctx, and reports the progress. It
// reads the state at the end.
func (r *run) watch(ctx context.Context) (service.End, error) {
	switch {
	case r.here():
		return r.crawl(ctx)
	case r.detach:
		return left, nil
	}
	r.cpu, r.meter.memory = 0, cloudRateMemory
	if r.request != nil {
		return r.await(ctx)
	}
	return r.follow(ctx)
}

// crawl runs the engine.
func (r *run) crawl(ctx context.Context) (end service.End, err error) {
	work := func() (err error) {
		end, err = r.engine.Run(ctx)
		return err
	}
	err = watch(r.reporter, work, func(now time.Time) (shown, *pulse) {
		snap := r.engine.Snapshot()
		f := r.meter.read(now, &snap)
		f.Title = "orbweaver " + r.id()
		if rep := r.engine.Report(); rep != nil {
			f.Paused = rep.Desired.Pause
		}
		return &f, &f.pulse
	})
	r.over.Store(true)
	if err != nil {
		return end, err
	}
	r.now, err = r.view.Status(context.WithoutCancel(ctx)) // after a signal too
	r.now.Calls, r.cpu = r.engine.Snapshot().Calls, ledger.Processor()-r.cpu
	return end, err
}

// watch reports the progress of work, which figures returns, until it returns.
func watch(rep *reporter, work func() error, figures func(now time.Time) (shown, *pulse)) error {
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(refresh)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			rep.urls(&pulse{})
			return err
		case now := <-tick.C:
			f, p := figures(now)
			rep.urls(p)
			rep.progress(f)
		}
	}
}

// maxPollsFailed is how many polls in a row may fail, because networks do.
const maxPollsFailed = 5

// poll calls read periodically until it returns true, fails too often, or ctx ends. It returns the error of
// a poll that returns true, and retries after other errors.
func poll(ctx context.Context, w io.Writer, every time.Duration, look func() (done bool, err error)) error {
	for failed := 0; ; {
		done, err := look()
		switch {
		case done:
			return err
		case ctx.Err() != nil:
		case err != nil && failed < maxPollsFailed:
			failed++
			warn(w, "cannot read the state of the crawl: %v; trying again", err)
		case err != nil:
			return err
		default:
			failed = 0
		}
		if !wait(ctx, every) {
			return nil
		}
	}
}

// look polls a deployment until done returns an end. It returns "" if ctx ends first, while the crawl continues.
func (r *run) look(ctx context.Context, done func() (service.End, error)) (end service.End, err error) {
	err = poll(ctx, r.reporter, r.every, func() (bool, error) {
		now, err := r.view.Status(ctx)
		if err != nil {
			return false, err
		}
		r.now = now
		if r.exporter != nil {
			r.exporter.Read(func() metrics.Figures { return figuresOfStatus(&now, r.prices) })
		}
		end, err = done()
		return end != "", err
	})
	return end, err
}

// endOf is the end of a crawl in a deployment, by its state.
var endOf = map[view.State]service.End{view.Finished: service.Finished, view.Limited: service.Limited, view.Stopped: service.Halted}

// follow polls until the crawl has ended: Finished, Limited or Halted. Two polls must see the same end,
// because heads are not read at one moment.
func (r *run) follow(ctx context.Context) (service.End, error) {
	seen := uint64(0) // commits at the last poll, if the crawl seemed to have ended
	end, err := r.look(ctx, func() (service.End, error) {
		f := r.figures()
		r.reporter.progress(&f)
		commits := uint64(1)
		for i := range r.now.Heads {
			commits += r.now.Heads[i].Seq
		}
		end := endOf[r.now.State]
		if end == "" {
			seen = 0
		} else if seen != commits {
			seen, end = commits, ""
		}
		return end, nil
	})
	return cmp.Or(end, left), err
}

// figures are the progress of a deployment, as read last.
func (r *run) figures() figures {
	now, s := time.Now(), &r.now
	f := r.meter.read(now, &service.Snapshot{Crawl: s.Crawl, Progress: crawl.Progress{Totals: s.Totals}})
	f.Title, f.AtWork, f.Paused = "orbweaver "+r.id(), &s.Leased, s.Desired.Pause
	if left := s.Due.Sub(now); s.Leased == 0 && left > quiet {
		f.Waiting = "waiting " + span(left.Seconds()) + ": no host may be requested sooner"
	}
	return f
}

// following returns a context that ends with the first signal to stop, which does not end the crawl.
func following(parent context.Context) (ctx context.Context, release func()) {
	return signal.NotifyContext(parent, syscall.SIGINT, syscall.SIGTERM)
}

// interruptible returns a context that ends with the first signal to stop; the second signal ends
// the process at once. release takes the signals back.
func interruptible(parent context.Context, w io.Writer) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup wants it ignored
		signals = append(signals, syscall.SIGHUP)
	}
	got, ended := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(got, signals...)
	go func() {
		defer close(ended)
		if _, open := <-got; !open {
			return
		}
		fmt.Fprintln(w, "stopping; interrupt again to quit at once")
		cancel()
		if _, open := <-got; open {
			os.Exit(int(exitStopped)) // uncommitted pages will be fetched again
		}
	}()
	return ctx, func() {
		signal.Stop(got)
		close(got) // no signal is sent any more
		<-ended
		cancel()
	}
}
