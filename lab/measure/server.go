package measure

import (
	"hash/fnv"
	"time"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Server describes the connections of a host of a [Lab].
type Server struct {
	Connect  time.Duration // time to open a connection
	Close    time.Duration // time to close a connection, counted with its first request
	Response time.Duration // mean response time of its URLs
	Spread   float64       // 0 to 1; each URL takes a fixed time, from 1-Spread to 1+Spread of Response
	// PerConnection is the number of requests after which the server closes a connection; 0: no limit. It also closes a
	// connection that idles for IdleTimeout; 0: 5 s.
	PerConnection int
	IdleTimeout   time.Duration
	// HTTP2 lets one connection carry several requests at once, each as fast as alone.
	HTTP2 bool
}

// ResponseOf returns the response time of a URL.
func (s Server) ResponseOf(url string) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write([]byte(url)) // never fails
	u := float64(h.Sum64()*0x9e3779b97f4a7c15>>11) / (1 << 53)
	share := 1 + float64(s.Spread*(2*u-1))
	return max(time.Millisecond, time.Duration(float64(s.Response)*share))
}

// server holds the connections of a host.
type server struct {
	Server
	open []*connection
}

// connection is an open connection.
type connection struct {
	served int // requests, including those under way
	busy   int // requests under way
	idle   time.Duration
}

// exchange is one request over a connection.
type exchange struct {
	conn              *connection
	connect, response time.Duration
	took              time.Duration // total time
	http2, closes     bool
}

func (l *lab) server(host weburl.Host) *server {
	s := l.servers[host]
	if s == nil {
		s = &server{Server: l.cfg.Server(string(host))}
		if s.IdleTimeout == 0 {
			s.IdleTimeout = 5 * time.Second
		}
		l.servers[host] = s
	}
	return s
}

// ask begins a request, over an open connection if there is a free one.
func (s *server) ask(now time.Duration, url string) exchange {
	e := exchange{response: s.ResponseOf(url), http2: s.HTTP2}
	kept := s.open[:0]
	for _, c := range s.open {
		if c.busy == 0 && now > c.idle+s.IdleTimeout {
			continue
		}
		kept = append(kept, c)
		if c.busy == 0 || s.HTTP2 {
			e.conn = c
		}
	}
	s.open = kept
	if e.conn == nil {
		e.conn, e.connect = &connection{}, max(s.Connect, time.Microsecond)
		e.took = e.connect + s.Close
		s.open = append(s.open, e.conn)
	}
	e.took += e.response
	c := e.conn
	c.busy++
	if c.served++; s.PerConnection > 0 && c.served >= s.PerConnection {
		e.closes = true
		for i, o := range s.open {
			if o == c {
				s.open = append(s.open[:i], s.open[i+1:]...)
				break
			}
		}
	}
	return e
}

// end ends a request, if it has a connection.
func (e *exchange) end(now time.Duration) {
	if e.conn != nil {
		e.conn.busy--
		e.conn.idle = now
	}
}

// observe writes the observations of a fetcher into out.
func (e *exchange) observe(out *actor.Outcome) {
	out.Connect, out.Response, out.Reused = e.connect, e.response, e.connect == 0
	out.Closed, out.HTTP2 = e.closes, e.http2
}
