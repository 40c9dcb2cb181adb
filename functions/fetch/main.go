// Command fetch is a function that runs a step of the partition that a wake names. Its trigger passes one wake at a time.
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
