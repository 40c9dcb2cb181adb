package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/google/go-cmp/cmp"
)

// TestWatch checks that all screens are complete, and that the last one is there.
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

// TestMotion checks that the picture is well-formed.
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

// TestWeb reads pages of the project's web.
func TestWeb(t *testing.T) {
	w := web{firstHost: "../..", "127.0.0.2:8080": "../../docs"}
	for url, want := range map[string]string{
		"http://127.0.0.1:8080/":            `<a href="http://127.0.0.2:8080/">`,
		"http://127.0.0.1:8080/README.md":   "# Orbweaver",
		"http://127.0.0.2:8080/":            `<a href="/glossary.md">`,
		"http://127.0.0.2:8080/nothing.md":  "404",
		"http://127.0.0.2:8080/glossary.md": "<title>../../docs/glossary.md</title>",
	} {
		out := httptest.NewRecorder()
		w.ServeHTTP(out, httptest.NewRequest(http.MethodGet, url, nil))
		if !strings.Contains(out.Body.String(), want) {
			t.Errorf("%s has no %s", url, want)
		}
	}
}
