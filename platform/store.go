package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"gocloud.dev/blob"
	"gocloud.dev/docstore"
	"gocloud.dev/gcerrors"
)

// Errors that callers tell apart.
var (
	ErrConflict = errors.New("the record was changed by another")
	ErrNotFound = errors.New("no such object")
	// ErrStopped matches errors of a driver after which no later write can succeed.
	ErrStopped = errors.New("the platform takes no more writes")
)

// KeyField is the name of the key in a [Document].
const KeyField = "key"

// Document is a record in the table: JSON text under a key.
type Document struct {
	Key              string `docstore:"key"`
	Value            string `docstore:"value"`
	DocstoreRevision any
}

// Record is the result of reading a key. Found is false if the table has no such record.
type Record struct {
	Value    []byte
	Revision Revision
	Found    bool
}

// Revision identifies one state of a record.
type Revision any

// ReadRecords reads records in the order of keys, each key once even if it is repeated.
func (p *Platform) ReadRecords(ctx context.Context, keys []string) ([]Record, error) {
	docs := make([]Document, 0, len(keys))   // with room for all, because the actions keep their addresses
	place := make(map[string]int, len(keys)) // in docs; gocloud refuses a list with a repeated key
	list := p.Table.Actions()
	for _, k := range keys {
		if _, ok := place[k]; !ok {
			place[k] = len(docs)
			docs = append(docs, Document{Key: k})
			list.Get(&docs[len(docs)-1])
		}
	}
	absent := map[int]bool{}
	if err := list.Do(ctx); err != nil {
		var errs docstore.ActionListError
		if !errors.As(err, &errs) {
			return nil, err
		}
		for _, e := range errs {
			if gcerrors.Code(e.Err) != gcerrors.NotFound {
				return nil, e.Err
			}
			absent[e.Index] = true
		}
	}
	recs := make([]Record, len(keys))
	for i, k := range keys {
		if at := place[k]; !absent[at] {
			if docs[at].DocstoreRevision == nil { // gocloud's drivers do not notice a document that an answer lacks
				return nil, fmt.Errorf("the table's answer leaves out record %s", k)
			}
			recs[i] = Record{Found: true, Value: []byte(docs[at].Value), Revision: docs[at].DocstoreRevision}
		}
	}
	return recs, nil
}

// WriteRecord creates a record if revision is nil, and otherwise replaces the one that has this
// revision. It returns the new revision. The error is [ErrConflict] if the record exists, is gone,
// or has another revision. After any other error the write may have happened or not.
func (p *Platform) WriteRecord(ctx context.Context, key string, value []byte, revision Revision) (Revision, error) {
	doc := Document{Key: key, Value: string(value), DocstoreRevision: revision}
	var err error
	if revision == nil {
		err = p.Table.Create(ctx, &doc)
	} else {
		err = p.Table.Replace(ctx, &doc)
	}
	switch gcerrors.Code(err) {
	case gcerrors.OK:
		return doc.DocstoreRevision, nil
	case gcerrors.AlreadyExists, gcerrors.FailedPrecondition, gcerrors.NotFound:
		return nil, fmt.Errorf("%w: %s", ErrConflict, key) // drivers differ; all mean a lost race
	}
	return nil, err
}

// GetObject reads length bytes of an object from an offset, or as many as there are. If length is
// -1, it reads to the end. The error is [ErrNotFound] if there is no such object.
func (p *Platform) GetObject(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	b, err := p.get(ctx, name, offset, length)
	if p.Meter != nil {
		p.Meter.BlobGet(len(b))
	}
	if gcerrors.Code(err) == gcerrors.NotFound {
		err = fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return b, err
}

func (p *Platform) get(ctx context.Context, name string, offset, length int64) ([]byte, error) {
	if offset == 0 && length < 0 {
		return p.Bucket.ReadAll(ctx, name)
	}
	r, err := p.Bucket.NewRangeReader(ctx, name, offset, length, nil)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// File returns the path of an object's file; "" if the bucket does not consist of files. Only gocloud's fileblob knows
// how it spells a name.
func (p *Platform) File(ctx context.Context, name string) (path string, err error) {
	r, err := p.Bucket.NewRangeReader(ctx, name, 0, 0, &blob.ReaderOptions{
		BeforeRead: func(as func(any) bool) error {
			var f *os.File
			if as(&f) {
				path = f.Name()
			}
			return nil
		},
	})
	if err != nil {
		return "", fmt.Errorf("open object %s: %w", name, err)
	}
	return path, r.Close()
}

// DeleteObject deletes an object, if there is one.
func (p *Platform) DeleteObject(ctx context.Context, name string) error {
	if err := p.Bucket.Delete(ctx, name); gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}

// PutObject stores an object durably, its parts one after another. Putting the same bytes again
// under one name is harmless.
func (p *Platform) PutObject(ctx context.Context, name string, parts ...[]byte) error {
	size := 1
	for _, part := range parts {
		size += len(part)
	}
	if p.Meter != nil {
		p.Meter.BlobPut(size - 1)
	}
	if p.Put != nil {
		return p.Put(ctx, name, parts)
	}
	// The buffer holds the whole object, so that it is one put whatever the size. WriteAll would also hash it
	// first.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := p.Bucket.NewWriter(ctx, name, &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: size})
	if err != nil {
		return err
	}
	for _, part := range parts {
		if _, err := w.Write(part); err != nil {
			cancel() // before Close, which would otherwise store half an object
			return errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if p.Sync == nil {
		return nil
	}
	return p.Sync([]string{name})
}

// NoRoom reports whether a disk is full, a quota is exhausted, or a file has reached its largest
// size. It reads the text too, because some libraries keep nothing else of an error.
func NoRoom(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// Permanent reports whether every later write will fail too, so that retries only waste time and
// requests to web servers.
func Permanent(err error) bool { return NoRoom(err) || errors.Is(err, ErrStopped) }
