// Command fetch is the function that a wake starts: it runs a step of the partition
// that the wake names. Its trigger hands over one message at a time.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
)

func main() {
	f, err := function.New(aws.Open, os.Stderr)
	if err != nil {
		log.Fatal(err)
	}
	lambda.Start(function.Each(f.Fetch))
}
