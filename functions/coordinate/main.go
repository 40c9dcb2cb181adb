// Command coordinate is a function that runs the coordinator once. A schedule starts it every minute.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
)

func main() {
	f := function.New(aws.Open, func(s *service.Service) { jobs.New(s) })
	lambda.Start(f.Coordinate)
}
