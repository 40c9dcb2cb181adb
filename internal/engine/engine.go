// Package engine carries out the effects of actors on a platform and on sockets. It decides nothing about crawling.
// Package service decides which actors run when. The other executor of actors is package virtual.
//
// [Engine.Run] runs one actor from its start to its end. One goroutine delivers replies to the actor, and others, which
// end with it, carry out its effects (runner.go). Actors of one process share the HTTP client, the limit of
// concurrent requests and the open queues. After an error that no later write can survive, the engine drops all
// actors, as a crash would ([Engine.Lost]).
package engine

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/ledger"
	"github.com/orbweaver/orbweaver/platform"
)

// DefaultConnections is the default limit of concurrent requests of a process. 500 slow hosts, each with a
// request under way, do not reach it. A request that waits for its answer has a buffer of 8 KB.
const DefaultConnections = 512

// Config configures an engine.
type Config struct {
	Fetch       fetch.Config
	Connections int // limit of concurrent requests of the process; default DefaultConnections
	Ledger      *ledger.Ledger
	Log         *slog.Logger
	// Changed, if it is not nil, is called after each write of a record, with its key, and after each send of
	// messages, with "". It must not block.
	Changed func(key string)
}

// Engine carries out the effects of any number of actors at once. Its exported fields do not change.
type Engine struct {
	Platform *platform.Platform
	Ledger   *ledger.Ledger
	Log      *slog.Logger
	Process  string // name of this process, unique among all processes
	Started  time.Time

	cfg         Config
	client      *fetch.Client
	connections *semaphore.Weighted

	mu     sync.Mutex
	queues map[string]platform.Queue // open queues by name

	broken context.Context // ends when no later write can succeed; see platform.Permanent
	drop   context.CancelCauseFunc
}

// New returns an engine on an open platform.
func New(p *platform.Platform, cfg Config) (*Engine, error) {
	cfg.Connections = cmp.Or(cfg.Connections, DefaultConnections)
	if cfg.Fetch.MaxIdle == 0 {
		cfg.Fetch.MaxIdle = maxIdle(openFiles(), cfg.Connections)
	}
	if cfg.Ledger == nil {
		cfg.Ledger = &ledger.Ledger{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string) {}
	}
	var id [8]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	broken, drop := context.WithCancelCause(context.Background())
	return &Engine{
		Platform: p, Ledger: cfg.Ledger, Log: cfg.Log, Process: hex.EncodeToString(id[:]), Started: time.Now(),
		cfg: cfg, client: fetch.New(cfg.Fetch), queues: map[string]platform.Queue{}, connections: semaphore.NewWeighted(int64(cfg.Connections)),
		broken: broken, drop: drop,
	}, nil
}

// Connections returns the limit of concurrent requests.
func (e *Engine) Connections() int { return e.cfg.Connections }

// These bound the idle connections. Files, look-ups and the platform's own connections need at most
// reservedFiles descriptors. An idle connection with TLS and HTTP/2 takes about 40 KB with its goroutines, so
// mostIdle connections take 160 MB.
const (
	reservedFiles = 160
	mostIdle      = 4096
)

// maxIdle returns the limit of idle connections, given the limits of open files and of concurrent requests. A polite
// crawl requests each host once a second or less, so it needs a connection for each host at work, not for each
// request.
func maxIdle(files, connections int) int {
	return min(mostIdle, max(files-reservedFiles-connections, connections/2))
}

// Run runs an actor to its end and returns its error.
func (e *Engine) Run(a actor.Actor) error { return e.Runner(a).Run() }

// RunUntil is like Run, but drops the actor when ctx ends, as a crash would. Then it returns ErrDropped.
func (e *Engine) RunUntil(ctx context.Context, a actor.Actor) error {
	r := e.Runner(a)
	r.dropped = ctx.Done()
	return r.Run()
}

// Lost reports whether err says that no later write can succeed. Then it drops all actors, as a crash would: retries
// would fetch pages again that cannot be stored. What was committed stays, and the next process resumes.
func (e *Engine) Lost(err error) bool {
	if err == nil || !platform.Permanent(err) {
		return false
	}
	e.drop(err)
	e.cfg.Changed("")
	return true
}

// Trouble returns the error for which all actors were dropped, or nil.
func (e *Engine) Trouble() error { return context.Cause(e.broken) }

// CloseIdle closes the connections to web servers that carry no request.
func (e *Engine) CloseIdle() { e.client.CloseIdle() }

// Close closes connections and queues. All actors must have ended.
func (e *Engine) Close(ctx context.Context) error {
	e.client.Close()
	return e.closeQueues(ctx)
}
