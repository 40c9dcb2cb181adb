// Command intake is a function that turns requests from outside into mail to the partitions that own their URLs.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"github.com/orbweaver/orbweaver/internal/drivers/aws"
	"github.com/orbweaver/orbweaver/internal/function"
)

func main() {
	lambda.Start(function.IntakeEvents(function.New(aws.Open)))
}
