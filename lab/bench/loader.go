package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/net/html"
	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

const (
	pagesPerFile = 1000 // as the crawl has it
	userAgent    = "orbweaver-bench/1"
	token        = "orbweaver-bench"
)

// loader loads pages whose URLs it is given: the least that a crawler has to do per page,
// without finding, keeping, ordering or committing anything. It is meant to be fast: as
// many writers as processors look at bodies and hold all large buffers, so that these stay
// in the caches however many hosts are asked.
type loader struct {
	dir     string
	ending  string // of file names
	client  *http.Client
	header  http.Header
	fields  []warc.HeaderField // header, for the record
	writers chan *writer
}

// writer turns answers into records. It writes files of its own.
type writer struct {
	id      int
	encoder *warc.Encoder
	fields  []warc.HeaderField
	head    []byte
	data    []byte // of the file being filled
	pages   int    // in it
	files   int    // written
	links   int    // start tags, so that the tokens are not for nothing
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
	if err := newLoader(j.Dir, j.Compression).load(ctx, urls); err != nil {
		return nil, err
	}
	f, err := watch.stop(pages)
	if err != nil {
		return nil, err
	}
	return f, f.weigh(j.Dir)
}

func newLoader(dir string, c warc.Compression) *loader {
	l := &loader{
		dir: dir, ending: "warc.gz",
		client: &http.Client{Transport: &http.Transport{
			MaxIdleConnsPerHost: 1, DisableCompression: true,
			DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: -1}).DialContext,
		}},
		fields: []warc.HeaderField{
			{Name: "User-Agent", Value: userAgent},
			{Name: "Accept", Value: "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"},
			{Name: "Accept-Encoding", Value: "gzip"},
		},
		header:  http.Header{},
		writers: make(chan *writer, runtime.GOMAXPROCS(0)),
	}
	for _, f := range l.fields {
		l.header.Set(f.Name, f.Value)
	}
	if c == warc.None {
		l.ending = "warc"
	}
	for i := range cap(l.writers) {
		l.writers <- &writer{id: i, encoder: warc.NewEncoder(c)}
	}
	return l
}

// load loads the URLs of each host one after another, all hosts at once, and returns when
// every file is written.
func (l *loader) load(ctx context.Context, hosts [][]string) error {
	defer l.client.CloseIdleConnections()
	g, ctx := errgroup.WithContext(ctx)
	for _, urls := range hosts {
		g.Go(func() error {
			var body bytes.Buffer
			for _, u := range urls {
				if err := l.page(ctx, u, &body); err != nil {
					return fmt.Errorf("load %s: %w", u, err)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for range cap(l.writers) {
		if err := (<-l.writers).flush(l); err != nil {
			return err
		}
	}
	return nil
}

func (l *loader) page(ctx context.Context, raw string, body *bytes.Buffer) error {
	u, err := url.Parse(raw)
	if err != nil {
		return err
	}
	began := time.Now()
	req := (&http.Request{Method: http.MethodGet, URL: u, Host: u.Host, Header: l.header}).WithContext(ctx)
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body.Reset()
	if _, err := body.ReadFrom(resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	w := <-l.writers
	defer func() { l.writers <- w }()
	if err := w.tokens(body.Bytes()); err != nil {
		return err
	}
	if err := w.record(l, req, resp, began, body.Bytes()); err != nil {
		return err
	}
	if w.pages++; w.pages < pagesPerFile {
		return nil
	}
	return w.flush(l)
}

// tokens cuts a page into its tokens and looks no further.
func (w *writer) tokens(body []byte) error {
	z := html.NewTokenizer(bytes.NewReader(body))
	for {
		switch z.Next() {
		case html.StartTagToken:
			w.links++
		case html.ErrorToken:
			if err := z.Err(); err != io.EOF {
				return err
			}
			return nil
		}
	}
}

// record appends request and response to the file being filled.
func (w *writer) record(l *loader, req *http.Request, resp *http.Response, began time.Time, body []byte) error {
	raw, addr := req.URL.String(), req.URL.Hostname()
	w.fields = append(append(w.fields[:0], warc.HeaderField{Name: "Host", Value: req.Host}), l.fields...)
	w.head = warc.AppendHTTPRequestHead(w.head[:0], req.Method, req.URL.RequestURI(), w.fields)
	data, id, err := w.encoder.Append(w.data, &warc.Record{
		Type: warc.TypeRequest, Date: began, TargetURI: raw, IPAddress: addr, Header: w.head,
	})
	if err != nil {
		return err
	}
	w.fields = w.fields[:0]
	for name, values := range resp.Header {
		for _, v := range values {
			w.fields = append(w.fields, warc.HeaderField{Name: name, Value: v})
		}
	}
	w.head = warc.AppendHTTPResponseHead(w.head[:0], resp.Proto, resp.StatusCode, http.StatusText(resp.StatusCode), w.fields)
	w.data, _, err = w.encoder.Append(data, &warc.Record{
		Type: warc.TypeResponse, Date: began, TargetURI: raw, IPAddress: addr, ConcurrentTo: id, Header: w.head, Body: body,
	})
	return err
}

// flush writes the file being filled, if it has pages.
func (w *writer) flush(l *loader) error {
	if w.pages == 0 {
		return nil
	}
	name := filepath.Join(l.dir, fmt.Sprintf("%02d-%05d.%s", w.id, w.files, l.ending))
	err := os.WriteFile(name, w.data, 0o644)
	w.data, w.pages = w.data[:0], 0
	w.files++
	return err
}
