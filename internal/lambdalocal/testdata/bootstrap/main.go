// Bootstrap is a function that does what its payload says, for tests.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type order struct {
	Do      string
	N       int
	Records []events.SQSMessage
	events.LambdaFunctionURLRequest
}

type answer struct {
	N        int64
	Text     string
	Env      []string
	Deadline time.Time
	ARN      string
}

var (
	calls, beats atomic.Int64
	kept         []byte
)

func main() {
	if os.Getenv("BROKEN") != "" {
		fmt.Println("cannot start")
		os.Exit(7)
	}
	lambda.Start(handle)
}

func handle(ctx context.Context, o order) (any, error) {
	n := calls.Add(1)
	if o.Records != nil {
		return batch(o.Records)
	}
	if o.Version == "2.0" {
		return page(o.LambdaFunctionURLRequest)
	}
	switch o.Do {
	case "count":
		return answer{N: n}, nil
	case "env":
		lc, _ := lambdacontext.FromContext(ctx)
		deadline, _ := ctx.Deadline()
		return answer{Env: os.Environ(), Deadline: deadline, ARN: lc.InvokedFunctionArn}, nil
	case "error":
		return nil, errors.New("no luck")
	case "panic":
		panic("oh no")
	case "exit":
		os.Exit(o.N)
	case "sleep":
		fmt.Println("sleeping")
		time.Sleep(time.Duration(o.N) * time.Millisecond)
		return answer{N: n}, nil
	case "": // a scheduled event
		time.Sleep(300 * time.Millisecond)
		return answer{N: n}, nil
	case "child": // a child that would outlive the function
		return nil, exec.Command("sleep", "600").Run()
	case "beat": // something that outlives the invocation
		if beats.Load() == 0 {
			go func() {
				for ; ; time.Sleep(time.Millisecond) {
					beats.Add(1)
				}
			}()
		}
		return answer{N: beats.Load()}, nil
	case "hold":
		kept = make([]byte, o.N<<20)
		for i := range kept {
			kept[i] = 1
		}
		return answer{N: n}, nil
	case "long":
		return answer{Text: strings.Repeat("x", o.N)}, nil
	}
	return nil, fmt.Errorf("cannot %q", o.Do)
}

// page answers requests of the function's URL.
func page(r events.LambdaFunctionURLRequest) (any, error) {
	switch r.RawPath {
	case "/page":
		return events.LambdaFunctionURLResponse{
			StatusCode: 404, Headers: map[string]string{"content-type": "text/html"}, Body: "<p>ü</p>",
		}, nil
	case "/binary":
		return events.LambdaFunctionURLResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "image/png"}, Body: "AP8=", IsBase64Encoded: true}, nil
	case "/bare":
		return "just text", nil
	case "/wrong":
		return events.LambdaFunctionURLResponse{StatusCode: 7}, nil
	case "/error":
		return nil, errors.New("no luck")
	}
	return r, nil
}

// batch reports messages whose body begins with "fail" as failed. A body "fail all" fails the whole batch.
func batch(records []events.SQSMessage) (any, error) {
	var out events.SQSEventResponse
	for _, r := range records {
		b, _ := json.Marshal(r)
		fmt.Printf("record %s\n", b)
		switch {
		case strings.HasPrefix(r.Body, "slow"):
			time.Sleep(300 * time.Millisecond)
		case strings.HasPrefix(r.Body, "exit"):
			os.Exit(1)
		case r.Body == "fail all":
			return nil, errors.New("all failed")
		case strings.HasPrefix(r.Body, "again "):
			if err := again(r); err != nil {
				return nil, err
			}
		case strings.HasPrefix(r.Body, "fail once") && r.Attributes["ApproximateReceiveCount"] != "1":
		case strings.HasPrefix(r.Body, "fail"):
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: r.MessageId})
		}
	}
	return out, nil
}

// again sends a message to the queue that it came from: "again N", until N is 0.
func again(r events.SQSMessage) error {
	n, err := strconv.Atoi(strings.TrimPrefix(r.Body, "again "))
	if err != nil || n == 0 {
		return err
	}
	c := sqs.New(sqs.Options{
		Region: r.AWSRegion, BaseEndpoint: aws.String(os.Getenv("QUEUES")), Credentials: aws.CredentialsProviderFunc(
			func(context.Context) (aws.Credentials, error) {
				return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
			}),
	})
	_, err = c.SendMessage(context.Background(), &sqs.SendMessageInput{
		QueueUrl: aws.String(os.Getenv("QUEUES") + "/000000000000/q"), MessageBody: aws.String(fmt.Sprint("again ", n-1)),
	})
	return err
}
