package blobschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Request is a message of an operator on the intake queue. It is JSON, so that people can write
// it by hand:
//
//	{"recrawl": ["https://example.org/news"], "id": "cms-4711"}
type Request struct {
	Version int    `json:"version,omitempty"` // of this message: 0 or 1
	Crawl   string `json:"crawl,omitempty"`   // empty: the active crawl
	// ID makes a repeated request have no effect for 15 days; empty: every message counts.
	ID      string   `json:"id,omitempty"`
	Recrawl []string `json:"recrawl,omitempty"` // URLs to fetch now, again or for the first time
	Seeds   []string `json:"seeds,omitempty"`   // URLs to crawl from
}

// Bounds of a [Request].
const (
	MaxRequestBytes = 256 << 10 // of text that others put into the queue; EncodeRequest is bound by MaxMailBytes
	MaxRequestURLs  = 10_000
	MaxRequestID    = 200 // bytes
)

// ErrRequest is wrapped by the errors of DecodeRequest.
var ErrRequest = errors.New("unfit request")

// EncodeRequest encodes a request.
func EncodeRequest(r Request) ([]byte, error) {
	b, err := json.Marshal(r)
	if err == nil {
		_, err = DecodeRequest(b)
	}
	if err == nil && len(b) > MaxMailBytes {
		err = fmt.Errorf("%w: %d bytes are above the bound of %d", ErrRequest, len(b), MaxMailBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	return b, nil
}

// Split divides a request into messages that fit the queue; each has the fields of r and some of its URLs to recrawl.
func (r Request) Split() (out []Request) {
	const rest = 6*MaxRequestID + 1<<10 // most bytes of the other fields
	size := 0
	urls := r.Recrawl
	for _, u := range urls {
		text, _ := json.Marshal(u) // a string: it cannot fail
		need := len(text) + 1
		if n := len(out); n == 0 || len(out[n-1].Recrawl) == MaxRequestURLs || size+need > MaxMailBytes-rest {
			r.Recrawl = nil
			out = append(out, r)
			size = 0
		}
		m := &out[len(out)-1]
		m.Recrawl = append(m.Recrawl, u)
		size += need
	}
	return out
}

// DecodeRequest decodes a request and checks its bounds, but not its URLs. An unknown field
// is an error: it is most likely misspelt.
func DecodeRequest(b []byte) (Request, error) {
	var r Request
	unfit := func(format string, args ...any) (Request, error) {
		return Request{}, fmt.Errorf("%w: "+format, append([]any{ErrRequest}, args...)...)
	}
	if len(b) > MaxRequestBytes {
		return unfit("%d bytes are above the bound of %d", len(b), MaxRequestBytes)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return unfit("%v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return unfit("there is more than one JSON value")
	}
	switch n := len(r.Recrawl) + len(r.Seeds); {
	case r.Version > 1:
		return unfit("version %d is not known", r.Version)
	case n == 0:
		return unfit(`it asks for nothing: give "recrawl" or "seeds" a list of URLs`)
	case n > MaxRequestURLs:
		return unfit("%d URLs are above the bound of %d", n, MaxRequestURLs)
	case len(r.ID) > MaxRequestID:
		return unfit("the id has %d bytes, more than %d", len(r.ID), MaxRequestID)
	}
	if r.Crawl != "" {
		if err := naming.CheckCrawlID(r.Crawl); err != nil {
			return unfit("%v", err)
		}
	}
	return r, nil
}

// Requests is the record in which intake numbers its mail to the partitions, as
// partitions number theirs. Intake changes it by compare-and-set.
type Requests struct {
	Sent map[partition.ID]uint64 `json:"sent,omitempty"` // last number, by receiver
	// Outbox is the mail that is not known to be applied, oldest first.
	Outbox []RequestMail `json:"outbox,omitempty"`
	Dead   int64         `json:"dead,omitempty"` // unreadable messages and URLs, stored as dead letters
	Calls  Calls         `json:"calls,omitzero"` // of the intake runs that wrote this record
}

// RequestMail is one mail of [Requests]. Object holds its URLs, as a [SeedBatch].
type RequestMail struct {
	To      partition.ID `json:"to"`
	Number  uint64       `json:"number"`
	Request uint64       `json:"request"` // see Mail.Request
	Object  string       `json:"object"`
	// Epoch is the epoch of the map that assigns the URLs to To.
	Epoch partition.Epoch `json:"epoch"`
}
