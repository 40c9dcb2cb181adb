package experiment

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// wire is a way to fetch pages.
type wire struct {
	name    string
	closes  bool // the server closes each connection after one answer, as with HTTP/1.0
	http2   bool // over TLS
	streams int  // requests under way over a connection
}

// far is a host over sockets.
type far struct {
	trip  time.Duration // round trip time
	bytes int           // size of a page
}

// fetch lets another process fetch pages of hosts over a wire for a time, and returns its figures. Processors is the number that it may
// use; 0: all.
func (w wire) fetch(to far, hosts, processors int, d time.Duration) (f clientFigures, err error) {
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><title>A page</title>")
	for i := 0; page.Len() < to.bytes; i++ {
		fmt.Fprintf(&page, "<p>Paragraph %d of some words, %x and others, before the <a href=/%d>next link</a>.</p>\n", i, i*7919, i)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if w.closes {
			rw.Header().Set("Connection", "close")
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte(page.String())) // a client that goes away fails itself
	}))
	if to.trip > 0 {
		srv.Listener = farListener{srv.Listener, to.trip}
	}
	srv.EnableHTTP2 = w.http2
	scheme, start := "http", srv.Start
	if w.http2 {
		scheme, start = "https", srv.StartTLS
	}
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	start()
	defer srv.Close()
	j := clientJob{Streams: w.streams, Processors: processors, For: d}
	if w.http2 {
		j.Roots = srv.Certificate().Raw
	}
	for h := range hosts {
		j.Hosts = append(j.Hosts, fmt.Sprintf("%s://h%d.example.com:%d/", scheme, h, port))
	}
	if f, err = j.run(); err != nil {
		return f, fmt.Errorf("%s from %d hosts: %w", w.name, hosts, err)
	}
	return f, nil
}

// run runs [Client] in another process of this program, and adds the times of the process to its figures.
func (j *clientJob) run() (f clientFigures, err error) {
	in, err := json.Marshal(j)
	if err != nil {
		return f, err
	}
	self, err := os.Executable()
	if err != nil {
		return f, err
	}
	cmd := exec.Command(self, ClientCommand)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	began := time.Now()
	out, err := cmd.Output()
	f.Wall = time.Since(began)
	if err != nil {
		return f, err
	}
	f.User, f.System = cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()
	return f, json.Unmarshal(out, &f)
}

// farListener makes loopback as slow as a network with a round trip time. A connection takes one trip to open, and each answer
// one trip more.
type farListener struct {
	net.Listener
	trip time.Duration
}

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	f := &farConn{Conn: c, trip: l.trip, open: time.Now().Add(l.trip), queue: make(chan parcel, 1024)}
	go f.deliver() // until the server closes the connection
	return f, nil
}

// farConn is the server's side of a connection. What it writes is sent one trip later.
type farConn struct {
	net.Conn
	trip  time.Duration
	open  time.Time // when the client's first bytes arrive
	queue chan parcel
	once  sync.Once
}

// parcel is data under way; nil is the end of the connection.
type parcel struct {
	due  time.Time
	data []byte
}

func (c *farConn) deliver() {
	for p := range c.queue {
		time.Sleep(time.Until(p.due))
		if p.data == nil {
			_ = c.Conn.Close() // the client may have closed it
			return
		}
		_, _ = c.Conn.Write(p.data) // likewise
	}
}

func (c *farConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(time.Until(c.open))
	return n, err
}

func (c *farConn) Write(p []byte) (int, error) {
	c.queue <- parcel{time.Now().Add(c.trip), bytes.Clone(p)}
	return len(p), nil
}

func (c *farConn) Close() error {
	c.once.Do(func() { c.queue <- parcel{due: time.Now().Add(c.trip)} })
	return nil
}

// SetDeadline and SetWriteDeadline set no deadline for writes, which never wait. TLS sets one that has passed before it closes the connection,
// when data is still under way.
func (c *farConn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *farConn) SetWriteDeadline(time.Time) error { return nil }
