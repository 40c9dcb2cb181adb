// Command intake is a function that turns requests from outside into mail to the partitions that own their URLs.
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
	lambda.Start(func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		failed, err := f.Intake(ctx, function.Messages(e))
		var out events.SQSEventResponse
		for _, id := range failed {
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: id})
		}
		return out, err
	})
}
