package aws

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamodbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/orbweaver/orbweaver/platform"
)

// wire is the layer that all calls of all clients go through. It meters each attempt and explains the error of
// a call. An attempt counts if its request was sent, unless the answer says that it was not served (5xx,
// throttled), because AWS does not bill those.
type wire struct {
	location Location
	meter    platform.Meter
}

type inputKey struct{}

// add puts the layer into the stack of a call: around the call, and around each attempt.
func (w *wire) add(s *middleware.Stack) error {
	if err := s.Initialize.Add(middleware.InitializeMiddlewareFunc("orbweaver:call", w.call), middleware.Before); err != nil {
		return err
	}
	return s.Deserialize.Add(middleware.DeserializeMiddlewareFunc("orbweaver:try", w.try), middleware.Before)
}

func (w *wire) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, md, err := next.HandleInitialize(middleware.WithStackValue(ctx, inputKey{}, in.Parameters), in)
	if err != nil {
		err = w.explain(awsmiddleware.GetServiceID(ctx), in.Parameters, err)
	}
	return out, md, err
}

func (w *wire) try(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	out, md, err := next.HandleDeserialize(ctx, in)
	answer, _ := out.RawResponse.(*smithyhttp.Response)
	if answer != nil && answer.StatusCode == 0 {
		answer = nil // there was none
	}
	if answer == nil && !sent.Load() || answer != nil && unserved(answer.StatusCode, err) {
		return out, md, err
	}
	t := try{input: middleware.GetStackValue(ctx, inputKey{}), result: out.Result, err: err}
	if answer != nil {
		t.answer = answer.Response
	}
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		t.request = r.Request
	}
	switch awsmiddleware.GetServiceID(ctx) {
	case sqs.ServiceID:
		w.meter.QueueRequest(t.queue())
	case dynamodb.ServiceID:
		t.table(w.meter)
	case s3.ServiceID:
		t.bucket(w.meter)
	}
	return out, md, err
}

// unserved reports whether an answer means that the request was not carried out.
func unserved(status int, err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		if _, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; ok {
			return true
		}
	}
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

// try is one attempt of a call: the request and its answer.
type try struct {
	request       *http.Request
	answer        *http.Response // nil if none came
	input, result any
	err           error
}

// Operations of queues for the meter.
const (
	opSend    = "send"
	opReceive = "receive"
	opAck     = "ack"
	opNack    = "nack"
	opOther   = "other"
)

// queue returns the operation and the billed size of a request to SQS: the bytes of the messages sent or
// received, with their attributes.
func (t *try) queue() (op string, bytes int) {
	switch p := t.input.(type) {
	case *sqs.SendMessageBatchInput:
		for _, e := range p.Entries {
			bytes += messageSize(e.MessageBody, e.MessageAttributes)
		}
		return opSend, bytes
	case *sqs.ReceiveMessageInput:
		if r, ok := t.result.(*sqs.ReceiveMessageOutput); ok && t.err == nil {
			for _, m := range r.Messages {
				bytes += messageSize(m.Body, m.MessageAttributes)
			}
		}
		return opReceive, bytes
	case *sqs.DeleteMessageBatchInput:
		return opAck, 0
	case *sqs.ChangeMessageVisibilityBatchInput:
		return opNack, 0
	}
	return opOther, 0
}

func messageSize(body *string, attributes map[string]sqstypes.MessageAttributeValue) int {
	n := len(aws.ToString(body))
	for name, a := range attributes {
		n += len(name) + len(a.BinaryValue) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue))
	}
	return n
}

// Units of DynamoDB in bytes, for the meter.
const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
)

// table meters the capacity that a request to DynamoDB consumed, as its answer says. If a condition failed, the
// request is billed like the write; if its answer was lost, it may have been billed. In both cases no answer
// names the units, so table computes them from the request.
func (t *try) table(m platform.Meter) {
	if t.err == nil {
		switch r := t.result.(type) {
		case *dynamodb.PutItemOutput:
			m.KVWrite(capacity(writeUnit, r.ConsumedCapacity))
		case *dynamodb.BatchGetItemOutput:
			m.KVRead(t.batch(r))
		}
		return
	}
	var condition *dynamodbtypes.ConditionalCheckFailedException
	if t.answer != nil && t.answer.StatusCode >= http.StatusBadRequest && !errors.As(t.err, &condition) {
		return
	}
	switch p := t.input.(type) {
	case *dynamodb.PutItemInput:
		m.KVWrite(itemSize(p.Item))
	case *dynamodb.BatchGetItemInput:
		m.KVRead(readUnit * countKeys(p.RequestItems))
	}
}

// batch returns the capacity that a batch of reads consumed, in bytes of whole units: the figure of its answer,
// or that of DynamoDB's rules if it is larger. DynamoDB Local does not count the unit of a missing record.
func (t *try) batch(r *dynamodb.BatchGetItemOutput) int {
	said := 0
	for _, c := range r.ConsumedCapacity {
		said += capacity(readUnit, &c)
	}
	rule := 0
	if in, ok := t.input.(*dynamodb.BatchGetItemInput); ok {
		missing := countKeys(in.RequestItems) - countKeys(r.UnprocessedKeys)
		for _, items := range r.Responses {
			for _, item := range items {
				rule += (itemSize(item) + readUnit - 1) / readUnit * readUnit
				missing--
			}
		}
		rule += max(0, missing) * readUnit
	}
	return max(said, rule)
}

// capacity returns consumed capacity in bytes, from which the meter computes the same units.
func capacity(unit int, c *dynamodbtypes.ConsumedCapacity) int {
	if c == nil || c.CapacityUnits == nil {
		return unit
	}
	return int(math.Ceil(*c.CapacityUnits)) * unit
}

// bucket meters a request to S3: a write is billed as a put, a delete is free.
func (t *try) bucket(m platform.Meter) {
	if t.request == nil {
		return
	}
	switch t.request.Method {
	case http.MethodPut, http.MethodPost:
		n := t.request.ContentLength
		if d, err := strconv.ParseInt(t.request.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err == nil {
			n = d // without the checksum
		}
		m.BlobPut(int(max(n, 0)))
	case http.MethodGet:
		n := int64(0)
		if t.answer != nil {
			n = max(t.answer.ContentLength, 0)
		}
		m.BlobGet(int(n))
	case http.MethodHead:
		m.BlobGet(0)
	}
}
