package aws

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync/atomic"

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

// wire is the layer that all calls of all clients go through: it meters each try, and
// explains the error that a call ends with. A try counts if its request went out, unless
// the answer says that it was not served (5xx, throttled): those are not billed.
type wire struct {
	location Location
	meter    platform.Meter
}

type inputKey struct{}

// add puts the layer into the stack of a call: around it, and around each try.
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
		answer = nil // what stands for none
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

// unserved says whether an answer means that the request was not carried out.
func unserved(status int, err error) bool {
	var api smithy.APIError
	if errors.As(err, &api) {
		if _, ok := retry.DefaultThrottleErrorCodes[api.ErrorCode()]; ok {
			return true
		}
	}
	return status >= http.StatusInternalServerError || status == http.StatusTooManyRequests
}

// try is one try of a call: what was asked, and what came back.
type try struct {
	request       *http.Request
	answer        *http.Response // nil if none came
	input, result any
	err           error
}

// Operations of queues, as the meter is told.
const (
	opSend    = "send"
	opReceive = "receive"
	opAck     = "ack"
	opNack    = "nack"
	opOther   = "other"
)

// queue is what a request to SQS is billed by: the bytes of its messages, sent or
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
	n := 0
	if body != nil {
		n = len(*body)
	}
	for name, a := range attributes {
		n += len(name) + len(a.BinaryValue)
		if a.DataType != nil {
			n += len(*a.DataType)
		}
		if a.StringValue != nil {
			n += len(*a.StringValue)
		}
	}
	return n
}

// Units of DynamoDB in bytes, for the meter.
const (
	readUnit  = 4 << 10
	writeUnit = 1 << 10
)

// table tells what a request to DynamoDB consumed, by its own answer. A condition that
// does not hold is billed like the write, and what has lost its answer, or a part of it,
// may have been: those answers name no units.
func (t *try) table(m platform.Meter) {
	if t.err == nil {
		switch r := t.result.(type) {
		case *dynamodb.PutItemOutput:
			m.KVWrite(capacity(writeUnit, r.ConsumedCapacity))
		case *dynamodb.UpdateItemOutput:
			m.KVWrite(capacity(writeUnit, r.ConsumedCapacity))
		case *dynamodb.DeleteItemOutput:
			m.KVWrite(capacity(writeUnit, r.ConsumedCapacity))
		case *dynamodb.GetItemOutput:
			m.KVRead(capacity(readUnit, r.ConsumedCapacity))
		case *dynamodb.QueryOutput:
			m.KVRead(capacity(readUnit, r.ConsumedCapacity))
		case *dynamodb.ScanOutput:
			m.KVRead(capacity(readUnit, r.ConsumedCapacity))
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
	case *dynamodb.UpdateItemInput, *dynamodb.DeleteItemInput:
		m.KVWrite(1)
	case *dynamodb.BatchGetItemInput:
		m.KVRead(readUnit * countKeys(p.RequestItems))
	case *dynamodb.GetItemInput, *dynamodb.QueryInput, *dynamodb.ScanInput:
		m.KVRead(1)
	}
}

// batch is what a batch of reads consumed, in bytes of whole units: what its answer says,
// or what follows from the answer by DynamoDB's rules if that is more. DynamoDB Local
// forgets the unit of a record that is missing.
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

// capacity is consumed capacity in bytes, which the meter makes the same units of.
func capacity(unit int, c *dynamodbtypes.ConsumedCapacity) int {
	if c == nil || c.CapacityUnits == nil {
		return unit
	}
	return int(math.Ceil(*c.CapacityUnits)) * unit
}

// bucket tells what a request to S3 is: what writes costs as a put, what deletes
// nothing.
func (t *try) bucket(m platform.Meter) {
	if t.request == nil {
		return
	}
	switch t.request.Method {
	case http.MethodPut, http.MethodPost:
		n := t.request.ContentLength
		if d, err := strconv.ParseInt(t.request.Header.Get("X-Amz-Decoded-Content-Length"), 10, 64); err == nil {
			n = d // the rest is what its checksum takes
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
