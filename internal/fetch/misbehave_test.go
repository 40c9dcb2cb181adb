package fetch

import (
	"context"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

const okLine = "HTTP/1.1 200 OK\r\n"

var misbehaviours = []struct {
	name      string
	serve     func(net.Conn)
	change    func(*Config)
	want      blobschema.Outcome
	status    uint16
	temporary bool
	detail    string // substring, because most texts come from net/http
	payload   string // stored
}{
	{
		name: "closes at once", serve: func(c net.Conn) { readRequest(c) },
		want: blobschema.OutcomeCut, temporary: true, detail: "connection ended before the header",
	},
	{
		name: "resets", serve: func(c net.Conn) {
			readRequest(c)
			c.(*net.TCPConn).SetLinger(0)
		},
		want: blobschema.OutcomeCut, temporary: true, detail: "connection ended before the header",
	},
	{
		name: "silent", serve: hang, change: func(cfg *Config) { cfg.HeaderTimeout = 30 * time.Millisecond },
		want: blobschema.OutcomeTimeout, temporary: true, detail: "no answer in time",
	},
	{
		name: "silent within the header", serve: func(c net.Conn) { answer(okLine + "Content-Type: te")(c); hang(c) },
		change: func(cfg *Config) { cfg.HeaderTimeout = 30 * time.Millisecond },
		want:   blobschema.OutcomeTimeout, temporary: true, detail: "no answer in time",
	},
	{
		name: "silent for the whole time", serve: hang, change: func(cfg *Config) { cfg.Timeout = 30 * time.Millisecond },
		want: blobschema.OutcomeTimeout, temporary: true, detail: "took too long",
	},
	{
		name: "silent within the body", serve: func(c net.Conn) { answer(okLine + "Content-Length: 10\r\n\r\nhalf")(c); hang(c) },
		change: func(cfg *Config) { cfg.Timeout = 50 * time.Millisecond },
		want:   blobschema.OutcomeTimeout, status: 200, temporary: true, detail: "took too long",
	},
	{
		name: "one byte after another", serve: func(c net.Conn) {
			answer(okLine + "Content-Length: 1000000\r\n\r\n")(c)
			for tick := time.NewTicker(5 * time.Millisecond); ; <-tick.C {
				if _, err := io.WriteString(c, "x"); err != nil {
					tick.Stop()
					return
				}
			}
		},
		change: func(cfg *Config) { cfg.Timeout, cfg.HeaderTimeout = 60*time.Millisecond, 30*time.Millisecond },
		want:   blobschema.OutcomeTimeout, status: 200, temporary: true, detail: "took too long",
	},
	{
		name: "cut within the header", serve: answer(okLine + "Content-Type: te"),
		want: blobschema.OutcomeCut, temporary: true, detail: "connection ended before the header",
	},
	{
		name: "cut within the body", serve: answer(okLine + "Content-Length: 10\r\n\r\nhalf"),
		want: blobschema.OutcomeCut, status: 200, temporary: true, detail: "connection ended within the body",
	},
	{
		name: "cut within a chunk", serve: answer(okLine + "Transfer-Encoding: chunked\r\n\r\n5\r\nab"),
		want: blobschema.OutcomeCut, status: 200, temporary: true, detail: "connection ended within the body",
	},
	{
		name: "cut before the last chunk", serve: answer(okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"),
		want: blobschema.OutcomeCut, status: 200, temporary: true, detail: "connection ended within the body",
	},
	{
		name: "longer than it says", serve: answer(okLine + "Content-Length: 4\r\n\r\nbodyMORE"),
		want: blobschema.OutcomeOK, status: 200, payload: "body",
	},
	{
		name: "as long as the connection", serve: answer("HTTP/1.0 200 OK\r\n\r\nbody"),
		want: blobschema.OutcomeOK, status: 200, payload: "body",
	},
	{
		name: "chunks with extensions and trailer", serve: answer(okLine + "Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n2;a=b\r\nbo\r\n2\r\ndy\r\n0\r\nX: y\r\n\r\n"),
		want: blobschema.OutcomeOK, status: 200, payload: "body",
	},
	{
		name: "bad chunk", serve: answer(okLine + "Transfer-Encoding: chunked\r\n\r\nzz\r\nbody"),
		want: blobschema.OutcomeProtocol, status: 200, detail: "invalid byte in chunk length",
	},
	{
		name: "chunk without end", serve: answer(okLine + "Transfer-Encoding: chunked\r\n\r\n2\r\nbody\r\n0\r\n\r\n"),
		want: blobschema.OutcomeProtocol, status: 200, detail: "malformed chunked encoding",
	},
	{
		name: "giant chunk", serve: answer(okLine + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nbody"),
		want: blobschema.OutcomeProtocol, status: 200, detail: "chunk length too large",
	},
	{
		name: "endless chunk extension", serve: func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, okLine+"Transfer-Encoding: chunked\r\n\r\n1;")
			endless(c, "x")
		},
		want: blobschema.OutcomeProtocol, status: 200, detail: "header line too long",
	},
	{
		name: "chunks of nothing but extension", serve: func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, okLine+"Transfer-Encoding: chunked\r\n\r\n")
			endless(c, "1;"+strings.Repeat("x", 1000)+"\r\na\r\n")
		},
		want: blobschema.OutcomeProtocol, status: 200, detail: "chunked encoding contains too much non-data",
	},
	{
		name: "endless trailer", serve: func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, okLine+"Transfer-Encoding: chunked\r\n\r\n0\r\n")
			endless(c, "X: y\r\n")
		},
		want: blobschema.OutcomeProtocol, status: 200, detail: "suspiciously long trailer",
	},
	{
		name: "endless header field", serve: func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, okLine+"X: ")
			endless(c, strings.Repeat("y", 1000))
		},
		want: blobschema.OutcomeProtocol, detail: "headers exceeded 65536 bytes",
	},
	{
		name: "endless header fields", serve: func(c net.Conn) {
			readRequest(c)
			io.WriteString(c, okLine)
			endless(c, "X: y\r\n")
		},
		want: blobschema.OutcomeProtocol, detail: "headers exceeded 65536 bytes",
	},
	{
		name: "endless interim answers", serve: func(c net.Conn) {
			readRequest(c)
			endless(c, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
		},
		want: blobschema.OutcomeProtocol, detail: "headers exceeded 65536 bytes",
	},
	{
		name: "interim answer", serve: answer("HTTP/1.1 100 Continue\r\n\r\n" + okLine + "Content-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeOK, status: 200, payload: "body",
	},
	{
		name: "large header", serve: answer(okLine + "X: " + strings.Repeat("y", 60<<10) + "\r\nContent-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeOK, status: 200, payload: "body",
	},
	{
		name: "not HTTP", serve: answer("SSH-2.0-OpenSSH_9.6\r\n"),
		want: blobschema.OutcomeProtocol, detail: "malformed HTTP answer",
	},
	{
		name: "bytes", serve: answer("\x00\xff\x01\x02\r\n\r\n"),
		want: blobschema.OutcomeProtocol, detail: "malformed HTTP answer",
	},
	{
		name: "header without colon", serve: answer(okLine + "nonsense\r\n\r\n"),
		want: blobschema.OutcomeProtocol, detail: "malformed MIME header",
	},
	{
		name: "two lengths", serve: answer(okLine + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody!"),
		want: blobschema.OutcomeProtocol, detail: "bad Content-Length",
	},
	{
		name: "negative length", serve: answer(okLine + "Content-Length: -4\r\n\r\nbody!"),
		want: blobschema.OutcomeProtocol, detail: "bad Content-Length",
	},
	{
		name: "switches protocols", serve: func(c net.Conn) {
			answer("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")(c)
			hang(c)
		},
		want: blobschema.OutcomeProtocol, status: 101, detail: "answer switches protocols without a request",
	},
	{
		name: "odd status", serve: answer("HTTP/1.1 999 Request denied\r\nContent-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeServerError, status: 999, temporary: true, payload: "body",
	},
	{
		name: "not found", serve: answer("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeClientError, status: 404, payload: "body",
	},
	{
		name: "unavailable", serve: answer("HTTP/1.1 503 Unavailable\r\nContent-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeServerError, status: 503, temporary: true, payload: "body",
	},
	{
		name: "redirects to itself", serve: answer("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 4\r\n\r\nbody"),
		want: blobschema.OutcomeRedirect, status: 302, payload: "body",
	},
	{
		name: "nothing", serve: answer("HTTP/1.1 204 No Content\r\n\r\n"),
		want: blobschema.OutcomeOK, status: 204, payload: "",
	},
}

// TestFetchOutcomes requests servers that misbehave over raw connections.
func TestFetchOutcomes(t *testing.T) {
	for _, tt := range misbehaviours {
		t.Run(tt.name, func(t *testing.T) {
			var connections atomic.Int32
			host := rawServer(t, func(c net.Conn) {
				connections.Add(1)
				tt.serve(c)
			})
			out := testClient(t, tt.change).Fetch(context.Background(), ask(t, "http://"+host+"/"))
			wantOutcome(t, out, tt.want)
			p := out.Page
			if p.Status != tt.status || out.Temporary != tt.temporary ||
				!strings.Contains(p.Detail, tt.detail) || (p.Detail == "") != (tt.detail == "") {
				t.Errorf("status %d, temporary %v, detail %q", p.Status, out.Temporary, p.Detail)
			}
			if n := connections.Load(); n != 1 {
				t.Errorf("%d connections", n)
			}
			if tt.want >= blobschema.OutcomeRobots { // no answer
				if len(out.Record) != 0 || p.Digest != "" || p.Length != 0 || len(out.Links) != 0 {
					t.Errorf("something is kept: %+v", out)
				}
				return
			}
			if _, response := records(t, out); payload(t, response) != tt.payload {
				t.Errorf("stored %q", response)
			}
		})
	}
}

// endless writes s until the client closes the connection.
func endless(c net.Conn, s string) {
	block := strings.Repeat(s, 1+4096/len(s))
	for {
		if _, err := io.WriteString(c, block); err != nil {
			return
		}
	}
}
