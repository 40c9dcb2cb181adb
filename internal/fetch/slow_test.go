package fetch

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// steady sends n pieces of 100 bytes in as many times 5 ms, 20 kB/s, after a link.
func steady(n int) func(net.Conn) {
	return func(c net.Conn) {
		answer(okLine + "Content-Type: text/html\r\nConnection: close\r\n\r\n<a href=/first>x</a>")(c)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for range n {
			<-tick.C
			if _, err := io.WriteString(c, strings.Repeat("x", 100)); err != nil {
				return
			}
		}
	}
}

// TestFetchSlow requests answers that take longer than the timeout.
func TestFetchSlow(t *testing.T) {
	const timeout = 600 * time.Millisecond
	for _, tt := range []struct {
		name      string
		serve     func(net.Conn)
		longest   time.Duration
		robots    bool
		want      blobschema.Outcome
		truncated string
		least     time.Duration // that it takes
	}{
		{"header is late", hang, 0, false, blobschema.OutcomeTimeout, "", timeout},
		{"body is steady", steady(150), 0, false, blobschema.OutcomeOK, "", timeout},
		{"body has no end", steady(1e6), 0, false, blobschema.OutcomeOK, warc.TruncatedTime, Patience * timeout},
		{"body stalls after the timeout", func(c net.Conn) { steady(125)(c); hang(c) }, 0, false, blobschema.OutcomeTimeout, "", timeout},
		{"step is short", steady(1e6), timeout / 2, false, blobschema.OutcomeOK, warc.TruncatedTime, timeout / 2},
		{"header is late in a short step", hang, timeout / 2, false, blobschema.OutcomeTimeout, "", timeout / 2},
		{"robots.txt has no end", steady(1e6), 0, true, blobschema.OutcomeTimeout, "", timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			req := ask(t, "http://"+rawServer(t, tt.serve)+"/")
			req.Longest, req.Robots = tt.longest, tt.robots
			begun := time.Now()
			out := testClient(t, func(cfg *Config) { cfg.Timeout = timeout }).Fetch(context.Background(), req)
			took := time.Since(begun)
			wantOutcome(t, out, tt.want)
			if took < tt.least {
				t.Errorf("it ended after %v", took)
			}
			if out.Page.Truncated != tt.truncated || out.Temporary != (tt.want == blobschema.OutcomeTimeout) {
				t.Errorf("truncated %q, temporary %v", out.Page.Truncated, out.Temporary)
			}
			if tt.want != blobschema.OutcomeOK {
				return
			}
			if _, response := records(t, out); strings.Contains(response, "\r\nWARC-Truncated: time\r\n") != (tt.truncated != "") {
				t.Error("the record's mark is wrong")
			}
			if len(out.Links) != 1 {
				t.Errorf("links %v", out.Links)
			}
		})
	}
}

// TestFetchQueuesForMemory checks that a request that waits for a large buffer counts as one whose body arrives
// steadily: it continues, and in the end the part received is the answer.
func TestFetchQueuesForMemory(t *testing.T) {
	t.Parallel()
	const timeout = 200 * time.Millisecond
	body := strings.Repeat("x", freeBuffer+1)
	host := rawServer(t, answer(okLine+"Connection: close\r\n\r\n"+body))
	c := testClient(t, func(cfg *Config) { cfg.Timeout, cfg.MaxLarge = timeout, 1 })
	c.large <- struct{}{}
	out := c.Fetch(context.Background(), ask(t, "http://"+host+"/"))
	if wantOutcome(t, out, blobschema.OutcomeOK); out.Page.Truncated != warc.TruncatedTime {
		t.Errorf("truncated %q", out.Page.Truncated)
	}
	time.AfterFunc(2*timeout, func() { <-c.large })
	out = c.Fetch(context.Background(), ask(t, "http://"+host+"/"))
	if wantOutcome(t, out, blobschema.OutcomeOK); out.Page.BodyBytes != int64(len(body)) {
		t.Errorf("%d bytes, truncated %q", out.Page.BodyBytes, out.Page.Truncated)
	}
}
