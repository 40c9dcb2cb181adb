package main

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base32"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

const userAgent = "orbweaver-bench/1"

// requestHead takes a path and a host.
const requestHead = "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: " + userAgent + "\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n\r\n"

// A loader loads pages whose URLs it knows. It does the minimum work of a crawler for a
// page: request and read it, find its links, look each up in a set, and write the WARC
// records with the payload's digest. It neither schedules nor commits.
type loader struct {
	scheme  string
	file    *os.File // guarded by mu
	mu      sync.Mutex
	client  *http.Client // over TLS; nil: each host has a connection without net/http
	zip     bool
	zippers sync.Pool // of *gzip.Writer: a few, which stay in the processor's caches
	records atomic.Uint64
	seed    maphash.Seed
	seen    [64]struct {
		mu   sync.Mutex
		urls map[uint64]struct{} // hashes
	}
}

// A getter loads the pages of one host, one after another.
type getter struct {
	*loader
	host    string
	conn    net.Conn
	request []byte // as sent
	in      []byte // buffer of the answer
	body    bytes.Buffer
	inflate gzip.Reader
	html    bytes.Buffer
	link    []byte
	out     bytes.Buffer // records of a page
}

// loadAll measures the loader on all pages of a web.
func loadAll(ctx context.Context, j job, web *simweb.Web) (*figures, error) {
	urls := make([][]string, web.Hosts())
	pages := 0
	for h := range urls {
		for p := range web.Host(h).Pages {
			urls[h] = append(urls[h], web.URL(h, p))
		}
		pages += len(urls[h])
	}
	watch, err := start(j)
	if err != nil {
		return nil, err
	}
	l, err := newLoader(&j)
	if err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for h := range urls {
		g.Go(func() error { return l.load(ctx, web.Host(h).Authority, urls[h]) })
	}
	if err := errors.Join(g.Wait(), l.file.Close()); err != nil {
		return nil, err
	}
	f, err := watch.stop(pages)
	if err != nil {
		return nil, err
	}
	return f, f.weigh(j.Dir)
}

func newLoader(j *job) (_ *loader, err error) {
	l := &loader{scheme: "http://", seed: maphash.MakeSeed(), zip: j.Compression != warc.None}
	for i := range l.seen {
		l.seen[i].urls = map[uint64]struct{}{}
	}
	if j.Web.TLS {
		roots, err := j.roots()
		if err != nil {
			return nil, err
		}
		l.scheme = "https://"
		l.client = &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 1, DisableCompression: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13},
		}}
	}
	name := "pages.warc"
	if l.zip {
		name += ".gz"
	}
	l.zippers.New = func() any {
		z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // fails only for levels out of range
		return z
	}
	l.file, err = os.Create(filepath.Join(j.Dir, name))
	return l, err
}

// load loads the pages of a host.
func (l *loader) load(ctx context.Context, host string, urls []string) error {
	g := &getter{loader: l, host: host, in: make([]byte, 128<<10)}
	defer g.close()
	for _, u := range urls {
		if err := g.page(ctx, u); err != nil {
			return fmt.Errorf("load %s: %w", u, err)
		}
	}
	return nil
}

func (g *getter) close() {
	if g.conn != nil {
		g.conn.Close()
		g.conn = nil
	}
}

func (g *getter) page(ctx context.Context, u string) error {
	exchange := g.exchange
	if g.client != nil {
		exchange = g.exchangeByLibrary
	}
	g.request = fmt.Appendf(g.request[:0], requestHead, u[len(g.scheme)+len(g.host):], g.host)
	head, body, err := exchange(ctx, u)
	if err != nil {
		return err
	}
	text := body
	if bytes.Contains(head, []byte("\r\nContent-Encoding: gzip\r\n")) {
		if err := g.inflate.Reset(bytes.NewReader(body)); err != nil {
			return err
		}
		g.html.Reset()
		if _, err := g.html.ReadFrom(&g.inflate); err != nil {
			return err
		}
		text = g.html.Bytes()
	}
	g.links(u, text)
	return g.record(u, head, body)
}

