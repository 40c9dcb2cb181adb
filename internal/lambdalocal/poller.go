package lambdalocal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Properties of an event source mapping that cannot be configured.
const (
	pollers      = 5                      // concurrent calls that wait for messages
	waitSeconds  = 20                     // of such a call
	firstPause   = 100 * time.Millisecond // after an error, doubled up to
	longestPause = 10 * time.Second
	callTime     = 10 * time.Second // for a call that does not wait for messages
)

// Mapping describes an event source mapping from a standard queue to a function.
type Mapping struct {
	Client   *sqs.Client
	QueueURL string
	Function *Function

	BatchSize int // messages in one event: 1 to 10
	// MaximumConcurrency bounds the concurrent invocations of the mapping: 2 or more on AWS, any number here. 0
	// means the bound of the function.
	MaximumConcurrency int
	// ReportBatchItemFailures means that the function's response names the messages that failed. Otherwise the
	// mapping ignores the response, and takes messages more slowly while calls fail.
	ReportBatchItemFailures bool

	Log *slog.Logger // of failed calls; nil: no log
}

// PollerCounts counts the calls that a mapping makes. AWS bills them to the queue's owner.
type PollerCounts struct {
	Receives int64 `json:"receives"`
	Empty    int64 `json:"empty"` // receives without messages
	Messages int64 `json:"messages"`
	Deletes  int64 `json:"deletes"`  // calls, of up to ten messages
	Deleted  int64 `json:"deleted"`  // messages
	Returned int64 `json:"returned"` // messages left to their visibility time-out
	Errors   int64 `json:"errors"`   // calls that failed
	Requests int64 `json:"requests"` // billed calls, in units of 64 KB
	Throttle int64 `json:"throttled"`
}

// Poller receives messages from a queue, invokes a function with them and deletes those that succeeded. Failed
// messages come back after their visibility time-out. While calls fail it receives messages more slowly, unless
// the mapping reports batch item failures (Lambda developer guide, "Handling errors for an SQS event source").
type Poller struct {
	m          Mapping
	arn        string
	visibility time.Duration

	mu     sync.Mutex
	counts PollerCounts
	brake  time.Duration // before the next receive
}

// NewPoller reads the queue's attributes. As AWS does, it refuses a queue whose messages may come
// again while the function works on them.
func NewPoller(ctx context.Context, m Mapping) (*Poller, error) {
	if m.Log == nil {
		m.Log = slog.New(slog.DiscardHandler)
	}
	m.MaximumConcurrency = cmp.Or(m.MaximumConcurrency, m.Function.config.Concurrency)
	got, err := m.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &m.QueueURL,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn, types.QueueAttributeNameVisibilityTimeout},
	})
	if err != nil {
		return nil, fmt.Errorf("mapping of %s: %w", m.QueueURL, err)
	}
	seconds, err := strconv.Atoi(got.Attributes["VisibilityTimeout"])
	if err != nil {
		return nil, fmt.Errorf("mapping of %s: visibility time-out: %w", m.QueueURL, err)
	}
	p := &Poller{m: m, arn: got.Attributes["QueueArn"], visibility: time.Duration(seconds) * time.Second}
	if t := m.Function.config.Timeout; p.visibility < t {
		return nil, fmt.Errorf("mapping of %s: the queue's visibility time-out, %v, is shorter than the function's time-out, %v", m.QueueURL, p.visibility, t)
	}
	return p, nil
}

// Counts returns the counts so far.
func (p *Poller) Counts() PollerCounts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *Poller) count(f func(c *PollerCounts)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.counts)
}

// Run polls until ctx ends, then waits for the running invocations. A message that a receive returns at that
// moment comes back after its visibility time-out.
func (p *Poller) Run(ctx context.Context) {
	slots := make(chan struct{}, p.m.MaximumConcurrency)
	var all sync.WaitGroup
	for range min(pollers, p.m.MaximumConcurrency) {
		all.Go(func() { p.poll(ctx, slots, &all) })
	}
	all.Wait()
}

// poll receives messages while there is a slot for another invocation.
func (p *Poller) poll(ctx context.Context, slots chan struct{}, all *sync.WaitGroup) {
	pause := firstPause
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		p.mu.Lock()
		brake := p.brake
		p.mu.Unlock()
		if brake > 0 {
			sleep(ctx, brake)
		}
		batch, err := p.receive(ctx)
		if len(batch) > 0 {
			pause = firstPause
			all.Go(func() {
				defer func() { <-slots }()
				p.work(ctx, batch)
			})
			continue
		}
		<-slots
		if err == nil {
			pause = firstPause
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.failed("receive", err)
		sleep(ctx, pause)
		pause = min(2*pause, longestPause)
	}
}

func (p *Poller) receive(ctx context.Context) ([]types.Message, error) {
	out, err := p.m.Client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl:                    &p.m.QueueURL,
		MaxNumberOfMessages:         int32(p.m.BatchSize),
		WaitTimeSeconds:             waitSeconds,
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		return nil, err
	}
	size := 0
	for _, m := range out.Messages {
		size += messageSize(m)
	}
	p.count(func(c *PollerCounts) {
		c.Receives++
		c.Messages += int64(len(out.Messages))
		c.Requests += int64(max(1, (size+64<<10-1)/(64<<10)))
		if len(out.Messages) == 0 {
			c.Empty++
		}
	})
	return out.Messages, nil
}

