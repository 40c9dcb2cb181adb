package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/inbound"
)

// freeAddress returns an address of this machine at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// exchange sends a request and returns the status and the body.
func exchange(t *testing.T, method, url, body string, header http.Header) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// newHub returns a hub that verifies each request for a subscription before it accepts it, and the form of the last one.
func newHub(t *testing.T) (hub *httptest.Server, form url.Values) {
	t.Helper()
	form = url.Values{}
	hub = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		maps.Copy(form, r.PostForm)
		q := url.Values{"hub.mode": form["hub.mode"], "hub.topic": form["hub.topic"], "hub.challenge": {"prove it"}}
		if status, text := exchange(t, "GET", form.Get("hub.callback")+"&"+q.Encode(), "", nil); status != 200 || text != "prove it" {
			http.Error(w, text, http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	t.Cleanup(hub.Close)
	return hub, form
}

// runCommand runs a command line, and returns its exit status and its output with its errors.
func runCommand(ctx context.Context, args ...string) (exit, string) {
	var text bytes.Buffer
	cmd := root()
	cmd.SetOut(&text)
	cmd.SetErr(&text)
	status := execute(ctx, cmd, args)
	return status, text.String()
}

// TestInbound crawls with an endpoint. A hub, which 'subscribe' asks, verifies the subscription and notifies the endpoint, and
// a site submits a page by IndexNow: the crawl fetches the feed again, the key file and the page.
func TestInbound(t *testing.T) {
	t.Setenv(inbound.TokenVariable, "0123456789abcdef")
	hits := make(chan string, 100)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits <- r.URL.Path
		if strings.HasSuffix(r.URL.Path, ".txt") && r.URL.Path != "/robots.txt" {
			_, _ = io.WriteString(w, strings.Trim(r.URL.Path, "/.tx"))
		}
	}))
	defer site.Close()
	expect := func(path string) {
		t.Helper()
		for deadline := time.After(30 * time.Second); ; {
			select {
			case got := <-hits:
				if got == path {
					return
				}
			case <-deadline:
				t.Fatalf("%s was not requested", path)
			}
		}
	}
	at := "http://" + freeAddress(t)
	hub, form := newHub(t)

	ctx, stop := context.WithCancel(t.Context())
	var crawl sync.WaitGroup
	var out bytes.Buffer
	crawl.Go(func() {
		_, text := runCommand(ctx, "crawl", "--data", filepath.Join(t.TempDir(), "d"), "--delay", "0s", "--recrawl=1/h", "--allow-net", "127.0.0.0/8",
			"--inbound", strings.TrimPrefix(at, "http://"), site.URL+"/feed")
		out.WriteString(text)
	})
	defer func() {
		stop()
		crawl.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	}()
	expect("/feed")
	for _, mode := range []string{"subscribe", "unsubscribe"} {
		args := []string{"subscribe", "--hub", hub.URL, "--at", at + "/", "--end=" + map[bool]string{true: "true", false: "false"}[mode == "unsubscribe"], site.URL + "/feed"}
		if status, text := runCommand(t.Context(), args...); status != exitOK || form.Get("hub.mode") != mode || form.Get("hub.lease_seconds") != "864000" {
			t.Fatalf("%s: exit status %d, %s %v", mode, status, text, form)
		}
	}
	m := hmac.New(sha512.New, []byte(form.Get("hub.secret")))
	m.Write([]byte("news"))
	signature := http.Header{"X-Hub-Signature": {"sha512=" + hex.EncodeToString(m.Sum(nil))}}
	if status, text := exchange(t, "POST", form.Get("hub.callback"), "news", signature); status != 202 {
		t.Fatalf("notification: %d %s", status, text)
	}
	expect("/feed")
	if status, text := exchange(t, "GET", at+"/indexnow?key=abcdef12&url="+site.URL+"/new", "", nil); status != 202 {
		t.Fatalf("submission: %d %s", status, text)
	}
	expect("/abcdef12.txt")
	expect("/new")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--hub", "http://hub.example/", "--at", at}, "must be an https URL"},
		{[]string{"--hub", hub.URL}, "--hub and --at must be URLs"},
		{[]string{"--hub", site.URL + "/", "--at", at}, ""}, // it answers with 200
		{[]string{"--hub", at, "--at", at}, "the hub answered with status 404"},
	} {
		status, text := runCommand(t.Context(), append([]string{"subscribe", site.URL + "/feed"}, tt.args...)...)
		if !strings.Contains(text, tt.want) || (status == exitOK) != (tt.want == "") {
			t.Errorf("%v: %d %s", tt.args, status, text)
		}
	}
	if status, text := runCommand(t.Context(), "crawl", "--platform", "aws://x?bucket=b&partitions=1", "--inbound", ":1"); status != exitUsage || !strings.Contains(text, "orbweaver work --inbound") {
		t.Errorf("in a cloud: %d %s", status, text)
	}
}

// TestSlowClient checks that a client that sends its request slowly is cut off.
func TestSlowClient(t *testing.T) {
	addr := freeAddress(t)
	end, err := serveAt(addr, "requests", 200*time.Millisecond, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, "POST /indexnow HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if answer, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("%q, %v", answer, err)
	}
}
