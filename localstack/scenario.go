package main

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/orbweaver/orbweaver/internal/emulators"
	"github.com/orbweaver/orbweaver/internal/lambdalocal"
)

// scenario is the steps in order.
func scenario() []step {
	return []step{
		{"create queues, table and bucket", create},
		{"build and deploy the functions", deployToy},
		{"messages become objects, one of them at the second try", messages},
		{"kill a function in the middle of its work", killed},
		{"the schedule ticks", ticks},
	}
}

const (
	name       = "toy"
	visibility = 3 // seconds
)

func (w *world) queueURL(queue string) string { return w.set.AWS + "/000000000000/" + queue }

// create makes what the functions need, by the SDK.
func create(ctx context.Context, w *world) (map[string]any, error) {
	if _, err := w.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(name + "-wakes"), Attributes: map[string]string{
		"VisibilityTimeout": fmt.Sprint(visibility),
	}}); err != nil {
		return nil, err
	}
	if _, err := w.bucket.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name + "-bucket")}); err != nil {
		return nil, err
	}
	_, err := w.table.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: aws.String(name), BillingMode: dynamotypes.BillingModePayPerRequest,
		AttributeDefinitions: []dynamotypes.AttributeDefinition{{AttributeName: aws.String("key"), AttributeType: dynamotypes.ScalarAttributeTypeS}},
		KeySchema:            []dynamotypes.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: dynamotypes.KeyTypeHash}},
	})
	return nil, err
}

// deployToy builds the function and has it driven.
func deployToy(ctx context.Context, w *world) (map[string]any, error) {
	root, err := emulators.Root()
	if err != nil {
		return nil, err
	}
	bootstrap := filepath.Join(w.dir, "bootstrap")
	build := exec.CommandContext(ctx, "go", "build", "-tags=lambda.norpc", "-o", bootstrap, "./localstack/testdata/toy")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	f, err := w.deploy(lambdalocal.Config{
		Name: name, Bootstrap: bootstrap, MemoryMB: 512, Timeout: visibility * time.Second,
		Env: map[string]string{"TABLE": name, "BUCKET": name + "-bucket"},
	})
	if err != nil {
		return nil, err
	}
	return nil, w.begin(ctx,
		map[string]lambdalocal.Mapping{"wakes": {QueueURL: w.queueURL(name + "-wakes"), Function: f, BatchSize: 1, MaximumConcurrency: 4}},
		lambdalocal.Schedule{Function: f, Every: time.Second, Overlap: true})
}

func (w *world) send(ctx context.Context, bodies ...string) error {
	for batch := range slices.Chunk(bodies, 10) {
		in := &sqs.SendMessageBatchInput{QueueUrl: aws.String(w.queueURL(name + "-wakes"))}
		for n, b := range batch {
			in.Entries = append(in.Entries, sqstypes.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(n)), MessageBody: &b})
		}
		out, err := w.queues.SendMessageBatch(ctx, in)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("%d messages were not taken", len(out.Failed))
		}
	}
	return nil
}

// objects waits until the bucket has n objects with a prefix.
func (w *world) objects(ctx context.Context, prefix string, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		out, err := w.bucket.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: aws.String(name + "-bucket"), Prefix: &prefix})
		if err != nil {
			return err
		}
		if len(out.Contents) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d objects are there", len(out.Contents), n)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func messages(ctx context.Context, w *world) (map[string]any, error) {
	n := 60
	if w.fast {
		n = 20
	}
	bodies := []string{"fail once"}
	for i := range n - 1 {
		bodies = append(bodies, fmt.Sprintf("plain %d", i))
	}
	begin := time.Now()
	if err := w.send(ctx, bodies...); err != nil {
		return nil, err
	}
	if err := w.objects(ctx, "plain", n-1); err != nil {
		return nil, err
	}
	plain := time.Since(begin)
	if err := w.objects(ctx, "fail", 1); err != nil {
		return nil, err
	}
	return map[string]any{"messages": n, "per_second": float64(n) / plain.Seconds(), "second_try_after_s": time.Since(begin).Seconds()}, nil
}

func killed(ctx context.Context, w *world) (map[string]any, error) {
	f := w.functions[name]
	if err := w.send(ctx, "slow"); err != nil {
		return nil, err
	}
	// The one that has worked for a while is the slow one.
	var victim string
	for end := time.Now().Add(20 * time.Second); victim == ""; {
		for _, i := range f.Instances() {
			if i.RequestID != "" && time.Since(i.Since) > 300*time.Millisecond {
				victim = i.ID
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("no function works on the message")
		}
		time.Sleep(10 * time.Millisecond)
	}
	begin := time.Now()
	if !f.Kill(victim) {
		return nil, fmt.Errorf("it ended before it could be killed")
	}
	if err := w.objects(ctx, "slow", 1); err != nil {
		return nil, err
	}
	if exited := f.Totals().Outcomes[lambdalocal.Exited]; exited != 1 {
		return nil, fmt.Errorf("%d invocations were cut off, want 1", exited)
	}
	return map[string]any{"done_after_s": time.Since(begin).Seconds()}, nil
}

func ticks(ctx context.Context, w *world) (map[string]any, error) {
	if err := w.objects(ctx, "tick", 3); err != nil {
		return nil, err
	}
	w.halt()
	out, err := w.table.Scan(ctx, &dynamodb.ScanInput{TableName: aws.String(name), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	left, err := w.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       aws.String(w.queueURL(name + "-wakes")),
		AttributeNames: []sqstypes.QueueAttributeName{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"},
	})
	if err != nil {
		return nil, err
	}
	for what, n := range left.Attributes {
		if n != "0" {
			return nil, fmt.Errorf("%s is %s", what, n)
		}
	}
	return map[string]any{"items": len(out.Items)}, nil
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