// exchange sends the request and reads the answer, which fits the buffer.
func (g *getter) exchange(ctx context.Context, _ string) (head, body []byte, err error) {
	if g.conn == nil {
		if g.conn, err = new(net.Dialer).DialContext(ctx, "tcp4", g.host); err != nil {
			return nil, nil, err
		}
	}
	if _, err := g.conn.Write(g.request); err != nil {
		return nil, nil, err
	}
	for have, whole := 0, 0; whole == 0 || have < whole; {
		n, err := g.conn.Read(g.in[have:])
		if err != nil {
			return nil, nil, err
		}
		have += n
		if end := bytes.Index(g.in[:have], []byte("\r\n\r\n")); whole == 0 && end >= 0 {
			head = g.in[:end+4]
			_, rest, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
			digits, _, _ := bytes.Cut(rest, []byte("\r\n"))
			length, err := strconv.Atoi(string(digits))
			if whole = len(head) + length; err != nil || whole > len(g.in) || !bytes.HasPrefix(head, []byte("HTTP/1.1 200 ")) {
				return nil, nil, fmt.Errorf("unexpected answer: %q", head)
			}
			body = g.in[len(head):whole]
		}
	}
	if bytes.Contains(head, []byte("\r\nConnection: close\r\n")) {
		g.close()
	}
	return head, body, nil
}

// exchangeByLibrary does the same with net/http.
func (g *getter) exchangeByLibrary(ctx context.Context, u string) (head, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header = http.Header{"User-Agent": {userAgent}, "Accept": {"*/*"}, "Accept-Encoding": {"gzip"}}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, nil, errors.New(resp.Status)
	}
	g.body.Reset()
	if _, err := g.body.ReadFrom(resp.Body); err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	b.WriteString("HTTP/1.1 200 OK\r\n")
	if err := resp.Header.Write(&b); err != nil {
		return nil, nil, err
	}
	b.WriteString("\r\n")
	return b.Bytes(), g.body.Bytes(), nil
}

// links finds the anchors of a page and adds their targets to the set.
func (g *getter) links(page string, b []byte) {
	for {
		i := bytes.IndexByte(b, '<')
		if i < 0 || i+3 > len(b) {
			return
		}
		if b = b[i+1:]; b[0] != 'a' || b[1] != ' ' {
			continue
		}
		tag, _, _ := bytes.Cut(b, []byte(">"))
		_, value, _ := bytes.Cut(tag, []byte("href="))
		if len(value) > 1 {
			value, _, _ = bytes.Cut(value[1:], value[:1]) // between the quotes
			g.add(page, value)
		}
	}
}

// add resolves a reference of a page, in the forms that the webs have, and adds it to the set.
func (g *getter) add(page string, ref []byte) {
	ref, _, _ = bytes.Cut(ref, []byte("#"))
	origin := len(g.scheme) + len(g.host)
	b := g.link[:0]
	switch {
	case bytes.HasPrefix(ref, []byte(g.scheme)):
	case bytes.HasPrefix(ref, []byte("/")):
		b = append(b, page[:origin]...)
	default:
		dir := page[:strings.LastIndexByte(page, '/')+1]
		for bytes.HasPrefix(ref, []byte("../")) && len(dir) > origin+1 {
			ref = ref[3:]
			dir = dir[:strings.LastIndexByte(dir[:len(dir)-1], '/')+1]
		}
		b = append(b, dir...)
	}
	g.link = append(b, ref...)
	hash := maphash.Bytes(g.seed, g.link)
	shard := &g.seen[hash>>58]
	shard.mu.Lock()
	shard.urls[hash] = struct{}{}
	shard.mu.Unlock()
}

// record writes the records of request and response.
func (g *getter) record(u string, head, body []byte) error {
	const form = "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012x>\r\nWARC-Target-URI: %s\r\nWARC-Date: %s\r\n" +
		"%sContent-Type: application/http;msgtype=%[1]s\r\nContent-Length: %d\r\n\r\n"
	id, now, sum := g.records.Add(2), time.Now().UTC().Format(time.RFC3339), sha1.Sum(body)
	digest := "WARC-Payload-Digest: sha1:" + base32.StdEncoding.EncodeToString(sum[:]) + "\r\n"
	other := fmt.Sprintf("WARC-Concurrent-To: <urn:uuid:00000000-0000-4000-8000-%012x>\r\n", id)
	g.out.Reset()
	err := errors.Join(
		g.append(fmt.Appendf(nil, form, "response", id, u, now, digest, len(head)+len(body)), head, body),
		g.append(fmt.Appendf(nil, form, "request", id+1, u, now, other, len(g.request)), g.request))
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	_, err = g.file.Write(g.out.Bytes())
	return err
}

// append appends the parts of a record to out, as one gzip member unless records are plain.
func (g *getter) append(parts ...[]byte) error {
	var w io.Writer = &g.out
	if g.zip {
		z := g.zippers.Get().(*gzip.Writer)
		defer g.zippers.Put(z)
		z.Reset(w)
		w = z
	}
	for _, part := range append(parts, []byte("\r\n\r\n")) {
		if _, err := w.Write(part); err != nil {
			return err
		}
	}
	if z, ok := w.(*gzip.Writer); ok {
		return z.Close()
	}
	return nil
}
