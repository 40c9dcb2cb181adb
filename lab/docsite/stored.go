package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
)

// A stored page is a page record with the digest of its payload, without the content coding.
type stored struct {
	blobschema.Page
	sum [sha256.Size]byte
}

// stored reads all page records and their payloads, and returns the size of the WARC files too.
func (t *trial) stored(ctx context.Context) (pages []stored, size int64, err error) {
	p, err := drivers.Open(ctx, t.data, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { _ = p.Close() }() // it is only read
	v, err := view.New(ctx, engine.Store{Platform: p})
	if err != nil {
		return nil, 0, err
	}
	for pg, err := range v.Pages(ctx, view.EveryRecord) {
		s := stored{Page: pg}
		if err == nil && pg.WARC != "" {
			s.sum, err = payload(v.Payload(ctx, pg))
		}
		if err != nil {
			return nil, 0, err
		}
		pages = append(pages, s)
	}
	err = filepath.WalkDir(t.data, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".warc.gz") {
			return err
		}
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return pages, size, err
}

// payload returns the digest of a response's body without its content coding.
func payload(rec *warc.Record, err error) (sum [sha256.Size]byte, _ error) {
	if err != nil {
		return sum, err
	}
	m, err := rec.HTTP()
	if err != nil {
		return sum, err
	}
	body := rec.Body
	for _, f := range m.Fields {
		if !strings.EqualFold(f.Name, "Content-Encoding") {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return sum, err
		}
		if body, err = io.ReadAll(r); err != nil {
			return sum, err
		}
	}
	return sha256.Sum256(body), nil
}
