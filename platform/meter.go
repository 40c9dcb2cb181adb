package platform

// Meter counts every call that a cloud bills, including attempts that failed. Methods are safe
// for concurrent use.
type Meter interface {
	// QueueRequest counts one call of a queue; bytes is the size of its messages.
	QueueRequest(op string, bytes int)
	KVRead(bytes int)  // one strongly consistent read of a record of that size
	KVWrite(bytes int) // one write
	BlobPut(bytes int) // one put of an object, or of a part of one
	BlobGet(bytes int) // one get, head or list
}

// NoMeter counts nothing.
type NoMeter struct{}

func (NoMeter) QueueRequest(string, int) {}
func (NoMeter) KVRead(int)               {}
func (NoMeter) KVWrite(int)              {}
func (NoMeter) BlobPut(int)              {}
func (NoMeter) BlobGet(int)              {}
