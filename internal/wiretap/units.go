package wiretap

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// units are what AWS bills for a request that its service worked on. S3 bills requests
// of several prices, SQS each started 64 KB of the messages in a request or reply,
// DynamoDB read units of 4 KB, half as many if the read need not be consistent, and write
// units of 1 KB. What a put replaces counts there too, if it is larger: see replaced.
func units(op Op, request []byte, status int, reply []byte) float64 {
	switch op.Service {
	case "sqs":
		return sqsUnits(op.Action, request, reply)
	case "dynamodb":
		return dynamoUnits(op.Action, request, status, reply)
	}
	return 1
}

// replaced knows the write units of what was put last, by table and key, as far as it went through
// a tap. The key is the attribute called "key".
type replaced map[string]float64

// put returns the units that a put is billed for which was carried out, and by itself has some.
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

// value is an attribute's value, as DynamoDB writes it: an object with its type as the
// only key.
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
		return started(in.Item.size(0), 1<<10)
	case "UpdateItem", "DeleteItem":
		return 1 // at least: the item is not on the wire
	case "BatchWriteItem":
		var in struct {
			RequestItems map[string][]struct {
				PutRequest    struct{ Item item }
				DeleteRequest json.RawMessage
			}
		}
		if json.Unmarshal(request, &in) != nil {
			return 0
		}
		sum := 0.0
		for _, list := range in.RequestItems {
			for _, w := range list {
				sum += started(w.PutRequest.Item.size(0), 1<<10)
			}
		}
		return sum
	case "GetItem":
		var in struct{ ConsistentRead bool }
		var out struct{ Item item }
		if json.Unmarshal(request, &in) != nil || json.Unmarshal(reply, &out) != nil {
			return 0
		}
		return read(started(out.Item.size(0), 4<<10), in.ConsistentRead)
	case "BatchGetItem":
		return batchGetUnits(request, reply)
	}
	return 0 // of the table: free. Queries and transactions are not used
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
			n += started(it.size(0), 4<<10)
		}
		sum += read(n, asked.ConsistentRead)
	}
	return sum
}

func read(units float64, consistent bool) float64 {
	if consistent {
		return units
	}
	return units / 2
}

// maxNesting is what DynamoDB allows of lists and maps within each other.
const maxNesting = 32

// size is that of an item or a map, in bytes (DynamoDB developer guide, "Item sizes and
// formats").
func (it item) size(depth int) int {
	n := 0
	for name, v := range it {
		n += len(name) + v.size(depth+1)
	}
	return n
}

func (v value) size(depth int) int {
	if depth > maxNesting {
		return 0
	}
	for kind, raw := range v {
		switch kind {
		case "S":
			return len(text(raw))
		case "N":
			return numberSize(text(raw))
		case "B":
			b, err := base64.StdEncoding.DecodeString(text(raw))
			if err != nil {
				return 0
			}
			return len(b)
		case "BOOL", "NULL":
			return 1
		case "M":
			var m item
			if json.Unmarshal(raw, &m) != nil {
				return 0
			}
			return 3 + len(m) + m.size(depth)
		case "L":
			var l []value
			if json.Unmarshal(raw, &l) != nil {
				return 0
			}
			n := 3 + len(l)
			for _, e := range l {
				n += e.size(depth + 1)
			}
			return n
		case "SS", "NS", "BS":
			var set []json.RawMessage
			if json.Unmarshal(raw, &set) != nil {
				return 0
			}
			n := 0
			for _, e := range set {
				n += value{kind[:1]: e}.size(depth + 1)
			}
			return n
		}
	}
	return 0
}

// numberSize is about a byte for two significant digits, one more, and one for a minus.
func numberSize(n string) int {
	digits := strings.TrimPrefix(n, "-")
	if e := strings.IndexAny(digits, "eE"); e >= 0 {
		digits = digits[:e]
	}
	size := (len(strings.Trim(strings.Replace(digits, ".", "", 1), "0"))+1)/2 + 1
	if strings.HasPrefix(n, "-") {
		size++
	}
	return size
}

func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// started is how many units of a size n bytes begin, at least one.
func started(n, size int) float64 { return float64(max(1, (n+size-1)/size)) }
