package simweb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func serve(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := Serve(t.Context(), mustNew(t, c))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// ask writes raw requests to host h over one connection and returns everything that it receives.
func ask(t *testing.T, s *Server, h int, requests ...string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", s.Web().Host(h).Authority)
	if err != nil {
		return "", err
	}
	defer c.Close()
	for _, r := range requests {
		if _, err := io.WriteString(c, r); err != nil {
			return "", err
		}
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

func get(s *Server, h int, uri string, fields ...string) string {
	lines := append([]string{"GET " + uri + " HTTP/1.1", "Host: " + s.Web().Host(h).Authority}, fields...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// TestServerServesAnswers checks that a client gets the answers of Answer over a socket, for whole answers of
// all kinds.
func TestServerServesAnswers(t *testing.T) {
	cfg := everything()
	cfg.Names = false
	cfg.Connection.LatencyMin, cfg.Connection.LatencyMax = 0, 0
	cfg.SlowBody = 8 * time.Millisecond
	cfg.Pages = Pages{Min: 10, Max: 20}
	s := serve(t, cfg)
	w := s.Web()
	tr := &http.Transport{DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	asked := 0
	for h := range w.Hosts() {
		if w.Host(h).Down != FaultNone {
			continue
		}
		for p := -1; p < w.Host(h).Pages; p++ {
			url := "http://" + w.Host(h).Authority + "/robots.txt"
			if p >= 0 {
				url = w.URL(h, p)
			}
			want := w.Answer(Request{URL: url, AcceptGzip: true})
			if want.Fault != FaultNone {
				continue
			}
			asked++
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			req.Header.Set("Accept-Encoding", "gzip")
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != want.Status || string(body) != string(want.Body) {
				t.Errorf("%s: status %d, %d bytes, %v; want status %d, %d bytes", url, resp.StatusCode, len(body), err, want.Status, len(want.Body))
			}
			if resp.Header.Get("Date") == "" {
				t.Errorf("%s: no Date", url)
			}
			for _, f := range want.Header {
				switch f.Name {
				case "Transfer-Encoding", "Connection": // net/http removes these
					continue
				}
				if got := resp.Header.Get(f.Name); got != f.Value {
					t.Errorf("%s: %s is %q, want %q", url, f.Name, got, f.Value)
				}
			}
		}
	}
	if asked < 150 {
		t.Errorf("only %d answers compared", asked)
	}
}

func TestFaultsOverSockets(t *testing.T) {
	s := serve(t, Config{Seed: 4, Hosts: 4, Pages: Pages{Min: 200}, Down: DownShares{Refused: 0.25},
		Kinds: PageShares{Cut: 0.1, Reset: 0.1, Garbage: 0.1, Surplus: 0.1}, Connection: Connection{Chunked: 0.5}})
	w := s.Web()
	checked := make(map[kind]map[bool]bool)
	for h := range w.hosts {
		if w.hosts[h].down == FaultRefused {
			if _, err := net.Dial("tcp", w.Host(h).Authority); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("host %d is down: %v", h, err)
			}
			continue
		}
		for p, k := range w.hosts[h].kinds {
			if checked[k][w.hosts[h].chunked] {
				continue
			}
			if checked[k] == nil {
				checked[k] = make(map[bool]bool)
			}
			checked[k][w.hosts[h].chunked] = true
			want := w.Answer(Request{URL: w.URL(h, p)})
			got, err := ask(t, s, h, get(s, h, string(w.appendPath(nil, h, p)), "Connection: close"))
			head, body, _ := strings.Cut(got, "\r\n\r\n")
			chunked := strings.Contains(head, "chunked")
			switch k {
			case cut:
				if err != nil || !chunked && body != string(want.Body[:want.CutAt]) ||
					chunked && (len(body) < want.CutAt || strings.HasSuffix(body, "0\r\n\r\n")) {
					t.Errorf("cut: %d bytes of %d, chunked %v, %v", len(body), len(want.Body), chunked, err)
				}
			case reset:
				if !errors.Is(err, syscall.ECONNRESET) || got != "" {
					t.Errorf("reset: %q, %v", got, err)
				}
			case garbage:
				if got != string(want.Body) {
					t.Errorf("garbage: %q", got)
				}
			case surplus:
				announced := fmt.Sprintf("Content-Length: %d\r\n", len(want.Body))
				if !strings.Contains(head, announced) || !strings.HasPrefix(body, string(want.Body)) || len(body) == len(want.Body) {
					t.Errorf("surplus: %d bytes after\n%s", len(body), head)
				}
			case plain:
				if chunked != w.hosts[h].chunked || !strings.Contains(head, "200 OK") {
					t.Errorf("plain: %s", head)
				}
			}
		}
	}
	for _, k := range []kind{plain, cut, reset, garbage, surplus} {
		if len(checked[k]) == 0 {
			t.Errorf("kind %d was not met", k)
		}
	}
}

func TestSilenceEndsWithTheClientOrTheServer(t *testing.T) {
	s := serve(t, Config{Seed: 4, Hosts: 1, Pages: Pages{Min: 40}, Kinds: PageShares{Silent: 0.5}})
	w, p := s.Web(), 1
	for w.hosts[0].kinds[p] != silent {
		p++
	}
	c, err := net.Dial("tcp", w.Host(0).Authority)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, get(s, 0, string(w.appendPath(nil, 0, p))))
	c.SetReadDeadline(time.Now().Add(30 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, context.DeadlineExceeded) && !isTimeout(err) {
		t.Errorf("%d bytes, %v", n, err)
	}
	s.Close() // waits for the connection's goroutine: must not hang
	c.SetReadDeadline(time.Time{})
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection outlived the server")
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func TestRequestsPerConnection(t *testing.T) {
	s := serve(t, Config{Hosts: 1, Connection: Connection{MaxRequests: 3}})
	var requests []string
	for range 5 { // pipelined: the answers identify them
		requests = append(requests, get(s, 0, "/"))
	}
	got, _ := ask(t, s, 0, strings.Join(requests, ""))
	if n := strings.Count(got, "HTTP/1.1 200 OK"); n != 3 {
		t.Errorf("%d answers over one connection, want 3", n)
	}
	if n := strings.Count(got, "Connection: close"); n != 1 {
		t.Errorf("%d times Connection: close", n)
	}
}

func TestRequestForms(t *testing.T) {
	s := serve(t, Config{Hosts: 2, Connection: Connection{Gzip: 1}})
	to := "Host: " + s.Web().Host(1).Authority
	tail := "\r\nConnection: close\r\n\r\n"
	for name, tc := range map[string]struct{ request, want string }{
		"plain":        {"GET / HTTP/1.1\r\n" + to + tail, "200 OK"},
		"old":          {"GET / HTTP/1.0\r\n" + to + "\r\n\r\n", "200 OK"},
		"gzip":         {"GET / HTTP/1.1\r\n" + to + "\r\nAccept-Encoding: br, gzip" + tail, "Content-Encoding: gzip"},
		"unknown page": {"GET /x HTTP/1.1\r\n" + to + tail, "404 Not Found"},
		"unknown host": {"GET / HTTP/1.1\r\nHost: h9.site0.example" + tail, "421 "},
		"no host":      {"GET / HTTP/1.1" + tail, "421 "},
		"other method": {"POST / HTTP/1.1\r\n" + to + tail, "421 "},
		"body":         {"GET / HTTP/1.1\r\n" + to + "\r\nContent-Length: 3" + tail, "421 "},
		"no request":   {"hello\r\n\r\n", ""},
	} {
		got, _ := ask(t, s, 1, tc.request)
		if head, _, _ := strings.Cut(got, "\r\n\r\n"); !strings.Contains(head, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, head, tc.want)
		}
	}
	got, _ := ask(t, s, 1, "HEAD / HTTP/1.1\r\n"+to+tail)
	if !strings.HasSuffix(got, "\r\n\r\n") || !strings.Contains(got, "Content-Length: ") {
		t.Errorf("HEAD: %q", got)
	}
	if _, err := Serve(t.Context(), mustNew(t, Config{Names: true})); err == nil {
		t.Error("a web with names is served")
	}
}

func TestRecords(t *testing.T) {
	s := serve(t, Config{Hosts: 2, Connection: Connection{LatencyMin: 20 * time.Millisecond}})
	before := time.Now()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() { ask(t, s, 1, get(s, 1, "/", "Connection: close")) })
	}
	wg.Wait()
	ask(t, s, 1, get(s, 1, "/robots.txt")+get(s, 1, "/nothing", "Connection: close"))
	starts := s.Starts(1)
	if len(starts) != 5 || starts[0].Before(before) || starts[4].Sub(starts[3]) < 20*time.Millisecond || len(s.Starts(0)) != 0 {
		t.Errorf("starts %v after %v, of host 0 %v", starts, before, s.Starts(0))
	}
	root := s.Web().URL(1, 0)
	want := map[string]int{root: 3, root + "robots.txt": 1, root + "nothing": 1}
	if d := cmp.Diff(want, s.Requests()); d != "" {
		t.Error(d)
	}
}

func TestPorts(t *testing.T) {
	s := serve(t, Config{Hosts: 3})
	w := s.Web()
	if w.Config().Port == 0 || w.Seeds()[0] != fmt.Sprintf("http://127.1.0.1:%d/", w.Config().Port) {
		t.Errorf("port %d, seeds %v", w.Config().Port, w.Seeds())
	}
	if _, err := Serve(t.Context(), w); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a configured port that is taken: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	other, err := Serve(ctx, mustNew(t, Config{Hosts: 3}))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-other.done
	other.Close()
	if _, err := net.Dial("tcp", other.Web().Host(0).Authority); err == nil {
		t.Error("the server outlived its context")
	}
}
