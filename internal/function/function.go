// Package function holds what the deployable functions share. A [Function] opens the platform that the
// environment names, keeps a service for the active crawl between invocations, and does one piece of
// work at a time. event.go and http.go decode the events of AWS Lambda; functions/google decodes those of Google Cloud.
//
// The environment:
//
//	ORBWEAVER_PLATFORM    URL of the deployment, such as aws://NAME?bucket=BUCKET&partitions=N
//	ORBWEAVER_ALLOW_NET   networks that may be requested although they are not public
//	ORBWEAVER_RETRY_WAIT  least wait before a retry, for tests; 5s
//	ORBWEAVER_DAILY_CALLS function calls of a day after which the coordinator pauses the crawl; no limit
//	ORBWEAVER_LEASE       how long the lease of a dead step lasts, for tests; 2m
//	ORBWEAVER_TIME_LIMIT  seconds of a request, where the cloud sets no deadline for it; 300
//	ORBWEAVER_METRICS     name of the deployment; makes log lines CloudWatch embedded metrics. Each costs money; none
//	ORBWEAVER_MEMORY_MB   MB; bounds the memory in use. Lambda sets AWS_LAMBDA_FUNCTION_MEMORY_SIZE instead
//
// A function does nothing between its invocations, and everything that an invocation started has
// ended when it returns. Each invocation writes one line to the log.
package function

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/internal/metrics"
	"github.com/orbweaver/orbweaver/internal/polite"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// Opener opens the platform of a deployment, whose URL ORBWEAVER_PLATFORM names.
type Opener func(ctx context.Context, location string, meter platform.Meter) (*platform.Platform, error)

// Function does the work of one deployed function. Its methods are not safe for concurrent use.
type Function struct {
	env      environment
	open     Opener
	platform *platform.Platform // nil until it has been opened
	ledger   ledger.Ledger
	log      *slog.Logger
	opener   *service.Service // reads the record of the active crawl
	service  *service.Service // of the active crawl; nil for none
	prepare  []func(*service.Service)
	cold     bool // before the first invocation

	// Of the invocation, for metrics: figures before and after its work. There are none if known is false.
	before, after metrics.Figures
	known         bool
}

type environment struct {
	location   string
	memoryMB   int64
	allowNet   []netip.Prefix
	retry      polite.Retry
	lease      time.Duration // 0 for the step's own default
	dailyCalls int64         // see crawl.TickConfig; 0 for no limit
	timeLimit  int64         // seconds
	metrics    string        // name of the deployment; "" for no metrics
	prices     ledger.Prices // with metrics
}

// Defaults of the environment.
const (
	defaultMemoryMB  = 512
	defaultTimeLimit = 300
)

// Bounds of the time limit in seconds: a step keeps three for its last commit, and no cloud waits longer.
const (
	leastTime   = 10
	longestTime = 1800
)

