package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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
	uri     string
	revisit bool
	payload [sha256.Size]byte // of a response, without its content coding
}

// An archive has the captures of a folder of WARC files.
type archive struct {
	captures map[place]capture
	bytes    int64 // size of the files
}

// readArchive reads all WARC files of a folder, and verifies the digests of all records.
func readArchive(dir string) (*archive, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.warc.gz"))
	if err != nil {
		return nil, err
	}
	a := &archive{captures: map[place]capture{}}
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
		a.bytes += rec.Length
		c := capture{uri: rec.TargetURI, revisit: rec.Type == warc.TypeRevisit}
		if rec.Type == warc.TypeResponse {
			if c.payload, err = payload(rec); err != nil {
				return fmt.Errorf("record at %d, of %s: %w", rec.Offset, rec.TargetURI, err)
			}
		} else if !c.revisit {
			continue
		}
		a.captures[place{filepath.Base(name), rec.Offset}] = c
	}
}

// payload is the digest of a response's body without its content coding.
func payload(rec *warc.Record) (sum [sha256.Size]byte, err error) {
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
			return sum, fmt.Errorf("coding %q: %w", f.Value, err)
		}
		if body, err = io.ReadAll(r); err != nil {
			return sum, err
		}
	}
	return sha256.Sum256(body), nil
}

// payload returns the digest of the payload that a page record refers to, and whether it is
// stored with the page ("response") or with an earlier page ("revisit").
func (a *archive) payload(p *blobschema.Page) (sum [sha256.Size]byte, kind string, err error) {
	own, ok := a.captures[place{path.Base(p.WARC), p.Offset}]
	switch {
	case !ok || own.uri != p.URL:
		return sum, "", fmt.Errorf("not the page's record but %q", own.uri)
	case own.revisit != (p.Original != nil):
		return sum, "", fmt.Errorf("revisit record %t, but the page record names the original %+v", own.revisit, p.Original)
	case !own.revisit:
		return own.payload, "response", nil
	}
	original, ok := a.captures[place{path.Base(p.Original.WARC), p.Original.Offset}]
	if !ok || original.revisit || original.uri != p.Original.URL {
		return sum, "", fmt.Errorf("no response record of %s at the place of the original", p.Original.URL)
	}
	return original.payload, "revisit", nil
}
