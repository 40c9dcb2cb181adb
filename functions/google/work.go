//go:build gcp

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/idtoken"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/function/query"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/partition"
)

// maxBody bounds the body of a request. A message of Pub/Sub has up to 10 MB, which base64 makes 13.4 MB.
const maxBody = 16 << 20

// keysTimeout bounds the time in which the validator fetches Google's keys, which it caches.
const keysTimeout = 10 * time.Second

// worker does the work that requests with the right token bring.
type worker struct {
	audience, account string // of tokens
	keys              *idtoken.Validator
	log               *slog.Logger // of requests that reach no function
	busy              sync.Mutex
	function          *function.Function
	jobs              *jobs.Jobs // of the active crawl
}

// prepare registers the jobs of a crawl.
func (w *worker) prepare(s *service.Service) { w.jobs = jobs.New(s) }

// handler returns the handler of all work. A 2xx status says that the work is durable, or that the message can never be handled.
// After any other status the sender repeats the request.
func (w *worker) handler() http.Handler {
	mux := http.NewServeMux()
	for path, do := range map[string]work{
		"/fetch":      w.function.Fetch,
		"/coordinate": func(ctx context.Context, _ []byte) error { return w.function.Coordinate(ctx) },
		"/intake":     w.intake,
		"/index": w.function.Job("index", func(p partition.ID, atMost time.Duration) ([]any, error) {
			return w.jobs.IndexForFunction(p, atMost)
		}),
		"/rank": w.function.Job("rank", func(p partition.ID, atMost time.Duration) ([]any, error) {
			return w.jobs.RankForFunction(p, atMost)
		}),
	} {
		mux.HandleFunc("POST "+path, func(rw http.ResponseWriter, r *http.Request) { w.serve(rw, r, do) })
	}
	return mux
}

// work handles the body of a request. Its function has logged its error.
type work func(ctx context.Context, body []byte) error

// serve does the work of a request.
func (w *worker) serve(rw http.ResponseWriter, r *http.Request, do work) {
	if status, err := w.authorize(r); err != nil {
		w.log.Warn("a request is refused", "path", r.URL.Path, "error", err)
		http.Error(rw, err.Error(), status)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, maxBody))
	if err != nil {
		status := http.StatusBadRequest
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(rw, err.Error(), status)
		return
	}
	alone(rw, r, &w.busy, w.function.TimeLimit(), func(ctx context.Context) {
		// A panic in a goroutine of its own ends the process. In that of the request, net/http would recover it, and later
		// requests would meet the state that it left.
		done := make(chan error, 1)
		go func() { done <- do(ctx, body) }()
		if err := <-done; err != nil {
			http.Error(rw, err.Error(), http.StatusInternalServerError)
			return
		}
		rw.WriteHeader(http.StatusNoContent)
	})
}

// alone calls do unless another request is at work.
func alone(rw http.ResponseWriter, r *http.Request, busy *sync.Mutex, limit time.Duration, do func(context.Context)) {
	if !busy.TryLock() {
		http.Error(rw, "another request is at work: set the concurrency of the service to 1", http.StatusServiceUnavailable)
		return
	}
	defer busy.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	do(ctx)
}

// authorize verifies the token of a request. It returns an error and the status of the answer unless Google has signed the
// token, for this function and for the account that may call it.
func (w *worker) authorize(r *http.Request) (status int, err error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	switch {
	case !strings.EqualFold(scheme, "Bearer"):
		return http.StatusUnauthorized, errors.New("the request has no token")
	case strings.HasSuffix(token, ".SIGNATURE_REMOVED_BY_GOOGLE"):
		return http.StatusUnauthorized, errors.New("the token has no signature, because Cloud Run checked the caller by IAM and removed it: disable the IAM check of the service")
	}
	// The validator panics on some tokens whose signature is too short.
	defer func() {
		if v := recover(); v != nil {
			status, err = http.StatusUnauthorized, fmt.Errorf("token: %v", v)
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), keysTimeout)
	defer cancel()
	p, err := w.keys.Validate(ctx, token, w.audience)
	if err != nil {
		return http.StatusUnauthorized, fmt.Errorf("token: %w", err)
	}
	google := p.Issuer == "https://accounts.google.com" || p.Issuer == "accounts.google.com"
	if !google || p.Claims["email"] != w.account || p.Claims["email_verified"] != true {
		return http.StatusForbidden, fmt.Errorf("the token is not that of %s", w.account)
	}
	return 0, nil
}

// intake turns a pushed message into mail.
func (w *worker) intake(ctx context.Context, body []byte) error {
	m, ok := decodePush(body)
	if !ok {
		w.log.Error("a push that cannot be read is dropped", "bytes", len(body))
		return nil
	}
	_, err := w.function.Intake(ctx, []actor.Message{m})
	return err
}

// decodePush decodes the wrapped form of a message that Pub/Sub pushes. ok is false for anything else, and for a notification of a
// bucket about anything but a new object.
//
// Sources: Pub/Sub, "Receive push messages"; Cloud Storage, "Pub/Sub notifications", attribute eventType.
func decodePush(body []byte) (m actor.Message, ok bool) {
	var push struct {
		Message struct {
			ID         string            `json:"messageId"`
			Data       []byte            `json:"data"`
			Attributes map[string]string `json:"attributes"`
		} `json:"message"`
		Attempt int `json:"deliveryAttempt"` // 0 without a dead-letter policy
	}
	if json.Unmarshal(body, &push) != nil || push.Message.ID == "" {
		return m, false
	}
	if event := push.Message.Attributes["eventType"]; event != "" && event != "OBJECT_FINALIZE" {
		return m, false
	}
	return actor.Message{ID: push.Message.ID, Body: push.Message.Data, Receives: max(1, push.Attempt)}, true
}

// queries returns the handler of searches.
func queries(f *function.Function) http.Handler {
	var busy sync.Mutex
	q := query.New(f)
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		alone(rw, r, &busy, f.TimeLimit(), func(ctx context.Context) { q.ServeHTTP(rw, r.WithContext(ctx)) })
	})
}
