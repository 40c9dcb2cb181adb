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
	file   string // without folders
	offset int64
}

// A capture is a response or revisit record.
type capture struct {
	warc.Record // without header and body
	status      int
	payload     [sha256.Size]byte // of a response, without its content coding
}

// archive has the captures of a folder of WARC files.
type archive struct {
	captures map[place]*capture
	files    []string
	bytes    int64
}

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

// newCapture keeps what page records are compared with.
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
			if payload, err = gzip.NewReader(payload); err != nil {
				return nil, fmt.Errorf("coding %q: %w", f.Value, err)
			}
		}
	}
	const most = 1 << 30
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(payload, most)); err != nil || n == most {
		return nil, fmt.Errorf("payload of %d bytes or more: %w", n, err)
	}
	h.Sum(c.payload[:0])
	return c, nil
}

// payload returns the digest of the payload that a page record refers to, and whether it is
// stored with the page ("response") or is that of an earlier record ("revisit").
func (a *archive) payload(p *blobschema.Page) (sum [sha256.Size]byte, kind string, err error) {
	own := a.captures[place{path.Base(p.WARC), p.Offset}]
	switch {
	case own == nil:
		return sum, "", errors.New("no record at the place that the page record names")
	case own.TargetURI != p.URL || own.status != int(p.Status) || own.Length != p.Length || own.PayloadDigest != p.Digest:
		return sum, "", fmt.Errorf("another record at its place: %s, status %d, %d bytes, %s", own.TargetURI, own.status, own.Length, own.PayloadDigest)
	case (p.Original == nil) != (own.Type == warc.TypeResponse):
		return sum, "", fmt.Errorf("a %s record; the page record names the original %+v", own.Type, p.Original)
	case p.Original == nil:
		return own.payload, "response", nil
	}
	o := p.Original
	original := a.captures[place{path.Base(o.WARC), o.Offset}]
	switch {
	case original == nil || original.Type != warc.TypeResponse:
		return sum, "", errors.New("no response record at the place of its original")
	case original.TargetURI != o.URL || own.RefersToTargetURI != o.URL || !own.RefersToDate.Equal(original.Date) || original.PayloadDigest != own.PayloadDigest:
		return sum, "", fmt.Errorf("the original is %s of %s, %s; the revisit record has %s of %s, %s; the page record %s",
			original.TargetURI, original.Date, original.PayloadDigest, own.RefersToTargetURI, own.RefersToDate, own.PayloadDigest, o.URL)
	}
	return original.payload, "revisit", nil
}
