package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestServeSearch requests the page of search --serve, and stops it.
func TestServeSearch(t *testing.T) {
	t.Parallel()
	s := newSite()
	defer s.close()
	dir := filepath.Join(t.TempDir(), "d")
	command := func(ctx context.Context, errOut io.Writer, args ...string) exit {
		cmd := root()
		cmd.SetOut(io.Discard)
		cmd.SetErr(errOut)
		return execute(ctx, cmd, args)
	}
	if got := command(t.Context(), io.Discard, "crawl", "--quiet", "--index", "--data", dir, "--allow-net", "127.0.0.1", "--delay", "0s", s.url+"/30", s.url+"/words"); got != exitOK {
		t.Fatalf("exit status %d", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan exit, 1)
	go func() {
		ended <- command(ctx, w, "search", "--data", dir, "--serve", "127.0.0.1:0")
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	m := regexp.MustCompile(`^Search [1-9]\d* documents? at (http://127\.0\.0\.1:\d+/) until Ctrl-C\.\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%q, %v", line, err)
	}
	for path, want := range map[string]string{
		"?q=title:30": "<mark>30</mark>", "search.json?q=title:30": `"total":1`,
		"?q=绿茶": "<mark>绿茶</mark>的制作", "search.json?q=绿茶": `"total":1`,
	} {
		resp, err := http.Get(m[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d, %v\n%s", path, resp.StatusCode, err, body)
		}
	}
	for _, path := range []string{"nothing", "nothing/", "nothing/search.json", "search.jsonx"} {
		resp, err := http.Get(m[1] + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	cancel()
	if got := <-ended; got != exitOK {
		t.Errorf("exit status %d", got)
	}
}
