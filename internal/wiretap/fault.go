package wiretap

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// Fault is the disturbance of a request.
type Fault int

const (
	None     Fault = iota // the request is passed on
	Throttle              // the service refuses it because of too many requests; nothing is carried out
	Fail                  // the service reports an internal error; nothing is carried out
	Lose                  // it is carried out, but the connection is closed instead of a reply
	// Partial carries out the first half of a batch. DynamoDB's BatchGetItem returns the other
	// keys as unprocessed, SQS's batches return the other entries as failed. Other requests
	// are passed on.
	Partial
)

// Rule chooses the fault of each request. It is called concurrently.
type Rule func(Op) Fault

// refuse answers in place of the service, with an error that its SDK understands.
func (x *exchange) refuse() {
	status, code := http.StatusInternalServerError, "InternalServerError"
	throttled := x.fault == Throttle
	h := x.Header()
	switch x.op.Service {
	case "s3":
		code = "InternalError"
		if throttled {
			status, code = http.StatusServiceUnavailable, "SlowDown"
		}
		h.Set("Content-Type", "application/xml")
		x.WriteHeader(status)
		fmt.Fprintf(x, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>%s</Code><Message>by the wiretap</Message></Error>", code)
		return
	case "dynamodb":
		if throttled {
			status, code = http.StatusBadRequest, "ProvisionedThroughputExceededException"
		}
		code = "com.amazonaws.dynamodb.v20120810#" + code
	case "sqs":
		if throttled {
			status, code = http.StatusBadRequest, "RequestThrottled"
			h.Set("X-Amzn-Query-Error", "RequestThrottled;Sender")
		}
		code = "com.amazonaws.sqs#" + code
	default:
		if throttled {
			status, code = http.StatusBadRequest, "ThrottlingException"
		}
	}
	h.Set("Content-Type", "application/x-amz-json-1.0")
	x.WriteHeader(status)
	fmt.Fprintf(x, `{"__type":%q,"message":"by the wiretap"}`, code)
}

// servePartial carries out the first half of a batch and reports the rest as left over,
// as the service does when it is busy.
func (t *Tap) servePartial(x *exchange, r *http.Request) {
	var some, rest []byte
	switch {
	case x.op == Op{"dynamodb", "BatchGetItem"}:
		some, rest = splitKeys(x.body)
	case x.op.Service == "sqs":
		some, rest = splitEntries(x.body)
	}
	if rest == nil {
		t.proxy.ServeHTTP(x, r)
		return
	}
	x.body = some // the part that is billed
	reply := httptest.NewRecorder()
	if some == nil {
		reply.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		_, _ = reply.WriteString(`{}`) // into memory
	} else {
		setBody(r, some)
		r.Header.Set("Content-Length", strconv.Itoa(len(some)))
		t.proxy.ServeHTTP(reply, r)
	}
	body := reply.Body.Bytes()
	if reply.Code == http.StatusOK {
		body = merge(body, rest)
	}
	maps.Copy(x.Header(), reply.Header())
	for _, name := range []string{"Content-Length", "X-Amz-Crc32"} { // they describe the unchanged body
		x.Header().Del(name)
	}
	x.WriteHeader(reply.Code)
	x.Write(body) //nolint:errcheck // the client may be gone
}

// splitKeys divides a BatchGetItem. It returns a request for the first half of each table's
// keys (nil without keys), and the addition to its reply (nil if no key is left over).
func splitKeys(body []byte) (some, rest []byte) {
	type table map[string]json.RawMessage // Keys, and how to read them
	var in map[string]json.RawMessage
	var asked map[string]table
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(in["RequestItems"], &asked) != nil {
		return nil, nil
	}
	now, later := map[string]table{}, map[string]table{}
	for name, t := range asked {
		var keys []json.RawMessage
		if json.Unmarshal(t["Keys"], &keys) != nil {
			return nil, nil
		}
		n := len(keys) / 2
		with := func(keys []json.RawMessage) table {
			c := maps.Clone(t)
			c["Keys"] = encode(keys)
			return c
		}
		if n > 0 {
			now[name] = with(keys[:n])
		}
		if n < len(keys) {
			later[name] = with(keys[n:])
		}
	}
	if len(later) == 0 {
		return nil, nil
	}
	rest = encode(map[string]any{"UnprocessedKeys": later})
	if len(now) == 0 {
		return nil, encode(map[string]any{"UnprocessedKeys": later, "Responses": map[string]any{}})
	}
	in["RequestItems"] = encode(now)
	return encode(in), rest
}

// splitEntries does for the batches of SQS what splitKeys does for BatchGetItem.
func splitEntries(body []byte) (some, rest []byte) {
	var in map[string]json.RawMessage
	var entries []map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil || json.Unmarshal(in["Entries"], &entries) != nil || len(entries) == 0 {
		return nil, nil
	}
	keep := len(entries) / 2
	var failed []map[string]any
	for _, e := range entries[keep:] {
		failed = append(failed, map[string]any{"Id": e["Id"], "Code": "InternalError", "Message": "by the wiretap", "SenderFault": false})
	}
	rest = encode(map[string]any{"Failed": failed})
	if keep == 0 {
		return nil, rest
	}
	in["Entries"] = encode(entries[:keep])
	return encode(in), rest
}

// merge adds the members of one JSON object to another, and replaces those with the same name.
func merge(object, more []byte) []byte {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(object, &a) != nil || json.Unmarshal(more, &b) != nil {
		return object
	}
	if a == nil { // the object is null
		return more
	}
	maps.Copy(a, b)
	return encode(a)
}

// encode encodes values that were decoded from JSON, which cannot fail.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
