// Command rank is the function that a job of the queue rank starts: it does the next piece
// of work on the ranks of the partition that the job names. Its trigger hands over one
// message a time.
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
	lambda.Start(event.Each(f.Rank))
}
