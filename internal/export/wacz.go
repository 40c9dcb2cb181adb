package export

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// resource is a file of a WACZ in its datapackage.json.
type resource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// wacz is a WACZ that is written (https://specs.webrecorder.net/wacz/1.1.1/).
type wacz struct {
	zip       *zip.Writer
	resources []resource
}

// WACZ writes a web archive in one file: the WARC files, their index, and the list of pages. software is its author.
func (e *Export) WACZ(ctx context.Context, w io.Writer, software string) error {
	z := &wacz{zip: zip.NewWriter(w)}
	for name, err := range e.View.WARCs(ctx) {
		if err != nil {
			return err
		}
		data, err := e.View.Store().Object(ctx, name, 0, -1) // at most some 32 MiB
		if err == nil {
			err = z.add("archive/"+path.Base(name), zip.Store, func(w io.Writer) error { _, err := w.Write(data); return err })
		}
		if err != nil {
			return fmt.Errorf("export %s: %w", name, err)
		}
		e.wrote("WARC file")
	}
	var blocks bytes.Buffer // 100 bytes for 1,024 captures
	err := z.add("indexes/index.cdx.gz", zip.Store, func(w io.Writer) error {
		c := &cdxBlocks{out: w, index: &blocks}
		_, err := e.View.CDXJ(ctx, c, e.Tmp)
		return errors.Join(err, c.flush())
	})
	if err == nil {
		err = z.add("indexes/index.idx", zip.Deflate, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "!meta 0 {\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}\n%s", blocks.Bytes())
			return err
		})
	}
	if err == nil {
		err = z.add("pages/pages.jsonl", zip.Deflate, func(w io.Writer) error { return e.pageList(ctx, w) })
	}
	if err == nil {
		err = z.finish(software, e.View.ID())
	}
	return err
}

// add writes a file.
func (z *wacz) add(name string, method uint16, write func(io.Writer) error) error {
	f, err := z.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: time.Now()})
	if err != nil {
		return err
	}
	c := &counter{Hash: sha256.New()}
	if err := write(io.MultiWriter(f, c)); err != nil {
		return err
	}
	z.resources = append(z.resources, resource{path.Base(name), name, c.sum(), c.n})
	return nil
}

// counter counts and hashes what is written.
type counter struct {
	hash.Hash
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return c.Hash.Write(p)
}

func (c *counter) sum() string { return "sha256:" + hex.EncodeToString(c.Sum(nil)) }

// finish writes the description of all files and its digest.
func (z *wacz) finish(software, title string) error {
	description, err := json.MarshalIndent(map[string]any{
		"profile": "data-package", "wacz_version": "1.1.1", "title": title, "software": software,
		"created": time.Now().UTC().Format(time.RFC3339), "resources": z.resources,
	}, "", "  ")
	if err != nil {
		return err
	}
	const name = "datapackage.json"
	err = z.add(name, zip.Deflate, func(w io.Writer) error { _, err := w.Write(description); return err })
	if err != nil {
		return err
	}
	digest, err := json.Marshal(map[string]string{"path": name, "hash": z.resources[len(z.resources)-1].Hash})
	if err != nil {
		return err
	}
	if err := z.add("datapackage-digest.json", zip.Deflate, func(w io.Writer) error { _, err := w.Write(digest); return err }); err != nil {
		return err
	}
	return z.zip.Close()
}

// pageList writes the pages that a reader may open: the answers with status 2xx in HTML.
func (e *Export) pageList(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriter(w)
	if _, err := out.WriteString("{\"format\": \"json-pages-1.0\", \"id\": \"pages\", \"title\": \"All Pages\"}\n"); err != nil {
		return err
	}
	lines, n := json.NewEncoder(out), 0
	for pg, err := range e.View.Pages(ctx, e.Which) {
		if err != nil {
			return err
		}
		if pg.Outcome != blobschema.OutcomeOK || pg.Robots || !strings.Contains(pg.MIME, "html") {
			continue
		}
		n++
		err := lines.Encode(map[string]any{
			"id": strconv.Itoa(n), "url": pg.URL, "ts": pg.Time.Format(time.RFC3339), "title": pg.Title,
		})
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// cdxLines is how many lines of an index share a member of gzip.
const cdxLines = 1024

// cdxBlocks compresses the lines of an index in blocks, and lists the blocks in a second index (ZipNum).
type cdxBlocks struct {
	out   io.Writer
	index io.Writer
	block bytes.Buffer
	lines int
	at    int64
	rest  []byte // of a line that is not complete
}

func (c *cdxBlocks) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		i := bytes.IndexByte(c.rest, '\n')
		if i < 0 {
			return len(p), nil
		}
		c.block.Write(c.rest[:i+1])
		c.rest = c.rest[i+1:]
		if c.lines++; c.lines == cdxLines {
			if err := c.flush(); err != nil {
				return 0, err
			}
		}
	}
}

// flush writes the current block, if it is not empty.
func (c *cdxBlocks) flush() error {
	if c.lines == 0 {
		return nil
	}
	key, _, _ := strings.Cut(c.block.String(), " {")
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	_, err := z.Write(c.block.Bytes())
	if err = errors.Join(err, z.Close()); err != nil {
		return err
	}
	sum := sha256.Sum256(member.Bytes())
	if _, err := fmt.Fprintf(c.index, "%s {\"offset\": %d, \"length\": %d, \"digest\": \"sha256:%x\", \"filename\": \"index.cdx.gz\"}\n",
		key, c.at, member.Len(), sum); err != nil {
		return err
	}
	c.at += int64(member.Len())
	_, err = c.out.Write(member.Bytes())
	c.block.Reset()
	c.lines = 0
	return err
}
