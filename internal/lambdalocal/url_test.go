//go:build unix

package lambdalocal

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// TestURL checks that requests become events and results become responses, with a real bootstrap.
func TestURL(t *testing.T) {
	f, _ := open(t, nil)
	srv := httptest.NewServer(URL{Function: f})
	defer srv.Close()
	ask := func(method, path, contentType, body string) (*http.Response, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", contentType)
		req.Header["X-Twice"] = []string{"a", "b"}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(b)
	}

	resp, body := ask("GET", "/echo/a%20b?q=x+y&q=z&n=1", "text/plain", "")
	var e events.LambdaFunctionURLRequest
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", resp.Status, resp.Header)
	}
	if e.Version != "2.0" || e.RawPath != "/echo/a%20b" || e.RawQueryString != "q=x+y&q=z&n=1" || e.QueryStringParameters["q"] != "x y,z" ||
		e.Headers["x-twice"] != "a,b" || e.RequestContext.HTTP.Method != "GET" || e.RequestContext.HTTP.Path != "/echo/a b" || e.RequestContext.HTTP.SourceIP != "127.0.0.1" {
		t.Errorf("the event is %+v", e)
	}
	_, body = ask("POST", "/echo", "text/html; charset=utf-8", "ümlaut")
	if err := json.Unmarshal([]byte(body), &e); err != nil || e.Body != "ümlaut" || e.IsBase64Encoded {
		t.Errorf("%q, %v, %v", e.Body, e.IsBase64Encoded, err)
	}

	for path, want := range map[string]struct {
		status            int
		contentType, body string
	}{
		"/page":   {404, "text/html", "<p>ü</p>"},
		"/binary": {200, "image/png", "\x00\xff"},
		"/bare":   {200, "application/json", `"just text"`},
		"/wrong":  {502, "text/plain; charset=utf-8", "Internal Server Error\n"},
		"/error":  {502, "text/plain; charset=utf-8", "Internal Server Error\n"},
	} {
		resp, body := ask("GET", path, "", "")
		if resp.StatusCode != want.status || resp.Header.Get("Content-Type") != want.contentType || body != want.body {
			t.Errorf("%s: %s %v %q", path, resp.Status, resp.Header, body)
		}
	}
	if resp, _ := ask("POST", "/echo", "text/plain", strings.Repeat("x", maxPayload+1)); resp.StatusCode != 413 {
		t.Errorf("a request of more than 6 MB: %s", resp.Status)
	}
}

// TestURLThrottled checks that a client of a busy function gets status 429.
func TestURLThrottled(t *testing.T) {
	f, _ := open(t, func(c *Config) { c.Concurrency = 1 })
	srv := httptest.NewServer(URL{Function: f})
	defer srv.Close()
	done := make(chan error, 1)
	go func() {
		_, err := f.invoke([]byte(`{"Do":"sleep","N":1000}`), "")
		done <- err
	}()
	for len(f.Instances()) == 0 || f.Instances()[0].RequestID == "" {
		time.Sleep(time.Millisecond)
	}
	resp, err := http.Get(srv.URL + "/echo")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("%s", resp.Status)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
