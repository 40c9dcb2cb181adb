package main

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// serveProbes serves the probes of an orchestrator until end is called: /healthz answers 200 while this process runs, and
// /readyz while the platform answers too. Each request of /readyz reads one record.
func serveProbes(addr string, p *platform.Platform) (end func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
		defer cancel()
		if _, err := p.ReadRecords(ctx, []string{naming.ActiveKey}); err != nil {
			http.Error(w, "the platform does not answer", http.StatusServiceUnavailable)
		}
	})
	return serveAt(addr, "probes", 5*time.Second, mux)
}

// serveAt serves HTTP at an address until end is called. A request must arrive within a time.
func serveAt(addr, what string, within time.Duration, h http.Handler) (end func(), err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, usagef("cannot serve %s at %s: %w", what, addr, err)
	}
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: within, WriteTimeout: within + 30*time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // it ends by Close
	}()
	return func() {
		_ = srv.Close()
		<-done
	}, nil
}
