package main

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// screen keeps one block of lines at the end of a terminal's output up to date. What is
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

// cut shortens a line to so many characters, each of which takes one column.
func cut(line string, width int) string {
	if width < 1 || utf8.RuneCountInString(line) <= width {
		return line
	}
	runes := []rune(line)
	return string(runes[:width-1]) + "…"
}

// frame is the block that shows a running crawl.
func frame(title string, f *figures) []string {
	lines := []string{
		fmt.Sprintf("%s · %s", title, span(f.Seconds)),
		fmt.Sprintf("  pages  %-12s %8.1f/s     queue     %s", count(f.Pages), f.PagesPerSecond, count(f.Queue)),
		fmt.Sprintf("  hosts  %-12s %8s       received  %s", count(f.HostsKnown), count(int64(f.HostsActive))+" active", size(f.Bytes)),
	}
	if f.AtWork != nil {
		lines[2] = fmt.Sprintf("  hosts  %-12s %8s       received  %s", count(f.HostsKnown), "", size(f.Bytes))
		lines = append(lines, "  work   "+plural(int64(*f.AtWork), "partition"))
	}
	if f.Paused {
		lines = append(lines, "  paused: nothing is asked for; 'orbweaver resume' goes on")
	}
	if f.Recrawled > 0 {
		lines = append(lines, "  again  "+count(f.Recrawled)+" recrawled")
	}
	if f.Waiting != "" && !f.Paused {
		lines = append(lines, "  "+f.Waiting)
	}
	if f.Asked > 0 {
		lines = append(lines, fmt.Sprintf("  asked  %d of %s have an outcome", f.Answered, plural(int64(f.Asked), "URL")))
	}
	if e := f.errors(); e != "" {
		lines = append(lines, "  errors "+e)
	}
	if f.Limit != "" {
		lines = append(lines, fmt.Sprintf("  left   %s to --%s", span(f.SecondsLeft), f.Limit))
	}
	return lines
}

// line is the same in one line, for a log.
func line(f *figures) string {
	hosts := fmt.Sprintf("%d of %s", f.HostsActive, plural(f.HostsKnown, "host"))
	if f.AtWork != nil {
		hosts = fmt.Sprintf("%s, %s at work", plural(f.HostsKnown, "host"), plural(int64(*f.AtWork), "partition"))
	}
	s := fmt.Sprintf("%s: %s (%.1f/s), %s, queue %s, %s received",
		span(f.Seconds), plural(f.Pages, "page"), f.PagesPerSecond, hosts, count(f.Queue), size(f.Bytes))
	if f.Recrawled > 0 {
		s += fmt.Sprintf(", %s recrawled", count(f.Recrawled))
	}
	if f.Asked > 0 {
		s += fmt.Sprintf(", %d of %s answered", f.Answered, plural(int64(f.Asked), "URL"))
	}
	switch {
	case f.Paused:
		s += ", paused"
	case f.Waiting != "":
		s += ", " + f.Waiting
	}
	if e := f.errors(); e != "" {
		s += ", errors: " + e
	}
	if f.Limit != "" {
		s += fmt.Sprintf(", %s left to --%s", span(f.SecondsLeft), f.Limit)
	}
	return s
}
