// Package engine is the executor of effects on a platform (package platform) and sockets. It decides nothing about crawling. [Engine.Run] carries one actor (package actor) from its start to its end:
// one goroutine delivers replies to the actor, and others, which end with it, carry out its effects.
//
// Package service says which actors run when. The other executor is package virtual.
package engine

import (
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

// Config says how an engine carries out effects.
type Config struct {
	Fetch       fetch.Config
	Connections int // requests under way at once in the process; default 256
	Ledger      *ledger.Ledger
	Log         *slog.Logger
	// Changed, if it is not nil, is called after each write of a record, with its key, and after each send of
	// messages, with "". It must not block.
	Changed func(key string)
}

// Engine carries out the effects of any number of actors at once. Its fields may be read only.
type Engine struct {
	Platform *platform.Platform
	Ledger   *ledger.Ledger
	Log      *slog.Logger
	Process  string // name of this process, unlike that of any other
	Started  time.Time

	cfg         Config
	client      *fetch.Client
	queues      *queues
	connections *semaphore.Weighted

	broken  chan struct{} // closed when no write can succeed any more; see platform.Permanent
	once    sync.Once     // closes broken
	trouble error         // why; set before broken is closed
}

// New returns an engine on an open platform.
func New(p *platform.Platform, cfg Config) (*Engine, error) {
	if cfg.Connections == 0 {
		cfg.Connections = 256
	}
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
	return &Engine{
		Platform: p, Ledger: cfg.Ledger, Log: cfg.Log, Process: hex.EncodeToString(id[:]), Started: time.Now(),
		cfg: cfg, client: fetch.New(cfg.Fetch), queues: newQueues(p), connections: semaphore.NewWeighted(int64(cfg.Connections)),
		broken: make(chan struct{}),
	}, nil
}

// Connections is how many requests may be under way at once.
func (e *Engine) Connections() int { return e.cfg.Connections }

// Bounds on idle connections. Files, look-ups and the platform's own connections need
// reservedFiles descriptors at most. An idle connection over TLS and HTTP/2 takes about 40 KB, goroutines
// included, so mostIdle of them take 160 MB.
const (
	reservedFiles = 160
	mostIdle      = 4096
)

// maxIdle returns how many connections may be open without a request, if a process may open that many
// files and makes that many requests at once. A crawl of polite pace requests a host once a second or less;
// it needs a connection for each host that it has begun, not for each request under way.
func maxIdle(files, connections int) int {
	return min(mostIdle, max(files-reservedFiles-connections, connections/2))
}

// Run carries an actor to its end and returns its error.
func (e *Engine) Run(a actor.Actor) error { return e.Runner(a).Run() }

// RunUntil is Run, but gives the actor up when ctx ends, as if the process had died: then it returns ErrGivenUp.
func (e *Engine) RunUntil(ctx context.Context, a actor.Actor) error {
	r := e.Runner(a)
	r.given = ctx.Done()
	return r.Run()
}

// Lost reports whether err says that no write can succeed any more. Then all actors are given up at
// once, as if the process had died: retries would fetch pages again that nobody can store. What was
// committed stays, and the next process resumes.
func (e *Engine) Lost(err error) bool {
	if err == nil || !platform.Permanent(err) {
		return false
	}
	e.once.Do(func() {
		e.trouble = err
		close(e.broken)
		e.cfg.Changed("")
	})
	return true
}

// Trouble returns the error for which all actors were given up, nil if none was.
func (e *Engine) Trouble() error {
	select {
	case <-e.broken:
		return e.trouble
	default:
		return nil
	}
}

// CloseIdle closes the connections to web servers that carry no request.
func (e *Engine) CloseIdle() { e.client.CloseIdle() }

// Close closes connections and queues. All actors must have ended.
func (e *Engine) Close(ctx context.Context) error {
	e.client.Close()
	return e.queues.close(ctx)
}
