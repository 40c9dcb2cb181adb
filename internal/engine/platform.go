package engine

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
	"gocloud.dev/docstore"
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
)

// Document is a record of the table: JSON text under a key.
type Document struct {
	Key              string `docstore:"key"`
	Value            string `docstore:"value"`
	DocstoreRevision any
}

// ReadRecords reads records in the order of keys.
func ReadRecords(ctx context.Context, p *drivers.Platform, keys []string) ([]actor.Record, error) {
	docs := make([]Document, len(keys))
	list := p.Table.Actions()
	for i, k := range keys {
		docs[i].Key = k
		list.Get(&docs[i])
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
	recs := make([]actor.Record, len(keys))
	for i := range docs {
		if !absent[i] {
			recs[i] = actor.Record{Found: true, Value: []byte(docs[i].Value), Revision: docs[i].DocstoreRevision}
		}
	}
	return recs, nil
}

// WriteRecord creates or replaces a record; see actor.WriteRecord.
func WriteRecord(ctx context.Context, p *drivers.Platform, w actor.WriteRecord) (actor.Revision, error) {
	doc := Document{Key: w.Key, Value: string(w.Value), DocstoreRevision: w.Revision}
	var err error
	if w.Revision == nil {
		err = p.Table.Create(ctx, &doc)
	} else {
		err = p.Table.Replace(ctx, &doc)
	}
	switch gcerrors.Code(err) {
	case gcerrors.OK:
		return doc.DocstoreRevision, nil
	case gcerrors.AlreadyExists, gcerrors.FailedPrecondition, gcerrors.NotFound:
		return nil, fmt.Errorf("%w: %s", actor.ErrConflict, w.Key) // drivers differ; all mean a lost race
	}
	return nil, err
}

// GetObject reads an object or a part of it.
func GetObject(ctx context.Context, p *drivers.Platform, g actor.GetObject) ([]byte, error) {
	b, err := getObject(ctx, p, g)
	if p.Meter != nil {
		p.Meter.BlobGet(len(b))
	}
	return b, err
}

func getObject(ctx context.Context, p *drivers.Platform, g actor.GetObject) ([]byte, error) {
	if g.Offset == 0 && g.Length < 0 {
		b, err := p.Bucket.ReadAll(ctx, g.Name)
		return b, notFound(err)
	}
	r, err := p.Bucket.NewRangeReader(ctx, g.Name, g.Offset, g.Length, nil)
	if err != nil {
		return nil, notFound(err)
	}
	defer r.Close()
	return io.ReadAll(r)
}

func notFound(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %w", actor.ErrNotFound, err)
	}
	return err
}

// DeleteObject deletes an object, if there is one.
func DeleteObject(ctx context.Context, p *drivers.Platform, d actor.DeleteObject) error {
	if err := p.Bucket.Delete(ctx, d.Name); gcerrors.Code(err) != gcerrors.NotFound {
		return err
	}
	return nil
}

// PutObject stores an object durably.
func PutObject(ctx context.Context, p *drivers.Platform, o actor.PutObject) error {
	size := 1
	for _, part := range o.Parts {
		size += len(part)
	}
	if p.Meter != nil {
		p.Meter.BlobPut(size - 1)
	}
	if p.Put != nil {
		return p.Put(ctx, o.Name, o.Parts)
	}
	// One put whatever the size: the buffer holds it all. Not WriteAll, which hashes first.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := p.Bucket.NewWriter(ctx, o.Name, &blob.WriterOptions{ContentType: "application/octet-stream", BufferSize: size})
	if err != nil {
		return err
	}
	for _, part := range o.Parts {
		if _, err := w.Write(part); err != nil {
			cancel() // before Close, or what was written would be stored
			return errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if p.Sync == nil {
		return nil
	}
	return p.Sync([]string{o.Name})
}
