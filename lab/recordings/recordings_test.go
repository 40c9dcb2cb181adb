package main

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
)

// TestWatch expects screens that are complete, none that is half drawn, and the last.
func TestWatch(t *testing.T) {
	r, w := io.Pipe()
	go func() {
		for _, s := range []string{"a\x1b[J", "b", "c\x1b[J", "d"} {
			_, _ = w.Write([]byte(s))
		}
		_ = w.Close()
	}()
	at := time.Time{}
	frames, err := watch(r, vt.NewEmulator(80, 10), func() time.Time { at = at.Add(frameEvery); return at })
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
	got, err := document([]byte("# A **b** `<c>`\n\n[D](d.md) [E](https://e.example/)\n"))
	if err != nil || !strings.Contains(got, `<a href="d.md">D</a>`) || strings.Contains(got, "e.example") {
		t.Errorf("%v, %s", err, got)
	}
}
