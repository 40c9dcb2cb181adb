// Command inbound is a function that takes requests of other programs for URLs of the active crawl (internal/inbound). Requests to its
// address start it, and each minute a schedule, which works off the claims. ORBWEAVER_INBOUND_TOKEN is the operator's token.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/inbound"
	"github.com/orbweaver/orbweaver/internal/service"
)

func main() {
	e := &endpoint{Function: function.New(aws.Open), token: os.Getenv(inbound.TokenVariable)}
	lambda.Start(e.serve)
}

// endpoint serves one event at a time.
type endpoint struct {
	*function.Function
	token   string
	handler *inbound.Handler // nil until it has been opened
}

// serve answers a request. An event without a method is the schedule's.
func (e *endpoint) serve(ctx context.Context, ev events.LambdaFunctionURLRequest) (answer events.LambdaFunctionURLResponse, err error) {
	err = e.Log("inbound", func(line *[]any) error {
		if err := e.open(ctx); err != nil {
			return err
		}
		if ev.RequestContext.HTTP.Method == "" {
			left, err := e.handler.Settle(ctx)
			*line = append(*line, "outcome", "settled", "claims", left)
			return err
		}
		answer = function.Serve(ctx, e.handler, ev)
		*line = append(*line, "outcome", "answered", "status", answer.StatusCode)
		return nil
	})
	return answer, err
}

func (e *endpoint) open(ctx context.Context) error {
	if e.handler != nil {
		return nil
	}
	p, err := e.Platform(ctx)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	to, err := service.New(p, service.Config{Log: log})
	if err != nil {
		return err
	}
	e.handler, err = inbound.New(inbound.Config{Token: e.token, Platform: p, To: to, Log: log})
	return err
}