// messageSize returns the size of a message as SQS counts it: its body and its attributes.
func messageSize(m types.Message) int {
	n := len(aws.ToString(m.Body))
	for name, a := range m.MessageAttributes {
		n += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return n
}

// work invokes the function with a batch, and deletes the messages that succeeded.
func (p *Poller) work(ctx context.Context, batch []types.Message) {
	payload, err := json.Marshal(p.event(batch))
	if err != nil {
		panic(err) // strings only
	}
	inv, err := p.invoke(ctx, payload, p.lineage(batch))
	if errors.Is(err, ErrRecursive) {
		// Lambda moves them to the dead-letter queue, if there is one.
		p.m.Log.Warn("a chain of calls was stopped, and its messages are dropped", "function", p.m.Function.config.Name, "messages", len(batch))
		p.delete(batch)
		return
	}
	if err != nil {
		p.m.Log.Warn("messages not worked on", "function", p.m.Function.config.Name, "messages", len(batch), "error", err)
		p.count(func(c *PollerCounts) { c.Returned += int64(len(batch)) })
		return
	}
	done := batch
	switch {
	case inv.Outcome != Succeeded:
		done = nil
	case p.m.ReportBatchItemFailures:
		done = succeeded(inv.Response, batch)
	}
	p.count(func(c *PollerCounts) {
		c.Returned += int64(len(batch) - len(done))
		switch {
		case inv.Outcome == Succeeded:
			p.brake = 0
		case !p.m.ReportBatchItemFailures:
			p.brake = min(max(firstPause, 2*p.brake), longestPause)
		}
	})
	if len(done) > 0 {
		p.delete(done)
	}
}

// lineage returns the trace header of a batch: that of the message with the longest chain.
func (p *Poller) lineage(batch []types.Message) (header string) {
	longest := 0
	for _, m := range batch {
		if _, calls := p.m.Function.next(m.Attributes[traceName]); calls > longest {
			longest, header = calls, m.Attributes[traceName]
		}
	}
	return header
}

// invoke invokes the function. While the function is throttled, it retries until other receivers could get the
// messages.
func (p *Poller) invoke(ctx context.Context, payload []byte, trace string) (Invocation, error) {
	last := time.Now().Add(p.visibility - p.m.Function.config.Timeout)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		inv, err := p.m.Function.invoke(payload, trace)
		if !errors.Is(err, ErrThrottled) {
			return inv, err
		}
		p.count(func(c *PollerCounts) { c.Throttle++ })
		if time.Now().Add(pause).After(last) || !sleep(ctx, pause) {
			return inv, err
		}
	}
}

// delete deletes messages from the queue, even while the poller stops. A message that cannot be deleted comes
// again.
func (p *Poller) delete(batch []types.Message) {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &p.m.QueueURL}
	for n, m := range batch {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(n)), ReceiptHandle: m.ReceiptHandle})
	}
	out, err := p.m.Client.DeleteMessageBatch(ctx, in)
	if err != nil {
		p.failed("delete", err)
		return
	}
	p.count(func(c *PollerCounts) {
		c.Deletes++
		c.Requests++
		c.Deleted += int64(len(out.Successful))
	})
	for _, f := range out.Failed {
		p.failed("delete", fmt.Errorf("%s: %s", aws.ToString(f.Code), aws.ToString(f.Message)))
	}
}

func (p *Poller) failed(call string, err error) {
	p.count(func(c *PollerCounts) { c.Errors++ })
	p.m.Log.Warn("poller", "call", call, "queue", p.m.QueueURL, "error", err)
}

// event returns the input of the function for messages.
func (p *Poller) event(batch []types.Message) events.SQSEvent {
	var e events.SQSEvent
	for _, m := range batch {
		attributes := map[string]events.SQSMessageAttribute{}
		for name, a := range m.MessageAttributes {
			attributes[name] = events.SQSMessageAttribute{
				StringValue: a.StringValue, BinaryValue: a.BinaryValue, DataType: aws.ToString(a.DataType),
				StringListValues: []string{}, BinaryListValues: [][]byte{},
			}
		}
		e.Records = append(e.Records, events.SQSMessage{
			MessageId:              aws.ToString(m.MessageId),
			ReceiptHandle:          aws.ToString(m.ReceiptHandle),
			Body:                   aws.ToString(m.Body),
			Md5OfBody:              aws.ToString(m.MD5OfBody),
			Md5OfMessageAttributes: aws.ToString(m.MD5OfMessageAttributes),
			Attributes:             m.Attributes,
			MessageAttributes:      attributes,
			EventSourceARN:         p.arn,
			EventSource:            "aws:sqs",
			AWSRegion:              p.m.Function.config.Region,
		})
	}
	return e
}

// succeeded returns the messages that a response does not report as failed. A response that cannot be decoded
// fails the whole batch, and so does an identifier that is empty, null or of no message of the batch. No
// response, or one that reports nothing, is success. As on AWS, names must be exact: a misspelt report counts
// as no report. (Lambda developer guide, "Handling errors for an SQS event source", success and failure
// conditions.)
func succeeded(response []byte, batch []types.Message) []types.Message {
	if len(response) == 0 {
		return batch
	}
	var report map[string]json.RawMessage
	if json.Unmarshal(response, &report) != nil {
		return nil
	}
	var items []map[string]json.RawMessage
	if list, ok := report["batchItemFailures"]; ok && json.Unmarshal(list, &items) != nil {
		return nil
	}
	good := map[string]bool{}
	for _, m := range batch {
		good[aws.ToString(m.MessageId)] = true
	}
	failed := map[string]bool{}
	for _, item := range items {
		var id string
		if json.Unmarshal(item["itemIdentifier"], &id) != nil || !good[id] {
			return nil
		}
		failed[id] = true
	}
	var out []types.Message
	for _, m := range batch {
		if !failed[aws.ToString(m.MessageId)] {
			out = append(out, m)
		}
	}
	return out
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
