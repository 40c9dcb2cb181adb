package query

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/function"
	"github.com/orbweaver/orbweaver/internal/search"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/platform"
)

// cloud is a deployment with a search page.
type cloud struct {
	t        *testing.T
	platform *platform.Platform
	log      *bytes.Buffer
	query    *Handler
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	p, err := drivers.Memory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	p.Exclusive = false
	c := &cloud{t: t, platform: p, log: &bytes.Buffer{}}
	environment := map[string]string{"ORBWEAVER_PLATFORM": "memory"}
	open := func(context.Context, string, platform.Meter) (*platform.Platform, error) { return p, nil }
	f, err := function.On(open, func(name string) string { return environment[name] }, c.log)
	if err != nil {
		t.Fatal(err)
	}
	c.query = New(f)
	return c
}

// begin creates a crawl.
func (c *cloud) begin(want blobschema.Crawl, seed string) {
	c.t.Helper()
	u, err := weburl.Parse(seed)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := service.New(c.platform, service.Config{})
	if err == nil {
		_, _, _, err = s.Begin(want, crawl.Seeds([]weburl.URL{u}), nil)
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// index makes documents searchable, as index steps do: each URL with a title.
func (c *cloud) index(crawl string, number uint64, titles map[string]string) {
	c.t.Helper()
	b := segment.NewBuilder()
	fp := uint64(0)
	for url, title := range titles {
		fp++
		var fields [segment.NumFields][]segment.TermPosition
		for _, t := range token.Append(nil, title, "en") {
			fields[segment.Title] = append(fields[segment.Title], segment.TermPosition{Term: t.Term, Position: t.Position})
		}
		doc := segment.Document{URL: url, Host: "example.org", Fingerprint: fp, Title: title, Lang: "en", Time: time.Unix(1e9, 0)}
		if err := b.Add(doc, fields); err != nil {
			c.t.Fatal(err)
		}
	}
	out := b.Finish()
	data, sum := out.Data, out.Summary
	m := blobschema.IndexManifest{Crawl: crawl, Number: number, Terms: token.Version, Segments: []blobschema.SegmentRef{{
		Object: naming.Segment(crawl, 0, number, data), Bytes: int64(len(data)), Documents: uint32(sum.Documents), First: sum.First, Last: sum.Last,
		Lengths: []uint64{uint64(sum.Lengths[segment.Title])},
	}}}
	c.put(m.Segments[0].Object, data)
	data, err := blobschema.EncodeIndexManifest(&m)
	if err != nil {
		c.t.Fatal(err)
	}
	head := blobschema.IndexHead{Number: number, Manifest: naming.IndexManifest(crawl, 0, number, data)}
	c.put(head.Manifest, data)
	value, err := json.Marshal(head)
	if err != nil {
		c.t.Fatal(err)
	}
	key := naming.IndexKey(crawl, 0)
	old, err := c.platform.ReadRecords(c.t.Context(), []string{key})
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.platform.WriteRecord(c.t.Context(), key, value, old[0].Revision); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cloud) put(name string, data []byte) {
	c.t.Helper()
	if err := c.platform.Bucket.WriteAll(c.t.Context(), name, data, nil); err != nil {
		c.t.Fatal(err)
	}
}

// TestQuery calls the search page in the way that its address does.
func TestQuery(t *testing.T) {
	c := newCloud(t)
	q := c.query
	ask := func(path, query string) (int, string, map[string]string) {
		t.Helper()
		e := events.LambdaFunctionURLRequest{RawPath: path, RawQueryString: query, Headers: map[string]string{"host": "x.example"}}
		e.RequestContext.HTTP.Method = "GET"
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := function.Serve(ctx, q, e)
		return r.StatusCode, r.Body, r.Headers
	}
	last := func() string {
		lines := strings.Split(strings.TrimSpace(c.log.String()), "\n")
		return lines[len(lines)-1]
	}
	if status, _, _ := ask("/", "q=coffee"); status != 503 || !strings.Contains(last(), "nothing is indexed") {
		t.Errorf("without a crawl: %d, %s", status, last())
	}
	c.begin(blobschema.Crawl{
		Version: wire.Version, ID: "test", Created: time.Now(), HashKey: make([]byte, 16), Slots: 16, Partitions: 1,
		Settings: blobschema.Settings{UserAgent: "orbweaver/test"},
	}, "https://example.org/")
	if status, _, _ := ask("/", "q=coffee"); status != 503 {
		t.Errorf("without an index: %d", status)
	}
	c.index("test", 1, map[string]string{"https://example.org/a": "Roasted coffee", "https://example.org/b": "Green tea"})
	status, body, header := ask("/", "q=coffees")
	if status != 200 || !strings.Contains(body, "https://example.org/a") || strings.Contains(body, "https://example.org/b") || !strings.Contains(header["Content-Type"], "text/html") {
		t.Errorf("%d %v\n%s", status, header, body)
	}
	found := func(query string) (a search.Answer) {
		t.Helper()
		status, body, _ := ask("/search.json", query)
		if err := json.Unmarshal([]byte(body), &a); status != 200 || err != nil {
			t.Fatalf("%s: %d %s", query, status, body)
		}
		return a
	}
	if a := found("q=tea"); a.Total != 1 || a.Results[0].URL != "https://example.org/b" {
		t.Errorf("%+v", a)
	}
	if a := found("q=tea"); a.Reads != 0 {
		t.Errorf("%d reads for a query that was asked before", a.Reads)
	}
	var line struct {
		Msg       string
		Shown     int
		Outcome   string
		QueryMS   *float64 `json:"query_ms"`
		Documents int64
	}
	if err := json.Unmarshal([]byte(last()), &line); err != nil || line.Msg != "query" || line.Shown != 1 || line.QueryMS == nil || line.Documents != 2 {
		t.Errorf("the log says %s", last())
	}
	for _, bad := range []string{"q=site:coffee%25", "q=coffee&site=coffee%25"} {
		if status, _, _ := ask("/search.json", bad); status != 400 {
			t.Errorf("%s: %d", bad, status)
		}
	}
	if strings.Contains(c.log.String(), "coffee") {
		t.Error("the log contains the query")
	}

	// A query uses new documents after refresh=1, or after some time.
	c.index("test", 2, map[string]string{"https://example.org/c": "White tea"})
	if a := found("q=tea"); a.Results[0].URL != "https://example.org/b" {
		t.Errorf("the index is read for every query: %+v", a)
	}
	if a := found("q=tea&refresh=1"); a.Total != 1 || a.Results[0].URL != "https://example.org/c" {
		t.Errorf("not refreshed: %+v", a)
	}
	c.index("test", 3, map[string]string{"https://example.org/d": "Black tea"})
	q.checked = time.Now().Add(-time.Minute)
	if a := found("q=tea"); a.Results[0].URL != "https://example.org/d" {
		t.Errorf("not refreshed after a minute: %+v", a)
	}
	if status, body, _ := ask("/search.json", "q=-tea"); status != 400 || !strings.Contains(body, "error") {
		t.Errorf("%d %s", status, body)
	}
}

// TestServe sends arbitrary requests.
func TestServe(t *testing.T) {
	c := newCloud(t)
	q := c.query
	for _, e := range []events.LambdaFunctionURLRequest{
		{}, {RawPath: "%"}, {RawPath: "//host/"}, {RawPath: "/", RawQueryString: "q=%zz&q=\x00"}, {Body: "?", IsBase64Encoded: true},
		{RawPath: " /\r\nX: y", Headers: map[string]string{"": "", "a\nb": "c"}},
	} {
		for _, method := range []string{"", "GET", "POST", "G E T"} {
			e.RequestContext.HTTP.Method = method
			if r := function.Serve(t.Context(), q, e); r.StatusCode < 200 || r.StatusCode >= 600 {
				t.Errorf("%+v: %d", e, r.StatusCode)
			}
		}
	}
}

// TestServeTooMuch checks that an answer too large for the cloud is replaced by an error.
func TestServeTooMuch(t *testing.T) {
	for n, status := range map[int]int{1 << 20: 200, 4 << 20: 500} {
		h := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte("\""), n)) })
		r := function.Serve(t.Context(), h, events.LambdaFunctionURLRequest{RawPath: "/"})
		b, err := json.Marshal(r)
		if r.StatusCode != status || err != nil || len(b) > 6_000_000 {
			t.Errorf("%d bytes: status %d, %d bytes, %v", n, r.StatusCode, len(b), err)
		}
	}
}
