package view

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"gocloud.dev/blob"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// sortMemory is how many bytes of lines are sorted at once: about 200,000 captures. With
// their places that is less than 100 MB, and five million captures make two dozen files.
const sortMemory = 64 << 20

// WriteCDXJ writes the capture index over whatever index there was, as the object naming.CDXJIndex. v reads a platform that
// this process has open.
func (v *View) WriteCDXJ(ctx context.Context) error {
	p, name := v.platform(), naming.CDXJIndex(v.id)
	writing, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := p.Bucket.NewWriter(writing, name, &blob.WriterOptions{ContentType: "text/x-cdxj", DisableContentTypeDetection: true})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err = v.CDXJ(ctx, w, ""); err != nil {
		cancel() // so that Close discards what was written
	}
	if err = cmp.Or(err, w.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if p.Sync == nil {
		return nil
	}
	return p.Sync([]string{name})
}

// CDXJ writes the capture index of all visible responses, robots.txt included, sorted as
// replay tools search it, and returns the number of lines. Files are named without folders.
// The line of a revisit is like pywb's: it has no status and a media type of its own, and
// the digest leads to the payload. CDXJ uses about 100 MB of memory; the rest is sorted in
// files in tmp, "" for the usual folder.
func (v *View) CDXJ(ctx context.Context, w io.Writer, tmp string) (lines int64, err error) {
	s := &sorter{tmp: tmp, memory: sortMemory}
	defer func() { err = errors.Join(err, s.close()) }()
	var line []byte
	for pg, err := range v.Pages(ctx, EveryRecord) {
		if err != nil {
			return 0, err
		}
		u, err := weburl.Parse(pg.URL)
		if err != nil {
			return 0, fmt.Errorf("page record: %w", err)
		}
		if pg.Original != nil {
			pg.MIME, pg.Status = "warc/revisit", 0
		}
		if line = warc.AppendCDXJ(line[:0], u.Key(), pg, path.Base(pg.WARC)); len(line) == 0 {
			continue
		}
		lines++
		if err := s.add(line); err != nil {
			return 0, fmt.Errorf("sort index: %w", err)
		}
	}
	out := bufio.NewWriterSize(w, 256<<10)
	if err := s.each(func(line []byte) error { _, err := out.Write(line); return err }); err != nil {
		return 0, fmt.Errorf("sort index: %w", err)
	}
	return lines, out.Flush()
}
