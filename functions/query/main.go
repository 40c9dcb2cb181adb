// Command query is the function that a request to its address starts: it answers a search,
// as a page or as JSON.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/function/event"
)

func main() {
	f, err := function.New(os.Stderr)
	if err != nil {
		log.Fatal(err)
	}
	q := &query{f: f}
	lambda.Start(func(ctx context.Context, e events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return event.Serve(ctx, q, e), nil
	})
}
