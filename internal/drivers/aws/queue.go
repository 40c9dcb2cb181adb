package aws

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"gocloud.dev/pubsub"
	"gocloud.dev/pubsub/awssnssqs"
	"gocloud.dev/pubsub/batcher"

	"github.com/orbweaver/orbweaver/platform"
)

// Bounds of SQS.
const (
	maxBatch = 10        // messages of a request
	maxBytes = 256 << 10 // of a request's messages, unless the queue is configured for more
	maxDelay = 15 * time.Minute
)

// Times of a receive. A poll is never canceled: if SQS delivered a message to a caller that is gone, the
// message would stay hidden until its visibility ends. So polls are short, the driver pauses between them, and
// it releases messages that arrive too late. A step that waits for 20 seconds makes six requests.
const (
	pollTime  = time.Second     // a long poll, for which SQS queries all of its servers
	pollGrace = 3 * time.Second // for the answer, once the context has ended
	maxPause  = 4 * time.Second
	slack     = 50 * time.Millisecond // a shorter wait counts as over
)

// encodedAttribute marks a body in base64, as gocloud does.
const encodedAttribute = "base64encoded"

// attributeBytes is the size that the attribute adds to a message: name, type and value.
const attributeBytes = len(encodedAttribute) + len("String") + len("true")

// queue is one queue. It sends through gocloud and receives through the client: gocloud's subscription
// prefetches while it is open, and does not report when it has acknowledged.
type queue struct {
	name   string // as deployed
	client *sqs.Client

	mu  sync.Mutex
	url string // "" until it is looked up
}

// handle is a receipt: the name that SQS gives a delivery.
type handle string

// openQueue opens a queue. If it does not exist, its first call returns an error.
func (d *deployment) openQueue(name string) *queue {
	return &queue{name: d.queue(name), client: d.queues}
}

// address returns the queue's URL, which it looks up once.
func (q *queue) address(ctx context.Context) (string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.url == "" {
		r, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.name})
		if err != nil {
			return "", err
		}
		q.url = aws.ToString(r.QueueUrl)
	}
	return q.url, nil
}

func (q *queue) Send(ctx context.Context, bodies [][]byte, delay time.Duration) error {
	url, err := q.address(ctx)
	if err != nil {
		return fmt.Errorf("send to %s: %w", q.name, err)
	}
	for len(bodies) > 0 {
		n, size := 0, 0
		for n < min(len(bodies), maxBatch) {
			s := base64.StdEncoding.EncodedLen(len(bodies[n])) + attributeBytes
			if s > maxBytes {
				return fmt.Errorf("send to %s: a message has %d bytes in base64, and SQS takes %d", q.name, s, maxBytes)
			}
			if size += s; size > maxBytes {
				break
			}
			n++
		}
		if err := q.sendBatch(ctx, url, bodies[:n], delay); err != nil {
			return fmt.Errorf("send to %s: %w", q.name, err)
		}
		bodies = bodies[n:]
	}
	return nil
}

// sendBatch sends messages in one request. Each batch has its own topic, whose batcher waits for exactly that
// many messages.
func (q *queue) sendBatch(ctx context.Context, url string, bodies [][]byte, delay time.Duration) error {
	topic := awssnssqs.OpenSQSTopic(ctx, q.client, url, &awssnssqs.TopicOptions{
		BodyBase64Encoding: awssnssqs.Always, // SQS refuses most control characters
		BatcherOptions:     batcher.Options{MaxHandlers: 1, MinBatchSize: len(bodies), MaxBatchSize: len(bodies)},
	})
	seconds := int32(min(delay, maxDelay).Round(time.Second) / time.Second)
	// gocloud makes the request under its own context, which a shutdown ends.
	stop := context.AfterFunc(ctx, func() { _ = topic.Shutdown(ctx) })
	sending := context.WithoutCancel(ctx) // so that no send is under way when sendBatch returns
	errs := make([]error, len(bodies))
	var wg sync.WaitGroup
	for i, body := range bodies {
		m := &pubsub.Message{Body: body, BeforeSend: func(as func(any) bool) error {
			var entry *types.SendMessageBatchRequestEntry
			if as(&entry) {
				entry.DelaySeconds = seconds
			}
			return nil
		}}
		wg.Go(func() { errs[i] = topic.Send(sending, m) })
	}
	wg.Wait()
	if stop() {
		if err := topic.Shutdown(sending); err != nil {
			return err
		}
	}
	return errs[0] // the same for all of a batch
}

// Receive polls with growing pauses until a message comes. It returns at most a second after the end of
// ctx, unless an answer is late.
func (q *queue) Receive(ctx context.Context, limit int, wait time.Duration) ([]platform.Delivery, error) {
	url, err := q.address(ctx)
	if err != nil {
		return nil, q.receiveError(ctx, err)
	}
	end := time.Now().Add(wait)
	for pause := time.Second; ; pause = min(2*pause, maxPause) {
		got, err := q.poll(ctx, url, limit, min(pollTime, time.Until(end)+slack))
		if err != nil {
			return nil, q.receiveError(ctx, err)
		}
		if len(got) > 0 && ctx.Err() != nil {
			return nil, q.release(ctx, got)
		}
		left := time.Until(end)
		if len(got) > 0 || left < slack {
			return got, nil
		}
		select {
		case <-time.After(min(pause, left)):
		case <-ctx.Done():
			return nil, nil
		}
	}
}

