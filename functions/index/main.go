// Command index is a function that indexes new pages of the partition that a job names. Its trigger passes one
// message of the queue index at a time.
package main

import (
	"time"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/jobs"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/partition"
)

func main() {
	var j *jobs.Jobs // of the active crawl
	f := function.New(aws.Open, func(s *service.Service) { j = jobs.New(s) })
	lambda.Start(function.Each(f.Job("index", func(p partition.ID, atMost time.Duration) ([]any, error) {
		return j.IndexForFunction(p, atMost)
	})))
}
