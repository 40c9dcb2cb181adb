package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"
	"time"

	"github.com/charmbracelet/x/vt"
)

// screen returns the text on a terminal, without empty lines at its end.
func screen(t *vt.Emulator) string {
	lines := strings.Split(t.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \r")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

const (
	frameEvery = 500 * time.Millisecond
	mostFrames = 60
)

// watch writes output to a terminal, and returns a screen about every frameEvery, and the
// last one. The live view ends with the sequence that clears the rest of the screen.
func watch(r io.Reader, t *vt.Emulator, now func() time.Time) ([]string, error) {
	var frames []string
	last := now()
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		_, _ = t.Write(buf[:n])
		if at := now(); at.Sub(last) >= frameEvery && len(frames) < mostFrames && bytes.HasSuffix(buf[:n], []byte("\x1b[J")) {
			last = at
			frames = append(frames, screen(t))
		}
		if errors.Is(err, io.EOF) {
			return append(frames, screen(t)), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// Dimensions of the picture, in pixels.
const (
	columnTenths = 79 // tenths of a pixel, of 13 px of the usual fonts
	lineHeight   = 18
	border       = 14
)

// motion draws screens one after another, half a second each, in a loop. A viewer without
// animation shows the last screen.
func motion(screens []string) string {
	rows := 0
	for _, s := range screens {
		rows = max(rows, strings.Count(s, "\n")+1)
	}
	w, h := width*columnTenths/10+2*border, rows*lineHeight+2*border
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="13">
`, w, h, w, h)
	fmt.Fprintf(&b, "<style>@keyframes f { 0%% { visibility: visible } %.4f%% { visibility: hidden } } g { visibility: hidden; animation: f %gs step-end infinite } g:last-of-type { visibility: visible }</style>\n",
		100/float64(len(screens)), frameEvery.Seconds()*float64(len(screens)))
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
