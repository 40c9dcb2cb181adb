// Command index is the function that a job of the queue index starts: it makes searchable
// what the partition that the job names has crawled. Its trigger hands over one message a
// time.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/function/event"
)

func main() {
	f, err := function.New(os.Stderr)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(event.Each(f.Index))
}
