package view

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"

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
	s := &sorter{tmp: tmp, memory: sortMemory, compare: warc.CompareCDXJ}
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
	if err := s.write(out); err != nil {
		return 0, fmt.Errorf("sort index: %w", err)
	}
	return lines, out.Flush()
}

// sorter sorts lines with bounded memory: what does not fit goes to sorted
// files, which write merges.
type sorter struct {
	tmp     string
	memory  int
	compare func(a, b []byte) int

	text  []byte
	ends  []int // of the lines in text
	files []*os.File
}

// add takes a line with its end.
func (s *sorter) add(line []byte) error {
	if len(s.text)+len(line) > s.memory && len(s.ends) > 0 {
		if err := s.spill(); err != nil {
			return err
		}
	}
	s.text = append(s.text, line...)
	s.ends = append(s.ends, len(s.text))
	return nil
}

// flush writes the lines in memory in order, and forgets them.
func (s *sorter) flush(w io.Writer) error {
	lines, start := make([][]byte, len(s.ends)), 0
	for i, end := range s.ends {
		lines[i], start = s.text[start:end], end
	}
	slices.SortFunc(lines, s.compare)
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	s.text, s.ends = s.text[:0], s.ends[:0]
	return nil
}

// spill writes the lines in memory to a file. It removes the name of the file at once, so
// that nothing is left however this ends.
func (s *sorter) spill() error {
	f, err := os.CreateTemp(s.tmp, "orbweaver-sort-")
	if err != nil {
		return err
	}
	s.files = append(s.files, f)
	_ = os.Remove(f.Name()) // where an open file cannot be removed, close tries again
	w := bufio.NewWriterSize(f, 256<<10)
	if err := s.flush(w); err != nil {
		return err
	}
	return w.Flush()
}

// piece is a sorted file, and the first of its lines that are not written yet.
type piece struct {
	lines *bufio.Reader
	line  []byte
}

// write writes all lines in order, each with one call of w.Write.
func (s *sorter) write(w io.Writer) error {
	if len(s.files) == 0 {
		return s.flush(w)
	}
	if err := s.spill(); err != nil {
		return err
	}
	var pieces []piece
	for _, f := range s.files {
		_, err := f.Seek(0, io.SeekStart)
		p := piece{lines: bufio.NewReaderSize(f, 256<<10)}
		if err == nil {
			p.line, err = p.lines.ReadBytes('\n')
		}
		if err != nil {
			return err
		}
		pieces = append(pieces, p)
	}
	// There are few pieces, so the first line is found by looking at all.
	for len(pieces) > 0 {
		first := 0
		for i := range pieces {
			if s.compare(pieces[i].line, pieces[first].line) < 0 {
				first = i
			}
		}
		p := &pieces[first]
		if _, err := w.Write(p.line); err != nil {
			return err
		}
		var err error
		if p.line, err = p.lines.ReadBytes('\n'); err == io.EOF {
			pieces = slices.Delete(pieces, first, first+1)
		} else if err != nil {
			return err
		}
	}
	return nil
}

func (s *sorter) close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
		_ = os.Remove(f.Name()) // gone already on most systems
	}
	s.files = nil
	return err
}
