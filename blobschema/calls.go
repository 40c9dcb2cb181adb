package blobschema

// Calls are billed calls of a cloud; see package ledger.
type Calls struct {
	QueueRequests int64 `json:"queue_requests"`
	KVReadUnits   int64 `json:"kv_read_units"`
	KVWriteUnits  int64 `json:"kv_write_units"`
	BlobPuts      int64 `json:"blob_puts"`
	BlobGets      int64 `json:"blob_gets"`
	BlobPutBytes  int64 `json:"blob_put_bytes"`
	BlobGetBytes  int64 `json:"blob_get_bytes"`
	Functions     int64 `json:"function_calls"`
	// FunctionMBMillis is the run time of functions in milliseconds times their memory in MB.
	FunctionMBMillis int64 `json:"function_mb_ms,omitempty"`
}

// Add adds other calls.
func (c *Calls) Add(o Calls) { addFields(c, &o, 1) }

// Minus returns the calls made since an earlier count.
func (c Calls) Minus(o Calls) Calls {
	addFields(&c, &o, -1)
	return c
}
