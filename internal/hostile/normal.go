package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

const (
	normalHosts = 4
	normalPages = 200                // good pages, on all normal hosts together
	nameSuffix  = ".hostile.example" // suffix of the names that Lookup resolves
	largeBody   = 3 << 19            // size of the largest pages, in bytes
	besidePage  = 1                  // index of the page that the host of each case serves too
	htmlType    = "text/html; charset=utf-8"
)

// Page is a good page.
type Page struct {
	Type   string
	Coding string // content coding
	Body   []byte // as sent, in the content coding
	chunks int    // bytes per chunk; 0: sent with a Content-Length
}

func pagePath(i int) string { return "/page/" + strconv.Itoa(i) }

// pageAt returns the i-th page, which is the same each time.
func pageAt(i int) Page {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	bytesOf := func(n int) []byte {
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		return b
	}
	switch i % 8 {
	case 0: // all byte values
		b := make([]byte, 256, 1280)
		for j := range b {
			b[j] = byte(j)
		}
		return Page{Type: "application/octet-stream", Body: append(b, bytesOf(1024)...)}
	case 1:
		return Page{Type: htmlType, Body: prose(r, i, 2000+r.IntN(20_000))}
	case 2:
		return Page{Type: htmlType, Coding: "gzip", Body: gzipped(prose(r, i, 5000+r.IntN(50_000)))}
	case 3:
		return Page{Type: htmlType, Body: prose(r, i, 3000+r.IntN(9000)), chunks: 1 + r.IntN(700)}
	case 4: // text that could be mistaken for the end of a record
		return Page{Type: "text/plain", Body: fmt.Appendf(nil,
			"page %d\r\n\r\n\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n\x1f\x8b\x08\x00\x00\n\n\x00\r", i)}
	case 5: // the smallest
		return Page{Type: "text/plain", Body: bytesOf(i / 8 % 3)}
	case 6:
		return Page{Type: "image/png", Body: bytesOf(60_000 + r.IntN(20_000)), chunks: 4096}
	}
	if i%40 == 7 {
		return Page{Type: "application/pdf", Body: bytesOf(largeBody)}
	}
	return Page{Type: "application/json", Coding: "gzip", Body: gzipped(bytesOf(3000 + i)), chunks: 1000}
}

// prose returns HTML without links.
func prose(r *rand.Rand, i, size int) []byte {
	b := fmt.Appendf(nil, "<!doctype html><title>Page %d</title><p>", i)
	for len(b) < size {
		b = fmt.Appendf(b, "%x ", r.Uint32())
	}
	return b
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// Pages returns all good pages by URL: those of the normal hosts, and one at the host of each
// case that can serve it.
func (s *Server) Pages() map[string]Page {
	all := map[string]Page{}
	for i := range normalPages {
		all["http://"+s.normal[i%normalHosts].l.Addr().String()+pagePath(i)] = pageAt(i)
	}
	for i := range s.cases {
		c := &s.cases[i]
		if c.Whole || c.Alone || c.lookup != nil {
			continue
		}
		scheme := "http://"
		if c.secure != nil {
			scheme = "https://"
		}
		all[scheme+s.hosts[i].l.Addr().String()+pagePath(besidePage)] = pageAt(besidePage)
	}
	return all
}

// Index returns the URL of a page that links to all cases and all good pages. It omits
// robots.txt, which a crawler requests by itself, and the case that would make the crawler wait for a day.
func (s *Server) Index() string { return "http://" + s.normal[0].l.Addr().String() + "/" }

func (s *Server) index() []byte {
	var b bytes.Buffer
	b.WriteString("<!doctype html><title>Index</title>\n")
	for i := range s.cases {
		if !s.cases[i].Robots && !s.cases[i].Day {
			fmt.Fprintf(&b, "<a href=%q>%s</a>\n", s.URL(i), s.cases[i].Name)
		}
	}
	for _, u := range slices.Sorted(maps.Keys(s.Pages())) {
		fmt.Fprintf(&b, "<a href=%q>page</a>\n", u)
	}
	return b.Bytes()
}

// reply is a good answer.
type reply struct {
	status int
	Page
}

// answer returns the answer to a request that is not for the URL of a case.
func (s *Server) answer(path string) reply {
	if path == "/" {
		return reply{200, Page{Type: htmlType, Body: s.index()}}
	}
	if n, ok := strings.CutPrefix(path, "/page/"); ok {
		if i, err := strconv.Atoi(n); err == nil && i >= 0 && i < normalPages {
			return reply{200, pageAt(i)}
		}
	}
	return reply{404, Page{Type: "text/plain", Body: []byte("not here\n")}}
}

// encode returns the bytes of the answer over HTTP/1.1.
func (r reply) encode() []byte {
	b := fmt.Appendf(nil, "HTTP/1.1 %d OK\r\nContent-Type: %s\r\n", r.status, r.Type)
	if r.Coding != "" {
		b = fmt.Appendf(b, "Content-Encoding: %s\r\n", r.Coding)
	}
	if r.chunks == 0 {
		b = fmt.Appendf(b, "Content-Length: %d\r\n\r\n", len(r.Body))
		return append(b, r.Body...)
	}
	b = append(b, "Transfer-Encoding: chunked\r\n\r\n"...)
	for rest := r.Body; len(rest) > 0; {
		n := min(r.chunks, len(rest))
		b = fmt.Appendf(b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	return append(b, "0\r\n\r\n"...)
}
