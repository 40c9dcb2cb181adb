package main

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestTerminal writes what the live view writes, cut anywhere.
func TestTerminal(t *testing.T) {
	const out = "$ crawl\r\nbegins\r\n\rtitle · 1 s\x1b[K\r\n  pages 10\x1b[K\r\n\x1b[J\r\x1b[2Atitle · 2 s\x1b[K\r\n  pages 9\x1b[K\r\n\x1b[J\x1b]\r\x1b[2A\x1b[J1234567890123\r\ndone\r\n"
	const want = "$ crawl\nbegins\n123456789012\n3\ndone"
	for size := 1; size < len(out); size++ {
		term := terminal{width: 12}
		for piece := range slices.Chunk([]byte(out), size) {
			if n, err := term.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if d := cmp.Diff(want, term.text()); d != "" {
			t.Fatalf("in pieces of %d (-want +got):\n%s", size, d)
		}
	}
}

// TestWatch keeps a screen now and then, none that is half drawn, and the last.
func TestWatch(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for _, s := range []string{"a\x1b[J", "b", "c\x1b[J", "d"} {
			_, _ = w.Write([]byte(s))
		}
		_ = w.Close()
	}()
	at := time.Time{}
	frames, err := watch(r, &terminal{width: 80}, func() time.Time { at = at.Add(frameEvery); return at })
	if d := cmp.Diff([]string{"a", "abc", "abcd"}, frames); err != nil || d != "" {
		t.Errorf("%v, %s", err, d)
	}
}

// TestMotion reads the pictures as what they are.
func TestMotion(t *testing.T) {
	for _, screens := range [][]string{{"one <&> \"two\""}, {"a", "a\n  b"}} {
		picture := motion(screens)
		if n := strings.Count(picture, "<g "); n != len(screens) {
			t.Errorf("%d screens of %d", n, len(screens))
		}
		d := xml.NewDecoder(strings.NewReader(picture))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, picture)
			}
		}
	}
}

// TestWeb looks at the web that is made of the project: hosts by package, and nothing that leads out of it.
func TestWeb(t *testing.T) {
	w, err := readWeb("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(w.hosts) < 20 || w.hosts[0].folder != "" || w.hosts[0].pages["/docs/glossary.md"] == "" {
		t.Errorf("%d hosts, of which the first is %q", len(w.hosts), w.hosts[0].folder)
	}
	for _, h := range w.hosts {
		for name, text := range h.pages {
			if strings.Contains(text, `href="http`) && name != "/" {
				t.Errorf("%s%s leads out", h.authority, name)
			}
		}
	}
	for _, want := range []string{"<h1>A <b>b</b> <code>&lt;c&gt;</code></h1>", `<a href="d.md">D</a>`, "<pre>x = 1\n</pre>", "<p>E\n</p>"} {
		if got := document("# A **b** `<c>`\n\n[D](d.md) [E](https://e.example/)\n```\nx = 1\n```\n| E |\n"); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
