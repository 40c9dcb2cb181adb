// Command query is a function that answers searches, as a page or as JSON. Requests to its address start it.
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