func readEnvironment(get func(string) string) (env environment, err error) {
	if env.location = get("ORBWEAVER_PLATFORM"); env.location == "" {
		return env, errors.New("ORBWEAVER_PLATFORM is not set: it names the deployment, as aws://NAME?bucket=BUCKET&partitions=N")
	}
	env.memoryMB, env.timeLimit, env.retry.Wait = defaultMemoryMB, defaultTimeLimit, 5*time.Second
	number := func(n *int64, least, most int64) func(string) bool {
		return func(s string) bool {
			*n, err = strconv.ParseInt(s, 10, 64)
			return err == nil && *n >= least && *n <= most
		}
	}
	duration := func(d *time.Duration, least time.Duration) func(string) bool {
		return func(s string) bool {
			*d, err = time.ParseDuration(s)
			return err == nil && *d >= least
		}
	}
	for _, v := range []struct {
		name, want string
		read       func(string) bool
	}{
		{"AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "a number of MB", number(&env.memoryMB, 1, math.MaxInt32)},
		{"ORBWEAVER_MEMORY_MB", "a number of MB", number(&env.memoryMB, 1, math.MaxInt32)},
		{"ORBWEAVER_TIME_LIMIT", "a number of seconds from 10 to 1800", number(&env.timeLimit, leastTime, longestTime)},
		{"ORBWEAVER_RETRY_WAIT", "a duration such as 5s", duration(&env.retry.Wait, 1)},
		{"ORBWEAVER_DAILY_CALLS", "a number of calls", number(&env.dailyCalls, 1, math.MaxInt64)},
		{"ORBWEAVER_LEASE", "a duration of 4s or more", duration(&env.lease, 4*time.Second)},
	} {
		if s := get(v.name); s != "" && !v.read(s) {
			return env, fmt.Errorf("%s is %q, not %s", v.name, s, v.want)
		}
	}
	if env.metrics = get("ORBWEAVER_METRICS"); env.metrics != "" {
		if env.prices, err = ledger.DefaultPrices(); err != nil {
			return env, err
		}
	}
	if get("ORBWEAVER_RETRY_WAIT") != "" {
		env.retry.Backoff = env.retry.Wait
	}
	for s := range strings.SplitSeq(get("ORBWEAVER_ALLOW_NET"), ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		p, err := netip.ParsePrefix(s)
		if err != nil {
			return env, fmt.Errorf("ORBWEAVER_ALLOW_NET: %w", err)
		}
		env.allowNet = append(env.allowNet, p)
	}
	return env, nil
}

// New returns a function that reads its configuration from the environment and logs JSON lines to the standard
// error. It ends the process if the environment is wrong. It opens no platform: if that fails, each invocation
// returns the error, which clouds show, and tries again. prepare is called with the service of each crawl
// before it works, to register jobs.
func New(open Opener, prepare ...func(*service.Service)) *Function {
	f, err := On(open, os.Getenv, os.Stderr, prepare...)
	if err != nil {
		log.Fatal(err)
	}
	// The garbage collector works harder before the cloud would kill the function.
	debug.SetMemoryLimit(f.env.memoryMB << 20 * 8 / 10)
	return f
}

// On returns a function with another environment, for tests.
func On(open Opener, getenv func(string) string, out io.Writer, prepare ...func(*service.Service)) (*Function, error) {
	env, err := readEnvironment(getenv)
	if err != nil {
		return nil, err
	}
	return &Function{env: env, open: open, log: slog.New(slog.NewJSONHandler(out, nil)), prepare: prepare, cold: true}, nil
}

// Bounds of a step in the cloud.
const (
	// A step sleeps only while that is cheaper than ending and another wake: the objects, records and messages of a
	// step cost as much as two seconds of half a gigabyte.
	sleepMax = 2 * time.Second
	linger   = 200 * time.Millisecond
	// Commits and mail cost money; so does the work that is lost if a function is killed.
	commitEvery = time.Minute
	mailEvery   = 5 * time.Minute
	hostsEvery  = 15 * time.Minute

	urlsPerMB       = 500 // of the frontier, at some 150 bytes: most of the memory is for pages
	mbPerConnection = 8
	mbPerLarge      = 128 // per body above 1 MiB: each may have 16 MiB, and as much again as a record
	maxConnections  = 256
	minConnections  = 8
)

// config returns the configuration of a service in this function.
func (f *Function) config() service.Config {
	return service.Config{
		Step: crawl.StepConfig{
			SendsWakes: true, SleepMax: sleepMax, Linger: linger, CommitEvery: commitEvery, MailEvery: mailEvery,
			Lease: f.env.lease, Margin: f.env.lease / 4, Retry: f.env.retry, Software: "orbweaver/" + service.Version,
		},
		Tick:        crawl.TickConfig{HostsEvery: hostsEvery, WakeAgain: f.env.lease / 2, DailyCalls: f.env.dailyCalls},
		Fetch:       fetch.Config{AllowNet: f.env.allowNet, MaxLarge: max(1, f.MemoryMB()/mbPerLarge)},
		Bucket:      f.platform.BucketName,
		Connections: min(maxConnections, max(minConnections, f.MemoryMB()/mbPerConnection)),
		MaxResident: f.MemoryMB() * urlsPerMB,
		RemindJobs:  f.env.lease, // 0: their own default
		MemoryMB:    f.MemoryMB(),
		Ledger:      &f.ledger,
		Log:         f.log,
	}
}

// Platform returns the platform, which it opens once.
func (f *Function) Platform(ctx context.Context) (*platform.Platform, error) {
	if f.platform == nil {
		p, err := f.open(ctx, f.env.location, &f.ledger)
		if err != nil {
			return nil, fmt.Errorf("open %s: %w", f.env.location, err)
		}
		f.platform = p
	}
	return f.platform, nil
}

// MemoryMB returns the memory of the function.
func (f *Function) MemoryMB() int { return int(f.env.memoryMB) }

// TimeLimit returns how long a request may take.
func (f *Function) TimeLimit() time.Duration { return time.Duration(f.env.timeLimit) * time.Second }

// prepared opens the platform, and a service for the active crawl. If no crawl has begun, the service is nil.
func (f *Function) prepared(ctx context.Context) error {
	if _, err := f.Platform(ctx); err != nil {
		return err
	}
	var err error
	if f.opener == nil {
		if f.opener, err = service.New(f.platform, service.Config{Ledger: &f.ledger}); err != nil {
			return err
		}
	}
	c, err := f.opener.Open()
	none := errors.Is(err, crawl.ErrNoCrawl)
	if err != nil && !none {
		return err
	}
	if f.service != nil {
		if !none && f.service.Fits(c) {
			f.service.Use(c) // it may have more seeds
			return nil
		}
		// Another crawl, or other settings: the connections and the state of the old one are useless.
		if err := f.service.Close(ctx); err != nil {
			f.log.Warn("close the service of an older crawl", "error", err)
		}
		f.service = nil
	}
	if none {
		return nil
	}
	s, err := service.On(f.platform, f.config(), c)
	if err != nil {
		return err
	}
	f.service = s
	for _, prepare := range f.prepare {
		prepare(f.service)
	}
	return nil
}

// reserve returns how much of the time left a step keeps for its last commit.
func reserve(left time.Duration) time.Duration {
	return min(30*time.Second, max(3*time.Second, left/6))
}

// atMost returns how long a step may work so that it ends before ctx; 0 for no limit.
func atMost(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	left := time.Until(end)
	return left - reserve(left)
}

// turn calls do for the partition that a wake or a job names. It drops a message that cannot be decoded or belongs
// to another crawl.
func (f *Function) turn(ctx context.Context, what string, msg []byte, do func(p partition.ID, line *[]any) error) error {
	return f.invoke(ctx, what, func(line *[]any) error {
		id, p, err := blobschema.DecodeJob(msg) // wakes have the same encoding
		if err != nil {
			f.log.Error("a message that cannot be read is dropped", "error", err)
			return nil
		}
		*line = append(*line, "crawl", id, "partition", p)
		if f.service == nil || f.service.Crawl().ID != id {
			*line = append(*line, "outcome", "not the active crawl")
			return nil
		}
		return do(p, line)
	})
}

// Fetch runs a step of the partition that a wake names. The step commits and ends before ctx does.
func (f *Function) Fetch(ctx context.Context, wake []byte) error {
	return f.turn(ctx, "step", wake, func(p partition.ID, line *[]any) error {
		did, err := f.service.Step(p, atMost(ctx))
		f.service.CloseIdle() // servers need not wait for a function that may never run again
		if err != nil {
			return err
		}
		if !did.Worked {
			*line = append(*line, "outcome", "another step holds the lease")
			return nil
		}
		*line = append(*line, "outcome", "committed", "pages", did.Pages, "pending", did.Totals.Pending)
		f.before.Totals, f.after.Totals, f.after.Rest, f.known = did.Before, did.Totals, did.Rest, true
		return nil
	})
}

// Job returns a handler of messages that request jobs beside the crawl. It runs one step for the partition that the
// message names. step returns attributes of the log line.
func (f *Function) Job(kind string, step func(p partition.ID, atMost time.Duration) ([]any, error)) func(context.Context, []byte) error {
	return func(ctx context.Context, job []byte) error {
		return f.turn(ctx, kind, job, func(p partition.ID, line *[]any) error {
			said, err := step(p, atMost(ctx))
			if err == nil {
				*line = append(*line, said...)
			}
			return err
		})
	}
}

// Coordinate runs the coordinator once.
func (f *Function) Coordinate(ctx context.Context) error {
	return f.invoke(ctx, "tick", func(line *[]any) error {
		if f.service == nil {
			*line = append(*line, "outcome", "no crawl has begun")
			return nil
		}
		rep, err := f.service.Tick()
		if err != nil {
			return err
		}
		*line = append(*line, "crawl", rep.Crawl.ID, "outcome", outcome(&rep))
		if rep.Desired.Why != "" {
			*line = append(*line, "why", rep.Desired.Why)
		}
		f.after, f.known = metrics.FromReport(&rep), !rep.Idle
		if !rep.Idle {
			*line = append(*line, "woken", len(rep.Woken), "leased", rep.Leased, "pages", rep.Totals.Pages, "pending", rep.Totals.Pending+rep.Totals.Unexamined)
		}
		return nil
	})
}

func outcome(rep *crawl.Report) string {
	switch {
	case rep.Desired.Stop:
		return "stopped"
	case rep.Desired.Pause:
		return "paused"
	case rep.Finished:
		return "finished"
	case rep.Limited:
		return "limit"
	}
	return "running"
}

// Intake turns messages of the intake queue into mail. It returns the messages that failed, which stay in the queue.
// An error means that all failed.
func (f *Function) Intake(ctx context.Context, msgs []actor.Message) (failed []actor.Message, err error) {
	err = f.invoke(ctx, "intake", func(line *[]any) error {
		*line = append(*line, "messages", len(msgs))
		if f.service == nil {
			if !slices.ContainsFunc(msgs, asks) {
				return nil // test notifications of the cloud
			}
			return errors.New("no crawl has begun: the messages wait for one in their queue")
		}
		failed, err = f.service.Take(msgs)
		if err == nil || len(msgs) == 1 {
			return err
		}
		*line = append(*line, "failed", len(failed), "error", err)
		return nil
	})
	return failed, err
}

// asks reports whether a message is a request.
func asks(m actor.Message) bool {
	uploads, ok := blobschema.DecodeNotification(m.Body)
	return !ok || len(uploads) > 0
}

// invoke calls work on the open platform, and writes its log line.
func (f *Function) invoke(ctx context.Context, kind string, work func(line *[]any) error) error {
	return f.Log(kind, func(line *[]any) error {
		if err := f.prepared(ctx); err != nil {
			return err
		}
		return work(line)
	})
}

// Log calls work and writes its log line, to which work may append attributes.
func (f *Function) Log(kind string, work func(line *[]any) error) error {
	began, before := time.Now(), f.ledger.Counts()
	line := []any{"cold", f.cold}
	f.cold = false
	f.before, f.after, f.known = metrics.Figures{}, metrics.Figures{}, false
	err := work(&line)
	calls := f.ledger.Counts().Minus(before)
	line = append(line, "took_ms", time.Since(began).Milliseconds(), "calls", calls)
	if f.env.metrics != "" {
		f.after.Dollars = f.env.prices.Dollars(calls)
		figures := kind
		if !f.known {
			figures = "" // only metrics of every line
		}
		line = append(line, metrics.EMF(f.env.metrics, figures, time.Now(), &f.before, &f.after)...)
	}
	if err != nil {
		f.log.Error(kind, append(line, "error", err)...)
		return err
	}
	f.log.Info(kind, line...)
	return nil
}
