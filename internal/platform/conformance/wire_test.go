package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

// tap stands in front of a service and counts from what is on the wire what AWS would
// bill. It knows nothing of the platform: the two must come to the same sum.
type tap struct {
	t *testing.T

	mu     sync.Mutex
	counts ledger.Counts
	calls  map[string]int
}

// listen puts the tap in front of the service at an address, and returns its own.
func (p *tap) listen(address string) string {
	p.t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, err := io.ReadAll(r.Body)
		if err != nil {
			return // never asked
		}
		r.Body = io.NopCloser(bytes.NewReader(asked))
		answer := &recorder{ResponseWriter: w}
		proxy.ServeHTTP(answer, r)
		p.count(r, asked, answer)
	}))
	p.t.Cleanup(server.Close)
	return server.URL
}

type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	r.body.Write(b)
	return r.ResponseWriter.Write(b)
}

func (p *tap) count(r *http.Request, asked []byte, answer *recorder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	service, op, ok := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	switch c := &p.counts; {
	case !ok:
		op = r.Method
		switch r.Method {
		case http.MethodPut, http.MethodPost:
			c.BlobPuts++
			c.BlobPutBytes += int64(len(asked))
		case http.MethodGet, http.MethodHead:
			c.BlobGets++
			c.BlobGetBytes += int64(answer.body.Len())
		}
	case service == "AmazonSQS":
		size := 0
		switch op {
		case "SendMessageBatch":
			size = messages(p.t, asked)
		case "ReceiveMessage":
			size = messages(p.t, answer.body.Bytes())
		}
		c.QueueRequests += max(1, int64(size+65535)/65536)
	case op == "BatchGetItem":
		c.KVReadUnits += consumed(p.t, answer.body.Bytes())
	case op == "PutItem" && answer.status == http.StatusOK:
		c.KVWriteUnits += consumed(p.t, answer.body.Bytes())
	case op == "PutItem" && strings.Contains(answer.body.String(), "ConditionalCheckFailed"):
		var in struct{ Item map[string]map[string]string }
		if err := json.Unmarshal(asked, &in); err != nil {
			p.t.Error(err)
		}
		size := 0
		for name, v := range in.Item {
			size += len(name) + len(v["S"])
		}
		c.KVWriteUnits += max(1, int64(size+1023)/1024)
	}
	p.calls[op]++
}

// messages is the size of all messages in a request or an answer: bodies and attributes.
func messages(t *testing.T, b []byte) (size int) {
	type message struct {
		MessageBody, Body string
		MessageAttributes map[string]struct{ DataType, StringValue string }
	}
	var in struct{ Entries, Messages []message }
	if len(b) == 0 {
		return 0 // the client went away before the answer
	}
	if err := json.Unmarshal(b, &in); err != nil {
		t.Error(err)
	}
	for _, m := range append(in.Entries, in.Messages...) {
		size += len(m.MessageBody) + len(m.Body)
		for name, a := range m.MessageAttributes {
			size += len(name) + len(a.DataType) + len(a.StringValue)
		}
	}
	return size
}

// consumed is the sum of what an answer of DynamoDB says it consumed.
func consumed(t *testing.T, b []byte) int64 {
	type capacity struct{ CapacityUnits float64 }
	var one struct{ ConsumedCapacity capacity }
	if json.Unmarshal(b, &one) == nil {
		return int64(one.ConsumedCapacity.CapacityUnits)
	}
	var many struct{ ConsumedCapacity []capacity }
	if err := json.Unmarshal(b, &many); err != nil {
		t.Error(err)
	}
	sum := 0.0
	for _, c := range many.ConsumedCapacity {
		sum += c.CapacityUnits
	}
	return int64(sum)
}
