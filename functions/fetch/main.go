// Command fetch is the function that a wake starts: it runs a step of the partition
// that the wake names. Its trigger hands over one message a time.
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
	lambda.Start(event.Each(f.Fetch))
}
