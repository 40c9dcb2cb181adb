package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// terminal is what is seen after some output: as much of a terminal as the program needs.
type terminal struct {
	width    int
	lines    [][]rune
	row, col int
	rest     []byte // of a sequence or character whose end is still to come
}

// Write carries out text, carriage returns, line feeds, and the sequences that go up, erase the
// rest of a line, and erase the rest of the screen. Others are left out.
func (t *terminal) Write(p []byte) (int, error) {
	b := append(t.rest, p...)
	for len(b) > 0 {
		switch {
		case b[0] == '\x1b':
			n := t.sequence(b)
			if n == 0 {
				t.rest = slices.Clone(b)
				return len(p), nil
			}
			b = b[n:]
			continue
		case b[0] == '\r':
			t.col = 0
		case b[0] == '\n':
			t.row, t.col = t.row+1, 0
		default:
			if !utf8.FullRune(b) {
				t.rest = slices.Clone(b)
				return len(p), nil
			}
			r, n := utf8.DecodeRune(b)
			t.put(r)
			b = b[n:]
			continue
		}
		b = b[1:]
	}
	t.rest = nil
	return len(p), nil
}

func (t *terminal) put(r rune) {
	if t.col == t.width {
		t.row, t.col = t.row+1, 0
	}
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
	line := t.lines[t.row]
	for len(line) <= t.col {
		line = append(line, ' ')
	}
	line[t.col] = r
	t.lines[t.row] = line
	t.col++
}

// sequence carries out the sequence that b begins with, and returns its length, 0 if it is not whole.
func (t *terminal) sequence(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] != '[' {
		return 2
	}
	end := slices.IndexFunc(b[2:], func(c byte) bool { return c >= 0x40 && c <= 0x7e })
	if end < 0 {
		return 0
	}
	n := 1
	_, _ = fmt.Sscanf(string(b[2:2+end]), "%d", &n)
	switch b[2+end] {
	case 'A':
		t.row = max(t.row-n, 0)
	case 'K':
		t.erase()
	case 'J':
		t.erase()
		t.lines = t.lines[:min(len(t.lines), t.row+1)]
	}
	return 2 + end + 1
}

// erase empties the line from the cursor on.
func (t *terminal) erase() {
	if t.row < len(t.lines) {
		t.lines[t.row] = t.lines[t.row][:min(len(t.lines[t.row]), t.col)]
	}
}

// text is what is seen, without what is empty at its end.
func (t *terminal) text() string {
	var b strings.Builder
	for _, line := range t.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

const (
	frameEvery = 500 * time.Millisecond
	mostFrames = 60
)

// watch feeds a terminal with what comes until the end, and returns what was seen now and then, when
// something was just complete, and last.
func watch(r io.Reader, t *terminal, now func() time.Time) ([]string, error) {
	var frames []string
	last := now()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		_, _ = t.Write(buf[:n])
		if at := now(); at.Sub(last) >= frameEvery && len(frames) < mostFrames && bytes.HasSuffix(buf[:n], []byte("\x1b[J")) {
			last = at
			frames = append(frames, t.text())
		}
		var gone *fs.PathError // a terminal whose program has ended
		if errors.Is(err, io.EOF) || errors.As(err, &gone) {
			return append(frames, t.text()), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// How it is drawn, in pixels.
const (
	columnTenths = 79 // tenths of a pixel, of 13 px of the usual fonts
	lineHeight   = 18
	border       = 14
)

// motion draws screens, one after the other, half a second each, and again from the first. What does not
// move things shows the last.
func motion(screens []string) string {
	rows := 0
	for _, s := range screens {
		rows = max(rows, strings.Count(s, "\n")+1)
	}
	w, h := width*columnTenths/10+2*border, rows*lineHeight+2*border
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
`, w, h, w, h)
	if len(screens) > 1 {
		fmt.Fprintf(&b, "<style>@keyframes f { 0%% { visibility: visible } %.4f%% { visibility: hidden } } g { visibility: hidden; animation: f %gs step-end infinite } g:last-of-type { visibility: visible }</style>\n",
			100/float64(len(screens)), frameEvery.Seconds()*float64(len(screens)))
	}
	fmt.Fprintf(&b, "<rect width=\"%d\" height=\"%d\" rx=\"8\" fill=\"#14181f\"/>\n", w, h)
	for i, s := range screens {
		fmt.Fprintf(&b, "<g fill=\"#d6dde6\" style=\"animation-delay: %gs\">\n", frameEvery.Seconds()*float64(i-len(screens)))
		for j, line := range strings.Split(s, "\n") {
			if line != "" {
				fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">%s</text>\n", border, border+13+j*lineHeight, html.EscapeString(line))
			}
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}
