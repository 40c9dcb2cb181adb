package wiretap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
)

// units returns the billed units of a request that its service worked on. S3 bills requests
// at several prices, SQS each started 64 KB of the messages in a request or reply,
// DynamoDB read units of 4 KB, half as many if the read is not consistent, and write
// units of 1 KB. A put is billed by the item that it replaces if that is larger: see replaced.
func units(op Op, request []byte, status int, reply []byte) float64 {
	switch op.Service {
	case "sqs":
		return sqsUnits(op.Action, request, reply)
	case "dynamodb":
		return dynamoUnits(op.Action, request, status, reply)
	}
	return 1
}

// replaced holds the write units of the last put through the tap, by table and key. The key is
// the attribute called "key".
type replaced map[string]float64

// put returns the billed units of a put that was carried out, given the units of its own item.
func (p replaced) put(request []byte, units float64) float64 {
	var in struct {
		TableName string
		Item      struct {
			Key json.RawMessage `json:"key"`
		}
	}
	if json.Unmarshal(request, &in) != nil || in.Item.Key == nil {
		return units
	}
	k := in.TableName + " " + string(in.Item.Key)
	billed := max(units, p[k])
	p[k] = units
	return billed
}

// sqsMessage is a message in any request or reply.
type sqsMessage struct {
	MessageBody       string // when it is sent
	Body              string // when it is received
	MessageAttributes map[string]struct{ DataType, StringValue, BinaryValue string }
}

func (m sqsMessage) size() int {
	n := len(m.MessageBody) + len(m.Body)
	for name, a := range m.MessageAttributes {
		n += len(name) + len(a.DataType) + len(a.StringValue) + base64.StdEncoding.DecodedLen(len(a.BinaryValue))
	}
	return n
}

func sqsUnits(action string, request, reply []byte) float64 {
	var messages struct {
		sqsMessage
		Entries, Messages []sqsMessage
	}
	text := request
	if action == "ReceiveMessage" {
		text = reply
	}
	if json.Unmarshal(text, &messages) != nil {
		return 1 // the query protocol, or nonsense
	}
	n := messages.size()
	for _, m := range append(messages.Entries, messages.Messages...) {
		n += m.size()
	}
	return started(n, 64<<10)
}

// value is an attribute's value in DynamoDB's JSON: an object whose only key is the type.
type value map[string]json.RawMessage

type item map[string]value

func dynamoUnits(action string, request []byte, status int, reply []byte) float64 {
	if status >= 300 && !bytes.Contains(reply, []byte("ConditionalCheckFailed")) {
		return 0
	}
	switch action {
	case "PutItem":
		var in struct{ Item item }
		if json.Unmarshal(request, &in) != nil {
			return 0
		}
		return started(in.Item.size(), 1<<10)
	case "BatchGetItem":
		return batchGetUnits(request, reply)
	}
	return 0 // operations on the table are free; the crawler uses no others on items
}

func batchGetUnits(request, reply []byte) float64 {
	var in struct {
		RequestItems map[string]struct {
			Keys           []item
			ConsistentRead bool
		}
	}
	var out struct {
		Responses       map[string][]item
		UnprocessedKeys map[string]struct{ Keys []item }
	}
	if json.Unmarshal(request, &in) != nil || json.Unmarshal(reply, &out) != nil {
		return 0
	}
	sum := 0.0
	for table, asked := range in.RequestItems {
		found := out.Responses[table]
		missing := len(asked.Keys) - len(found) - len(out.UnprocessedKeys[table].Keys)
		n := float64(max(0, missing)) // an item that is not there costs a unit
		for _, it := range found {
			n += started(it.size(), 4<<10)
		}
		if !asked.ConsistentRead {
			n /= 2
		}
		sum += n
	}
	return sum
}

// size returns the bytes of an item (DynamoDB developer guide, "Item sizes and formats").
func (it item) size() int {
	n := 0
	for name, v := range it {
		n += len(name) + v.size()
	}
	return n
}

// size returns the bytes of a value. The items of a crawl have texts and nulls only.
func (v value) size() int {
	if s, ok := v["S"]; ok {
		return len(text(s))
	}
	return len(v)
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// started returns how many units of a size n bytes begin, at least one.
func started(n, size int) float64 { return float64(max(1, (n+size-1)/size)) }
