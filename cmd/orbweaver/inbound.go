package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/orbweaver/orbweaver/internal/inbound"
	"github.com/orbweaver/orbweaver/platform"
)

const inboundUsage = "take requests of other programs at this address, such as :8070: IndexNow, and with a token in $" +
	inbound.TokenVariable + " URLs and WebSub"

// serveInbound serves requests of other programs at an address until end is called; at none if it is "". to puts
// them on the intake queue of the platform.
func serveInbound(ctx context.Context, addr string, p *platform.Platform, to inbound.Submitter, log *slog.Logger) (end func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	h, err := inbound.New(inbound.Config{Token: os.Getenv(inbound.TokenVariable), Platform: p, To: to, Log: log})
	if err != nil {
		return nil, usagef("$%s: %w", inbound.TokenVariable, err)
	}
	stop, err := serveAt(addr, "requests", inbound.ReadTime, h)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Run(ctx)
	}()
	return func() {
		stop()
		cancel()
		<-done
	}, nil
}
