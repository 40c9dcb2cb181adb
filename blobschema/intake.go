package blobschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Request is a message from outside on the intake queue, as JSON that can be written by
// hand:
//
//	{"recrawl": ["https://example.org/news"], "id": "cms-4711"}
type Request struct {
	Version int    `json:"version,omitempty"` // of this message: 0 or 1
	Crawl   string `json:"crawl,omitempty"`   // empty: the active crawl
	// ID makes a repeated request do nothing, for 15 days; empty: every message counts.
	ID      string   `json:"id,omitempty"`
	Recrawl []string `json:"recrawl,omitempty"` // URLs to ask for again, or for the first time
	Seeds   []string `json:"seeds,omitempty"`   // URLs to crawl from
}

// Bounds of a [Request].
const (
	MaxRequestBytes = 256 << 10 // of text put into the queue by others; what we encode has MaxMailBytes
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

// DecodeRequest decodes a request and checks its bounds, but not its URLs. A field
// that it does not know is an error: it is most likely a misspelt one.
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

// Requests is the record by which intake numbers its mail to the partitions, as
// partitions number theirs. It is changed by compare-and-set.
type Requests struct {
	Sent map[partition.ID]uint64 `json:"sent,omitempty"` // last number, by receiver
	// Outbox is the mail that is not known to be applied, oldest first.
	Outbox []RequestMail `json:"outbox,omitempty"`
	Dead   int64         `json:"dead,omitempty"` // messages, or URLs of them, put aside as unreadable
	Calls  Calls         `json:"calls,omitzero"` // of intake, as far as it wrote this record
}

// RequestMail is one mail of [Requests]. Object holds its URLs, as a [SeedBatch].
type RequestMail struct {
	To      partition.ID `json:"to"`
	Number  uint64       `json:"number"`
	Request uint64       `json:"request"` // see Mail.Request
	Object  string       `json:"object"`
	// Epoch is that of the map by which the URLs are To's.
	Epoch partition.Epoch `json:"epoch"`
}

// TickRecord is what ticks remember from one process to the next, in the table.
type TickRecord struct {
	Copied   map[partition.ID]uint64 `json:"copied,omitempty"` // commits whose host estimates are in the hosts table
	CopiedAt time.Time               `json:"copied_at,omitzero"`
	ResentAt time.Time               `json:"resent_at,omitzero"` // when unapplied mail was last looked for
	// Sweep are runs that commits have dropped, as candidates to be deleted.
	Sweep     []Dropped `json:"sweep,omitempty"`
	SweptAt   time.Time `json:"swept_at,omitzero"`
	PlannedAt time.Time `json:"planned_at,omitzero"` // when the loads of slots were last looked at
	// Topics are the periods of topics with a minimum, by name.
	Topics map[string]TopicPeriod `json:"topics,omitempty"`
	TickNotes
	// Idle is what a tick saw when it found that nothing is to do: while it holds there is
	// no need to look at the partitions.
	Idle  *Idle   `json:"idle,omitempty"`
	Calls Calls   `json:"calls,omitzero"` // of the coordinator runs that wrote this record
	Day   CallDay `json:"day,omitzero"`
}

// CallDay is the beginning of the period for which the coordinator limits function calls; zero: the crawl's beginning.
type CallDay struct {
	At     time.Time `json:"at"`
	Calls  int64     `json:"calls"`  // function calls of the crawl until then
	Orders uint64    `json:"orders"` // of the wish then
}

// TopicPeriod is a stretch of time in which a topic is to have its minimum of pages.
type TopicPeriod struct {
	Since time.Time `json:"since"`
	Pages int64     `json:"pages,omitempty"` // that it had before
}

// Dropped is a run that a commit has dropped, and how many sweeps have found it named nowhere.
type Dropped struct {
	Object  string `json:"object"`
	Unnamed int    `json:"unnamed,omitempty"`
}

// TickNotes are what one tick leaves to the next: in the record where each may run in
// another process, else in memory.
type TickNotes struct {
	Woken map[partition.ID]Waking `json:"woken,omitempty"` // wakes that no step has answered yet, as far as known
	// Quiet are the partitions' commits when nothing was left to do; nil if that was never so.
	Quiet map[partition.ID]uint64 `json:"quiet,omitempty"`
	// Indexing are the jobs that were sent for indexes that are behind. Fence is what they
	// were behind of.
	Indexing map[partition.ID]Waking `json:"indexing,omitempty"`
}

// Waking is a wake sent by a tick: for a partition of that fence, the so manieth.
type Waking struct {
	Fence uint64    `json:"fence"`
	At    time.Time `json:"at"`
	Times int       `json:"times"`
}

// Idle is all that can make an idle crawl go on, and how it was found.
type Idle struct {
	Finished bool   `json:"finished,omitempty"`
	Limited  bool   `json:"limited,omitempty"`
	Batches  int    `json:"batches"`  // of seeds
	Requests uint64 `json:"requests"` // mail made of requests
	Limit    int64  `json:"limit"`    // on pages
	Wish     uint64 `json:"wish"`
	Orders   uint64 `json:"orders"` // see Wish.Orders
	Map      uint64 `json:"map,omitempty"`
	Index    bool   `json:"index,omitempty"`
	Ranks    uint64 `json:"ranks,omitempty"` // the last rank job that is finished, of a crawl with an index
}

// Calls are calls as clouds bill them; see package ledger.
type Calls struct {
	QueueRequests int64 `json:"queue_requests"`
	KVReadUnits   int64 `json:"kv_read_units"`
	KVWriteUnits  int64 `json:"kv_write_units"`
	BlobPuts      int64 `json:"blob_puts"`
	BlobGets      int64 `json:"blob_gets"`
	BlobPutBytes  int64 `json:"blob_put_bytes"`
	BlobGetBytes  int64 `json:"blob_get_bytes"`
	Functions     int64 `json:"function_calls"`
	// FunctionMBMillis is the time that functions took, in milliseconds, each times its
	// memory in MB.
	FunctionMBMillis int64 `json:"function_mb_ms,omitempty"`
}

// Add adds other calls.
func (c *Calls) Add(o Calls) {
	c.QueueRequests += o.QueueRequests
	c.KVReadUnits += o.KVReadUnits
	c.KVWriteUnits += o.KVWriteUnits
	c.BlobPuts += o.BlobPuts
	c.BlobGets += o.BlobGets
	c.BlobPutBytes += o.BlobPutBytes
	c.BlobGetBytes += o.BlobGetBytes
	c.Functions += o.Functions
	c.FunctionMBMillis += o.FunctionMBMillis
}

// Minus returns the calls made since an earlier count.
func (c Calls) Minus(o Calls) Calls {
	return Calls{
		c.QueueRequests - o.QueueRequests, c.KVReadUnits - o.KVReadUnits, c.KVWriteUnits - o.KVWriteUnits,
		c.BlobPuts - o.BlobPuts, c.BlobGets - o.BlobGets, c.BlobPutBytes - o.BlobPutBytes, c.BlobGetBytes - o.BlobGetBytes,
		c.Functions - o.Functions, c.FunctionMBMillis - o.FunctionMBMillis,
	}
}
