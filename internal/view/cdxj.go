package view

import (
	"bufio"
	"bytes"
	"container/heap"
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
	"github.com/orbweaver/orbweaver/platform"
)

// sortMemory is how many bytes of lines are sorted at once: about 200,000 captures.
// Together with their places that is less than 100 MB, and five million
// captures make two dozen pieces to merge.
const sortMemory = 64 << 20

// WriteCDXJ writes the capture index of a crawl, over whatever index there was, as
// the object naming.CDXJIndex.
func WriteCDXJ(ctx context.Context, p *platform.Platform, crawl string) error {
	v := &View{store: OfPlatform(p), close: func() error { return nil }}
	if err := v.of(ctx, crawl); err != nil {
		return err
	}
	name := naming.CDXJIndex(crawl)
	writing, cancel := context.WithCancel(ctx)
	defer cancel() // before Close it gives up what was written
	w, err := p.Bucket.NewWriter(writing, name, &blob.WriterOptions{ContentType: "text/x-cdxj", DisableContentTypeDetection: true})
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := v.CDXJ(ctx, w, ""); err != nil {
		cancel()
		_ = w.Close()
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if p.Sync == nil {
		return nil
	}
	return p.Sync([]string{name})
}

// CDXJ writes the capture index of all visible responses, robots.txt included,
// sorted as replay tools search it, and returns the number of lines. Files are named
// without folders. Revisits are lines like pywb's: without a status, and with a media
// type that says so; the digest leads to the payload. What does not fit into about 100 MB is sorted in files in tmp, ""
// for the usual folder.
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
			return 0, err
		}
	}
	out := bufio.NewWriterSize(w, 256<<10)
	if err := s.write(out); err != nil {
		return 0, err
	}
	return lines, out.Flush()
}

// sorter sorts lines by their bytes with bounded memory.
type sorter struct {
	tmp    string
	memory int

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

// sorted returns the lines in memory in order.
func (s *sorter) sorted() [][]byte {
	lines, start := make([][]byte, len(s.ends)), 0
	for i, end := range s.ends {
		lines[i], start = s.text[start:end], end
	}
	slices.SortFunc(lines, warc.CompareCDXJ)
	return lines
}

// spill writes the lines in memory to a file. Its name is removed at once, so that
// nothing is left however this ends.
func (s *sorter) spill() error {
	f, err := os.CreateTemp(s.tmp, "orbweaver-sort-")
	if err != nil {
		return fmt.Errorf("sort index: %w", err)
	}
	s.files = append(s.files, f)
	_ = os.Remove(f.Name()) // where an open file cannot be removed, close tries again
	w := bufio.NewWriterSize(f, 256<<10)
	for _, line := range s.sorted() {
		if _, err := w.Write(line); err != nil {
			return fmt.Errorf("sort index: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("sort index: %w", err)
	}
	s.text, s.ends = s.text[:0], s.ends[:0]
	return nil
}

// write writes all lines in order.
func (s *sorter) write(w io.Writer) error {
	memory := s.sorted()
	h := &pieces{}
	next := func() ([]byte, error) {
		if len(memory) == 0 {
			return nil, io.EOF
		}
		line := memory[0]
		memory = memory[1:]
		return line, nil
	}
	if err := h.push(&piece{next: next}); err != nil {
		return err
	}
	for _, f := range s.files {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("sort index: %w", err)
		}
		r := bufio.NewReaderSize(f, 256<<10)
		var line []byte
		if err := h.push(&piece{next: func() ([]byte, error) {
			var err error
			line, err = appendLine(line[:0], r)
			return line, err
		}}); err != nil {
			return err
		}
	}
	for h.Len() > 0 {
		p := (*h)[0]
		if _, err := w.Write(p.line); err != nil {
			return err
		}
		var err error
		if p.line, err = p.next(); err == io.EOF {
			heap.Pop(h)
			continue
		} else if err != nil {
			return fmt.Errorf("sort index: %w", err)
		}
		heap.Fix(h, 0)
	}
	return nil
}

// appendLine reads a line, however long, with its end.
func appendLine(dst []byte, r *bufio.Reader) ([]byte, error) {
	for {
		part, err := r.ReadSlice('\n')
		dst = append(dst, part...)
		if err != bufio.ErrBufferFull {
			return dst, err
		}
	}
}

func (s *sorter) close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
		_ = os.Remove(f.Name()) // gone already on most systems
	}
	s.files = nil
	return err
}

// piece is a sorted sequence of lines, line the first of what is left.
type piece struct {
	line []byte
	next func() ([]byte, error)
}

// pieces is a heap of pieces by their first lines.
type pieces []*piece

func (h pieces) Len() int           { return len(h) }
func (h pieces) Less(i, j int) bool { return bytes.Compare(h[i].line, h[j].line) < 0 }
func (h pieces) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *pieces) Push(x any)        { *h = append(*h, x.(*piece)) }
func (h *pieces) Pop() any {
	old := *h
	p := old[len(old)-1]
	*h = old[:len(old)-1]
	return p
}

// push adds a piece that is not empty.
func (h *pieces) push(p *piece) (err error) {
	if p.line, err = p.next(); err == io.EOF {
		return nil
	} else if err != nil {
		return fmt.Errorf("sort index: %w", err)
	}
	heap.Push(h, p)
	return nil
}
