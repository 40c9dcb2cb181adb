package view

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
)

// sorter sorts lines by their bytes with bounded memory: what does not fit goes to sorted
// files, which each merges.
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

// flush passes on the lines in memory in order, and forgets them.
func (s *sorter) flush(use func(line []byte) error) error {
	lines, start := make([][]byte, len(s.ends)), 0
	for i, end := range s.ends {
		lines[i], start = s.text[start:end], end
	}
	slices.SortFunc(lines, bytes.Compare)
	for _, line := range lines {
		if err := use(line); err != nil {
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
	if err := s.flush(func(line []byte) error { _, err := w.Write(line); return err }); err != nil {
		return err
	}
	return w.Flush()
}

// piece is a sorted file, and the first of its lines that are not written yet.
type piece struct {
	lines *bufio.Reader
	line  []byte
}

// each passes on all lines in order. A line is valid until use returns.
func (s *sorter) each(use func(line []byte) error) error {
	if len(s.files) == 0 {
		return s.flush(use)
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
			if bytes.Compare(pieces[i].line, pieces[first].line) < 0 {
				first = i
			}
		}
		p := &pieces[first]
		if err := use(p.line); err != nil {
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
