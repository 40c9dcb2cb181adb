package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"golang.org/x/term"
)

// newScreen returns the screen of a terminal that understands the usual sequences; nil for other writers.
func newScreen(w io.Writer) *screen {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &screen{out: w, size: func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 1 {
			return 80, 24
		}
		return width, height
	}}
}

// screen keeps one block of lines at the end of a terminal's output up to date. Text that is
// written to it appears above the block. It is safe for concurrent use.
type screen struct {
	out  io.Writer
	size func() (width, height int)

	mu    sync.Mutex
	shown []int // the lengths of the lines of the block, guarded by mu
}

// show replaces the block, in one write, so that nothing is ever seen half. Lines are
// overwritten, not erased first: what does not change does not flicker.
func (s *screen) show(lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width, height := s.size()
	var b bytes.Buffer
	s.home(&b, width)
	s.shown = s.shown[:0]
	for _, l := range lines[:min(len(lines), max(height-1, 1))] {
		l = cut(l, width-1)
		s.shown = append(s.shown, utf8.RuneCountInString(l))
		fmt.Fprintf(&b, "%s\x1b[K\n", l)
	}
	b.WriteString("\x1b[J")
	_, _ = s.out.Write(b.Bytes()) // a terminal that is gone is no reason to stop crawling
}

// home moves to the beginning of the block. A terminal that became narrower than a line
// has broken it into several rows.
func (s *screen) home(b *bytes.Buffer, width int) {
	rows := 0
	for _, n := range s.shown {
		rows += 1 + max(n-1, 0)/max(width, 1)
	}
	b.WriteByte('\r')
	if rows > 0 {
		fmt.Fprintf(b, "\x1b[%dA", rows)
	}
}

// Write removes the block, which comes back below with the next show.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	if len(s.shown) > 0 {
		width, _ := s.size()
		s.home(&b, width)
		b.WriteString("\x1b[J")
		s.shown = s.shown[:0]
	}
	b.Write(p)
	if _, err := s.out.Write(b.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// cut shortens a line to width characters, each of which takes one column.
func cut(line string, width int) string {
	if width < 1 || utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:width-1]) + "…"
}
