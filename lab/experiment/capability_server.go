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
	"slices"
	"strings"
	"sync"
	"time"
)

// wire is a way to fetch pages.
type wire struct {
	name    string
	closes  bool // the server closes each connection after one answer, as with HTTP/1.0
	http2   bool // over TLS
	streams int  // requests under way to a host
}

// socketTrial is a measurement over sockets.
type socketTrial struct {
	wire
	trip       time.Duration // round trip time
	bytes      int           // size of a page
	hosts      int
	processors int // of the fetcher; 0: all
	time       time.Duration

	rounds []clientFigures
}

// runRounds runs all trials in each round, so that the trials of a round share the load of the machine.
func runRounds(rounds int, trials []*socketTrial) error {
	for range rounds {
		for _, t := range trials {
			f, err := t.run()
			if err != nil {
				return fmt.Errorf("%s from %d hosts: %w", t.name, t.hosts, err)
			}
			t.rounds = append(t.rounds, f)
		}
	}
	return nil
}

// median returns the median of the rounds.
func (t *socketTrial) median(of func(*clientFigures) float64) float64 {
	var values []float64
	for i := range t.rounds {
		values = append(values, of(&t.rounds[i]))
	}
	return middle(values)
}

// over returns the median ratio to another trial in the same round.
func (t *socketTrial) over(base *socketTrial, of func(*clientFigures) float64) float64 {
	var ratios []float64
	for i := range t.rounds {
		ratios = append(ratios, of(&t.rounds[i])/of(&base.rounds[i]))
	}
	return middle(ratios)
}

// middle returns the median of an odd number of values.
func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// run serves pages to a process that fetches them.
func (t *socketTrial) run() (f clientFigures, err error) {
	var page strings.Builder
	page.WriteString("<!DOCTYPE html><title>A page</title>")
	for i := 0; page.Len() < t.bytes; i++ {
		fmt.Fprintf(&page, "<p>Paragraph %d of some words, %x and others, before the <a href=/%d>next link</a>.</p>\n", i, i*7919, i)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		if t.closes {
			rw.Header().Set("Connection", "close")
		}
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte(page.String())) // a client that goes away fails itself
	}))
	if t.trip > 0 {
		srv.Listener = farListener{srv.Listener, t.trip}
	}
	srv.EnableHTTP2 = t.http2
	scheme, start := "http", srv.Start
	if t.http2 {
		scheme, start = "https", srv.StartTLS
	}
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	start()
	defer srv.Close()
	j := clientJob{Streams: t.streams, Processors: t.processors, For: t.time}
	if t.http2 {
		j.Roots = srv.Certificate().Raw
	}
	for h := range t.hosts {
		j.Hosts = append(j.Hosts, fmt.Sprintf("%s://h%d.example.com:%d/", scheme, h, port))
	}
	return j.run()
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

// farConn is the server's side of a connection. It sends data one trip after it was written.
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

// SetDeadline and SetWriteDeadline set no deadline for writes. Before package tls closes a connection, it sets one that has
// passed, which would stop the data under way.
func (c *farConn) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *farConn) SetWriteDeadline(time.Time) error { return nil }