func (q *queue) receiveError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("receive from %s: %w", q.name, err)
}

// poll makes one request. The end of ctx does not end it before its answer is overdue.
func (q *queue) poll(ctx context.Context, url string, limit int, wait time.Duration) ([]platform.Delivery, error) {
	if ctx.Err() != nil {
		return nil, nil
	}
	seconds := int32(max(0, wait) / time.Second) // below a second: an answer at once
	polling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		time.AfterFunc(time.Duration(seconds)*time.Second+pollGrace, cancel)
	})()
	r, err := q.client.ReceiveMessage(polling, &sqs.ReceiveMessageInput{
		QueueUrl:                    &url,
		MaxNumberOfMessages:         int32(max(1, min(limit, maxBatch))),
		WaitTimeSeconds:             seconds,
		MessageAttributeNames:       []string{encodedAttribute},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameApproximateReceiveCount},
	})
	if err != nil {
		return nil, err
	}
	out := make([]platform.Delivery, 0, len(r.Messages))
	for _, m := range r.Messages {
		out = append(out, delivery(m))
	}
	return out, nil
}

// release makes messages visible again that came after the end of ctx.
func (q *queue) release(ctx context.Context, late []platform.Delivery) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollGrace)
	defer cancel()
	receipts := make([]platform.Receipt, len(late))
	for i, d := range late {
		receipts[i] = d.Receipt
	}
	return q.Release(ctx, receipts)
}

// delivery decodes a message. A body that is wrongly marked as base64 stays as it is; its reader will refuse
// it.
func delivery(m types.Message) platform.Delivery {
	body := []byte(aws.ToString(m.Body))
	if _, ok := m.MessageAttributes[encodedAttribute]; ok {
		if plain, err := base64.StdEncoding.DecodeString(string(body)); err == nil {
			body = plain
		}
	}
	receives, err := strconv.Atoi(m.Attributes[string(types.MessageSystemAttributeNameApproximateReceiveCount)])
	if err != nil {
		receives = 1
	}
	return platform.Delivery{ID: aws.ToString(m.MessageId), Body: body, Receives: receives, Receipt: handle(aws.ToString(m.ReceiptHandle))}
}

// Acknowledge deletes messages. A message that is deleted already, or was received again, is no error.
func (q *queue) Acknowledge(ctx context.Context, receipts []platform.Receipt) error {
	return q.batches(ctx, "acknowledge", receipts, func(url string, handles []platform.Receipt) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
		for i, h := range handles {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(string(h.(handle))),
			})
		}
		r, err := q.client.DeleteMessageBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		return r.Failed, nil
	})
}

// Release makes messages visible at once.
func (q *queue) Release(ctx context.Context, receipts []platform.Receipt) error {
	return q.batches(ctx, "release", receipts, func(url string, handles []platform.Receipt) ([]types.BatchResultErrorEntry, error) {
		in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &url}
		for i, h := range handles {
			in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{
				Id: aws.String(strconv.Itoa(i)), ReceiptHandle: aws.String(string(h.(handle))), VisibilityTimeout: 0,
			})
		}
		r, err := q.client.ChangeMessageVisibilityBatch(ctx, in)
		if err != nil {
			return nil, err
		}
		return r.Failed, nil
	})
}

// batches calls do for every ten receipts. It continues after a failed call.
func (q *queue) batches(ctx context.Context, what string, receipts []platform.Receipt,
	do func(url string, handles []platform.Receipt) ([]types.BatchResultErrorEntry, error),
) error {
	if len(receipts) == 0 {
		return nil
	}
	url, err := q.address(ctx)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", what, q.name, err)
	}
	var errs []error
	for len(receipts) > 0 {
		n := min(len(receipts), maxBatch)
		failed, err := do(url, receipts[:n])
		errs = append(errs, err)
		for _, f := range failed {
			if !outdated(f) {
				errs = append(errs, fmt.Errorf("one message: %s %s", aws.ToString(f.Code), aws.ToString(f.Message)))
			}
		}
		receipts = receipts[n:]
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%s in %s: %w", what, q.name, err)
	}
	return nil
}

// outdated reports whether a receipt is void: its message is visible, was received again, or is deleted.
func outdated(f types.BatchResultErrorEntry) bool {
	switch aws.ToString(f.Code) {
	case "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight", "ReceiptHandleIsInvalid":
		return true
	case "InvalidParameterValue", "InvalidParameterValueException": // only its text names the parameter
		text := aws.ToString(f.Message)
		return strings.Contains(text, "expired") || strings.Contains(text, "not available for visibility timeout change")
	}
	return false
}

// Close has nothing to end: each call ends by itself.
func (q *queue) Close(context.Context) error { return nil }
