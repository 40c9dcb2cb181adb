package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// needNginx returns where nginx is; without it the test is skipped.
func needNginx(t *testing.T) string {
	t.Helper()
	nginx, err := findNginx()
	if err != nil {
		t.Skip(err)
	}
	return nginx
}

// TestServer holds nginx to what the phases rely on: compressed answers have a weak
// validator, and a request with it is answered with 304.
func TestServer(t *testing.T) {
	nginx := needNginx(t)
	dir := t.TempDir()
	write(t, dir, map[string]string{"www/page.html": strings.Repeat("<p>much the same", 100)})
	s, err := startServer(t.Context(), nginx, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.stop()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	ask := func(etag string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/page.html", s.port), nil)
		if err != nil {
			return nil, err
		}
		req.Header.Set("Accept-Encoding", "gzip")
		if etag != "" {
			req.Header.Set("If-None-Match", etag)
		}
		resp, err := client.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		return resp, err
	}
	first, err := ask("")
	if err != nil {
		t.Fatal(err)
	}
	etag := first.Header.Get("ETag")
	if first.StatusCode != 200 || first.Header.Get("Content-Encoding") != "gzip" || !strings.HasPrefix(etag, `W/"`) || first.Header.Get("Vary") == "" {
		t.Errorf("%d %v", first.StatusCode, first.Header)
	}
	second, err := ask(etag)
	if err != nil || second.StatusCode != 304 {
		t.Errorf("%v %v", second, err)
	}
	asked, err := s.requests(t.Context())
	if err != nil || len(asked) != 2 || asked[0].URI != "/page.html" || asked[0].Status != 200 || asked[1].Status != 304 || asked[1].IfNoneMatch != etag {
		t.Errorf("%+v, %v", asked, err)
	}
	if asked, err := s.requests(t.Context()); err != nil || len(asked) != 0 {
		t.Errorf("nothing was asked for, but %+v, %v", asked, err)
	}
	s.stop()
	if _, err := ask(""); err == nil {
		t.Error("it answers after its end")
	}
	if _, err := s.requests(t.Context()); err == nil || !strings.Contains(err.Error(), "nginx ended") {
		t.Errorf("a server that is gone: %v", err)
	}
}

// TestServerEndsWithContext is what Ctrl-C and the time limit rely on.
func TestServerEndsWithContext(t *testing.T) {
	nginx := needNginx(t)
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	write(t, dir, map[string]string{"www/page.html": ""})
	s, err := startServer(ctx, nginx, dir)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-s.ended:
	case <-time.After(2 * stopTime):
		t.Error("it goes on")
		s.stop()
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	fake := filepath.Join(t.TempDir(), "nginx")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\ntest \"$1\" = -V || echo out of order\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := startServer(t.Context(), fake, t.TempDir()); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Error(err)
	}
}

// TestCrawlerThatFails sees that the program's own words reach whoever looks.
func TestCrawlerThatFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it needs a shell")
	}
	fake := filepath.Join(t.TempDir(), "orbweaver")
	script := "#!/bin/sh\ncase $1 in\n" +
		"crawl) echo '{\"event\":\"progress\",\"seconds\":9}'; echo no more paper >&2; exit 1;;\n" +
		"recrawl) echo '{\"event\":\"finished\"}';;\n" +
		"fsck) echo '{\"found\":2,\"violations\":[{\"invariant\":\"I1\"}]}'; exit 6;;\n" +
		"export) echo '{\"url\":'; exit 0;;\nesac\n"
	if err := os.WriteFile(fake, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	var told bytes.Buffer
	c := crawler{binary: fake, progress: &told}
	if _, err := c.crawl(t.Context(), base); err == nil || !strings.Contains(err.Error(), "no more paper") || !strings.Contains(told.String(), "9 s") {
		t.Errorf("%v, %s", err, &told)
	}
	if _, err := c.recrawl(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no summary") {
		t.Error(err)
	}
	if wrong, err := c.fsck(t.Context()); err != nil || len(wrong) != 2 || !strings.Contains(wrong[0], "I1") || !strings.Contains(wrong[1], "1 more") {
		t.Errorf("%q, %v", wrong, err)
	}
	if pages, err := c.pages(t.Context()); err == nil {
		t.Errorf("half a line is %v", pages)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.pages(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
