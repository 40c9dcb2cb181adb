package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// A place is where a record begins.
type place struct {
	file   string // its name without folders
	offset int64
}

// A capture is a response or revisit record.
type capture struct {
	warc.Record // without header and body
	status      int
	payload     [sha256.Size]byte // of a response: of the payload without its content coding
}

// archive is what a folder of WARC files holds.
type archive struct {
	captures map[place]*capture
	files    []string
	bytes    int64
}

// maxPayload bounds a payload without its content coding, in bytes.
const maxPayload = 1 << 30

// readArchive reads all WARC files of a folder, and verifies the digests of all records.
func readArchive(dir string) (*archive, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	if err != nil {
		return nil, err
	}
	a := &archive{captures: map[place]*capture{}, files: files}
	for _, name := range files {
		if err := a.read(name); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}
	return a, nil
}

func (a *archive) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	a.bytes += info.Size()
	for r := warc.NewReader(f); ; {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = rec.Verify()
		}
		if err != nil {
			return err
		}
		if rec.Type != warc.TypeResponse && rec.Type != warc.TypeRevisit {
			continue
		}
		c, err := newCapture(rec)
		if err != nil {
			return fmt.Errorf("record at %d, of %s: %w", rec.Offset, rec.TargetURI, err)
		}
		a.captures[place{filepath.Base(name), rec.Offset}] = c
	}
}

// newCapture keeps what is needed of a record.
func newCapture(rec *warc.Record) (*capture, error) {
	c := &capture{Record: *rec}
	c.Header, c.Body = nil, nil
	if rec.Profile == warc.ProfileNotModified { // stored without a header
		c.status = http.StatusNotModified
		return c, nil
	}
	m, err := rec.HTTP()
	if err != nil {
		return nil, err
	}
	c.status = m.Status
	if rec.Type == warc.TypeRevisit {
		return c, nil
	}
	var payload io.Reader = bytes.NewReader(rec.Body)
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, "Content-Encoding") {
			if f.Value != "gzip" {
				return nil, fmt.Errorf("its coding is %q, which the server has not", f.Value)
			}
			if payload, err = gzip.NewReader(payload); err != nil {
				return nil, err
			}
		}
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(payload, maxPayload)); err != nil || n == maxPayload {
		return nil, fmt.Errorf("its payload has %d bytes or more (%w)", n, err)
	}
	h.Sum(c.payload[:0])
	return c, nil
}

// find returns the capture that a page record names, and the response record that holds
// the payload, which is another one for a revisit; what says what is wrong with them.
func (a *archive) find(p *blobschema.Page) (own, original *capture, what string) {
	own = a.captures[place{path.Base(p.WARC), p.Offset}]
	switch {
	case own == nil:
		return nil, nil, "no record is where its page record says"
	case own.TargetURI != p.URL || own.status != int(p.Status) || own.Length != p.Length || own.PayloadDigest != p.Digest:
		return nil, nil, fmt.Sprintf("the record of %s, status %d, %d bytes, %s is not what its page record says",
			own.TargetURI, own.status, own.Length, own.PayloadDigest)
	case p.Original == nil && own.Type != warc.TypeResponse:
		return nil, nil, fmt.Sprintf("a %s record, but its page record names no original", own.Type)
	case p.Original == nil:
		return own, own, ""
	}
	o := p.Original
	original = a.captures[place{path.Base(o.WARC), o.Offset}]
	switch {
	case own.Type != warc.TypeRevisit:
		return nil, nil, fmt.Sprintf("a %s record, but its page record names an original", own.Type)
	case original == nil || original.Type != warc.TypeResponse:
		return nil, nil, "no response record is where its original should be"
	case original.TargetURI != o.URL || own.RefersToTargetURI != o.URL:
		return nil, nil, fmt.Sprintf("its original is of %s, by its revisit record of %s, by its page record of %s", original.TargetURI, own.RefersToTargetURI, o.URL)
	case !own.RefersToDate.Equal(original.Date):
		return nil, nil, fmt.Sprintf("its original has the date %s, by its revisit record %s", original.Date, own.RefersToDate)
	case original.PayloadDigest != own.PayloadDigest:
		return nil, nil, fmt.Sprintf("its digest is %s, that of its original %s", own.PayloadDigest, original.PayloadDigest)
	}
	return own, original, ""
}
