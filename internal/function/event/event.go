// Package event reads what triggers hand to functions.
package event

import (
	"context"
	"encoding/base64"
	"strconv"

	"github.com/aws/aws-lambda-go/events"

	"github.com/orbweaver/orbweaver/internal/actor"
)

// encoded is the attribute of messages whose body is base64: gocloud's, which sends
// those of our own. What others put into a queue is as it is.
const encoded = "base64encoded"

// Messages are the messages of an event of SQS.
func Messages(e events.SQSEvent) []actor.Message {
	out := make([]actor.Message, len(e.Records))
	for i, r := range e.Records {
		m := actor.Message{ID: r.MessageId, Body: []byte(r.Body), Receipt: r.ReceiptHandle, Receives: 1}
		if _, ok := r.MessageAttributes[encoded]; ok {
			if b, err := base64.StdEncoding.DecodeString(r.Body); err == nil {
				m.Body = b
			} // else whoever reads the message says what is wrong with it
		}
		if n, err := strconv.Atoi(r.Attributes["ApproximateReceiveCount"]); err == nil {
			m.Receives = n
		}
		out[i] = m
	}
	return out
}

// Each is a handler that does one piece of work for every message of an event, one after another. The queue has
// the event again if one of them fails.
func Each(do func(ctx context.Context, body []byte) error) func(context.Context, events.SQSEvent) error {
	return func(ctx context.Context, e events.SQSEvent) error {
		for _, m := range Messages(e) {
			if err := do(ctx, m.Body); err != nil {
				return err
			}
		}
		return nil
	}
}
