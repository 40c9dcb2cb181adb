// Command query is the function that a request to its address starts: it answers a search,
// as a page or as JSON.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
)

func main() {
	f, err := function.New(aws.Open, os.Stderr)
	if err != nil {
		log.Fatal(err)
	}
	q := &query{f: f}
	lambda.Start(func(ctx context.Context, e events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
		return function.Serve(ctx, q, e), nil
	})
}
