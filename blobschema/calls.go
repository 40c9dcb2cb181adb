package blobschema

// Calls are billed calls of a cloud; see package ledger.
type Calls struct {
	QueueRequests int64 `json:"queue_requests" cbor:"1,keyasint,omitempty"`
	KVReadUnits   int64 `json:"kv_read_units" cbor:"2,keyasint,omitempty"`
	KVWriteUnits  int64 `json:"kv_write_units" cbor:"3,keyasint,omitempty"`
	BlobPuts      int64 `json:"blob_puts" cbor:"4,keyasint,omitempty"`
	BlobGets      int64 `json:"blob_gets" cbor:"5,keyasint,omitempty"`
	BlobPutBytes  int64 `json:"blob_put_bytes" cbor:"6,keyasint,omitempty"`
	BlobGetBytes  int64 `json:"blob_get_bytes" cbor:"7,keyasint,omitempty"`
	Functions     int64 `json:"function_calls" cbor:"8,keyasint,omitempty"`
	// FunctionMBMillis is the run time of functions in milliseconds times their memory in MB.
	FunctionMBMillis int64 `json:"function_mb_ms,omitempty" cbor:"9,keyasint,omitempty"`
}

// Add adds other calls.
func (c *Calls) Add(o Calls) { addFields(c, &o, 1) }

// Minus returns the calls made since an earlier count.
func (c Calls) Minus(o Calls) Calls {
	addFields(&c, &o, -1)
	return c
}

// Toward returns the calls between c and later ones: those of c if share is 0, the later ones if it is 1.
func (c Calls) Toward(later Calls, share float64) Calls {
	mix(&c, &later, share)
	return c
}
