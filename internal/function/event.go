package function

import (
	"context"
	"encoding/base64"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// encoded is the attribute by which gocloud marks messages whose body is base64. Messages of other senders lack it.
const encoded = "base64encoded"

// messages returns the messages of an event of SQS.
func messages(e events.SQSEvent) []actor.Message {
	out := make([]actor.Message, len(e.Records))
	for i, r := range e.Records {
		m := actor.Message{ID: r.MessageId, Body: []byte(r.Body), Receipt: r.ReceiptHandle, Receives: 1}
		if _, ok := r.MessageAttributes[encoded]; ok {
			if b, err := base64.StdEncoding.DecodeString(r.Body); err == nil {
				m.Body = b
			} // else the reader of the message reports it
		}
		if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil {
			m.Receives = n
		}
		out[i] = m
	}
	return out
}

// Each returns a handler that calls do for each message of an event in turn. If one call fails, SQS delivers the
// event again.
func Each(do func(ctx context.Context, body []byte) error) func(context.Context, events.SQSEvent) error {
	return func(ctx context.Context, e events.SQSEvent) error {
		for _, m := range messages(e) {
			if err := do(ctx, m.Body); err != nil {
				return err
			}
		}
		return nil
	}
}

// IntakeEvents returns a handler of events of the intake queue. Its answer names the messages that failed.
func IntakeEvents(f *Function) func(context.Context, events.SQSEvent) (events.SQSEventResponse, error) {
	return func(ctx context.Context, e events.SQSEvent) (answer events.SQSEventResponse, err error) {
		failed, err := f.Intake(ctx, messages(e))
		for _, m := range failed {
			answer.BatchItemFailures = append(answer.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.ID})
		}
		return answer, err
	}
}
