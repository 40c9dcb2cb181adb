// Command coordinate is a function that runs the coordinator once. A schedule starts it every minute.
package main

import (
	"context"
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
)

func main() {
	f, err := function.New(aws.Open, os.Stderr, func(s *service.Service) { jobs.New(s) })
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(func(ctx context.Context) error { return f.Coordinate(ctx) })
}
