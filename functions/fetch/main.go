// Command fetch is a function that runs a step of the partition that a wake names. Its trigger passes one wake
// at a time.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
)

func main() {
	lambda.Start(function.Each(function.New(aws.Open).Fetch))
}
