package warc

import (
	"bufio"
	"bytes"
	stdgzip "compress/gzip"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

var leapDay = time.Date(2024, 2, 29, 23, 59, 58, 123456789, time.UTC)

// sampleRecords returns a capture as a crawl writes it (info, request, response), and the other types in permitted forms.
func sampleRecords(t testing.TB) []*Record {
	t.Helper()
	const page = "https://www.example.org/a%20b?q=1&r=(x)#frag"
	requestHead := AppendHTTPRequestHead(nil, "GET", "/a%20b?q=1&r=(x)", []HeaderField{{"Host", "www.example.org"}, {"User-Agent", "orbweaver/0"}})
	request := &Record{Type: TypeRequest, Date: leapDay, TargetURI: page, IPAddress: "2001:DB8::0:1", Header: requestHead}
	_, id, err := NewEncoder(None).Append(nil, request)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("<!doctype html><title>Grüße</title>\r\n\r\nWARC/1.1\r\n\x00\xff" + strings.Repeat("<p>text</p>\n", 500))
	head := AppendHTTPResponseHead(nil, "HTTP/2.0", 200, "OK", []HeaderField{{"Content-Type", "text/html"}, {"Transfer-Encoding", "chunked"}})
	return []*Record{
		Info(leapDay.Truncate(time.Second), "crawl-00001.warc.gz", InfoFields{
			Software: "orbweaver/0", UserAgent: "bot\r\nevil: \xff1", IsPartOf: "crawl-1",
		}),
		request,
		{Type: TypeResponse, Date: leapDay, TargetURI: page, IPAddress: "::ffff:192.0.2.1", ConcurrentTo: id,
			Truncated: TruncatedLength, Header: head, Body: body},
		{Type: TypeResponse, Date: leapDay, TargetURI: "http://e.example/empty", Header: head},
		{Type: TypeRevisit, Date: leapDay, TargetURI: page, Header: head, Profile: ProfileIdenticalPayload,
			PayloadDigest: PayloadDigest(body), RefersToTargetURI: page, RefersToDate: leapDay, Truncated: TruncatedLength},
		{Type: TypeRevisit, Date: leapDay, TargetURI: page, Profile: ProfileNotModified},
	}
}

// packFile encodes the records one after another and returns where each begins.
func packFile(t testing.TB, c Compression, records []*Record) (file []byte, starts []int) {
	t.Helper()
	e := NewEncoder(c)
	for i, r := range records {
		starts = append(starts, len(file))
		var id string
		var err error
		if file, id, err = e.Append(file, r); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if !strings.HasPrefix(id, "urn:uuid:") || len(id) != 45 || id[23] != '8' || strings.IndexByte("89ab", id[28]) < 0 {
			t.Errorf("record %d: id %q is not a version 8 UUID", i, id)
		}
	}
	return file, append(starts, len(file))
}

// plainRecord is a record as read by the independent reader below.
type plainRecord struct {
	version string
	fields  textproto.MIMEHeader
	block   []byte
}

// readPlain reads one record with the standard library only, exactly as section 4 describes.
func readPlain(r *bufio.Reader) (p plainRecord, err error) {
	text := textproto.NewReader(r)
	if p.version, err = text.ReadLine(); err != nil {
		return p, err
	}
	if p.fields, err = text.ReadMIMEHeader(); err != nil {
		return p, err
	}
	n, err := strconv.Atoi(p.fields.Get("Content-Length"))
	if err != nil {
		return p, err
	}
	p.block = make([]byte, n)
	if _, err := io.ReadFull(r, p.block); err != nil {
		return p, err
	}
	end := make([]byte, 4)
	if _, err := io.ReadFull(r, end); err != nil || string(end) != "\r\n\r\n" {
		return p, fmt.Errorf("end %q: %v", end, err)
	}
	return p, nil
}

// readMember reads a byte range that must be one record.
func readMember(t testing.TB, c Compression, member []byte) plainRecord {
	t.Helper()
	var in io.Reader = bytes.NewReader(member)
	if c != None {
		z, err := stdgzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = z
	}
	r := bufio.NewReader(in)
	p, err := readPlain(r)
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Fatalf("after the record: %d bytes, %v", len(rest), err)
	}
	return p
}

func sha1Text(b ...[]byte) string {
	sum := sha1.Sum(bytes.Join(b, nil))
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

// blockDigest returns the block digest of a record; "" if the payload's digest covers the body.
func blockDigest(r *Record) string {
	if r.Type == TypeResponse && r.Chunks == nil {
		return ""
	}
	return sha1Text(r.Header, r.stored())
}

func TestEncoderByAnIndependentReader(t *testing.T) {
	records := sampleRecords(t)
	for _, c := range []Compression{GzipFast, None} {
		file, starts := packFile(t, c, records)
		for i, r := range records {
			p := readMember(t, c, file[starts[i]:starts[i+1]])
			want := map[string]string{
				"WARC-Type":         string(r.Type),
				"WARC-Target-URI":   r.TargetURI,
				"WARC-Truncated":    r.Truncated,
				"WARC-Profile":      r.Profile,
				"WARC-Filename":     r.Filename,
				"WARC-Block-Digest": blockDigest(r),
				"Content-Length":    strconv.Itoa(len(r.Header) + len(r.Body)),
				"WARC-Date":         "2024-02-29T23:59:58.123456Z",
			}
			switch i {
			case 0:
				want["WARC-Date"] = "2024-02-29T23:59:58Z"
			case 1:
				want["WARC-IP-Address"] = "2001:db8::1"
				want["Content-Type"] = "application/http;msgtype=request"
			case 2:
				want["WARC-IP-Address"] = "192.0.2.1"
				want["Content-Type"] = "application/http;msgtype=response"
				want["WARC-Concurrent-To"] = "<" + r.ConcurrentTo + ">"
				want["WARC-Payload-Digest"] = sha1Text(r.Body)
			case 3:
				want["WARC-Payload-Digest"] = sha1Text(r.Body)
			case 4:
				want["WARC-Payload-Digest"] = r.PayloadDigest
				want["WARC-Refers-To-Target-URI"] = r.RefersToTargetURI
				want["WARC-Refers-To-Date"] = "2024-02-29T23:59:58.123456Z"
			}
			for name, value := range want {
				if got := p.fields.Get(name); got != value {
					t.Errorf("%d: record %d: %s is %q, want %q", c, i, name, got, value)
				}
			}
			if (i == 0 || i == 1 || i == 5) && p.fields.Get("WARC-Payload-Digest") != "" {
				t.Errorf("%d: record %d has a payload digest", c, i)
			}
			if p.version != "WARC/1.1" || !bytes.Equal(p.block, append(bytes.Clone(r.Header), r.Body...)) {
				t.Errorf("%d: record %d: version %q or block differs", c, i, p.version)
			}
		}
	}
}

// TestEncoderGolden pins the bytes of a plain record, so that the form and the ids of stored records never change
// unnoticed.
func TestEncoderGolden(t *testing.T) {
	r := &Record{
		Type: TypeResponse, Date: leapDay, TargetURI: "http://example.org/", IPAddress: "192.0.2.1",
		Header: []byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"), Body: []byte("hello\n"),
	}
	const want = "WARC/1.1\r\n" +
		"WARC-Type: response\r\n" +
		"WARC-Record-ID: <urn:uuid:fb5b4f1c-7020-8652-b5c0-cfeef3e5362f>\r\n" +
		"WARC-Date: 2024-02-29T23:59:58.123456Z\r\n" +
		"WARC-Target-URI: http://example.org/\r\n" +
		"WARC-IP-Address: 192.0.2.1\r\n" +
		"WARC-Payload-Digest: sha1:6VZNHFX25EQGMKDRJ6ZM4AHXF2KPEJMP\r\n" +
		"Content-Type: application/http;msgtype=response\r\n" +
		"Content-Length: 51\r\n" +
		"\r\n" +
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhello\n\r\n\r\n"
	got, id, err := NewEncoder(None).Append([]byte("before"), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before"+want, string(got)); diff != "" {
		t.Error(diff)
	}
	for name, change := range map[string]func(*Record){
		"date":   func(r *Record) { r.Date = r.Date.Add(time.Microsecond) },
		"target": func(r *Record) { r.TargetURI += "x" },
		"block":  func(r *Record) { r.Body = []byte("hellp\n") },
		"type":   func(r *Record) { r.Type, r.Profile = TypeRevisit, ProfileNotModified },
	} {
		other := *r
		change(&other)
		if _, id2, err := NewEncoder(GzipFast).Append(nil, &other); err != nil || id2 == id {
			t.Errorf("another %s: id %s as before, or %v", name, id2, err)
		}
	}
	other := *r
	other.IPAddress, other.Date = "", r.Date.In(time.FixedZone("", 3600))
	if _, id2, err := NewEncoder(GzipFast).Append(nil, &other); err != nil || id2 != id {
		t.Errorf("same capture: id %s, want %s, %v", id2, id, err)
	}
}

// TestEncoderRepeats checks that the same capture always has the same bytes, independent of earlier records, time and
// machine.
func TestEncoderRepeats(t *testing.T) {
	records := append(sampleRecords(t), benchRecords()...)
	var sizes []int
	for _, c := range []Compression{GzipFast, None} {
		used := NewEncoder(c)
		for range 2 {
			for i, r := range records {
				fresh, id, err := NewEncoder(c).Append(nil, r)
				if err != nil {
					t.Fatal(err)
				}
				again, id2, err := used.Append(nil, r)
				if err != nil || id != id2 || !bytes.Equal(fresh, again) {
					t.Fatalf("%d: record %d differs: %v", c, i, err)
				}
				if c != None && !bytes.Equal(again[:8], []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0}) {
					t.Fatalf("%d: record %d begins with % x", c, i, again[:8])
				}
			}
		}
		file, _ := packFile(t, c, records)
		sizes = append(sizes, len(file))
	}
	if sizes[0] >= sizes[1]/2 {
		t.Errorf("sizes of gzip and plain: %d", sizes)
	}
}

// TestEncoderPacked checks that a packed record contains the body byte for byte, and that the standard library and our
// reader find the same record as in its deflated form.
func TestEncoderPacked(t *testing.T) {
	noise := make([]byte, 3*maxStored)
	for i, n := 0, uint32(1); i < len(noise); i++ {
		n = n*1664525 + 1013904223
		noise[i] = byte(n >> 24)
	}
	head := AppendHTTPResponseHead(nil, "HTTP/1.1", 200, "OK", []HeaderField{{"Content-Encoding", "gzip"}})
	for _, n := range []int{0, 1, 100, maxStored - 1, maxStored, maxStored + 1, 2 * maxStored, 3 * maxStored} {
		for _, c := range []Compression{GzipFast, None} {
			r := &Record{Type: TypeResponse, Date: leapDay, TargetURI: "http://e.example/", Header: head, Body: noise[:n]}
			deflated, id, err := NewEncoder(c).Append(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			r.Packed = true
			e := NewEncoder(c)
			for range 2 { // earlier records leave no trace
				packed, id2, err := e.Append([]byte("before"), r)
				if err != nil || id2 != id || string(packed[:6]) != "before" {
					t.Fatalf("%d bytes, %d: id %s, want %s, %v", n, c, id2, id, err)
				}
				packed = packed[6:]
				if c != None && n > 0 && !bytes.Contains(packed, noise[:min(n, maxStored)]) {
					t.Errorf("%d bytes, %d: not stored as they are", n, c)
				}
				if len(packed) > len(deflated)+64 {
					t.Errorf("%d bytes, %d: %d packed, %d deflated", n, c, len(packed), len(deflated))
				}
				plain, want := readMember(t, c, packed), readMember(t, c, deflated)
				if diff := cmp.Diff(want.fields, plain.fields); diff != "" || !bytes.Equal(want.block, plain.block) {
					t.Errorf("%d bytes, %d: another record %s", n, c, diff)
				}
				got, err := ReadAt(bytes.NewReader(packed), 0, int64(len(packed)))
				if err != nil || got.Verify() != nil || !bytes.Equal(got.Body, r.Body) || got.ID != id {
					t.Errorf("%d bytes, %d: read %v", n, c, err)
				}
			}
		}
	}
	r := benchRecords()[0]
	r.Packed = true
	e := NewEncoder(GzipFast)
	dst, _, _ := e.Append(nil, r)
	if n := testing.AllocsPerRun(100, func() { dst, _, _ = e.Append(dst[:0], r) }); n > 1 { // the id
		t.Errorf("%v allocations", n)
	}
}

func TestRevisitRecord(t *testing.T) {
	head := AppendHTTPResponseHead(nil, "HTTP/1.1", 200, "OK", []HeaderField{{"Content-Type", "text/html"}})
	digest := PayloadDigest([]byte("body"))
	of := blobschema.Original{URL: "http://e.example/first", Time: leapDay.AddDate(-1, 0, 0), WARC: "w", Offset: 1, Length: 2}
	for _, tt := range []struct {
		profile, truncated string
	}{
		{ProfileNotModified, ""},
		{ProfileIdenticalPayload, TruncatedLength},
	} {
		r := Revisit(leapDay, "http://e.example/", "192.0.2.1", tt.profile, digest, of, head)
		r.ConcurrentTo = "urn:uuid:92283950-ef2f-8d72-b224-f54c6ec90bb0"
		member, _, err := NewEncoder(GzipFast).Append(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		p := readMember(t, GzipFast, member)
		for name, want := range map[string]string{
			"WARC-Type": "revisit", "WARC-Date": "2024-02-29T23:59:58.123456Z", "WARC-Target-URI": "http://e.example/",
			"WARC-IP-Address": "192.0.2.1", "WARC-Profile": tt.profile, "WARC-Payload-Digest": digest, "WARC-Truncated": tt.truncated,
			"WARC-Refers-To-Target-URI": "http://e.example/first", "WARC-Refers-To-Date": "2023-03-01T23:59:58.123456Z",
			"WARC-Refers-To": "", "WARC-Concurrent-To": "<" + r.ConcurrentTo + ">", "Content-Type": httpAnswer,
		} {
			if got := p.fields.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", tt.profile, name, got, want)
			}
		}
		if !bytes.Equal(p.block, head) {
			t.Errorf("%s: block %q", tt.profile, p.block)
		}
	}
}

func TestEncoderRefuses(t *testing.T) {
	head := []byte("HTTP/1.1 200 OK\r\n\r\n")
	response := Record{Type: TypeResponse, Date: leapDay, TargetURI: "http://e.example/", Header: head, Body: []byte("x")}
	info := *Info(leapDay, "f.warc", InfoFields{})
	if want := "format: WARC File Format 1.1\r\nconformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\nrobots: obey\r\n"; string(info.Body) != want {
		t.Errorf("what a file says of itself, with nothing given: %q", info.Body)
	}
	const inject = "x\r\nWARC-Type: resource"
	for name, change := range map[string]func(r, info *Record){
		"type":                  func(r, _ *Record) { r.Type = "conversion" },
		"type injected":         func(r, _ *Record) { r.Type = "response\r\nX: y" },
		"no target":             func(r, _ *Record) { r.TargetURI = "" },
		"target injected":       func(r, _ *Record) { r.TargetURI += inject },
		"target with space":     func(r, _ *Record) { r.TargetURI += "a b" },
		"target long":           func(r, _ *Record) { r.TargetURI += strings.Repeat("a", MaxHeader) },
		"no date":               func(r, _ *Record) { r.Date = time.Time{} },
		"year":                  func(r, _ *Record) { r.Date = leapDay.AddDate(9000, 0, 0) },
		"media type injected":   func(r, _ *Record) { r.ContentType = "application/http;" + inject },
		"media type of no HTTP": func(r, _ *Record) { r.ContentType = "text/html" },
		"name not UTF-8":        func(_, i *Record) { i.Filename = "\xff" },
		"address injected":      func(r, _ *Record) { r.IPAddress = "192.0.2.1\r\nX: y" },
		"address with zone":     func(r, _ *Record) { r.IPAddress = "fe80::1%eth0" },
		"concurrent injected":   func(r, _ *Record) { r.ConcurrentTo = "urn:" + inject },
		"concurrent bracketed":  func(r, _ *Record) { r.ConcurrentTo = "<urn:uuid:x>" },
		"truncated injected":    func(r, _ *Record) { r.Truncated = inject },
		"payload digest":        func(r, _ *Record) { r.PayloadDigest = "ABC" },
		"payload injected":      func(r, _ *Record) { r.PayloadDigest = "sha1:" + inject },
		"profile":               func(r, _ *Record) { r.Profile = ProfileNotModified },
		"refers to date":        func(r, _ *Record) { r.RefersToDate = leapDay },
		"refers to URI":         func(r, _ *Record) { r.RefersToTargetURI = "http://e.example/" },
		"file name":             func(r, _ *Record) { r.Filename = "f" },
		"header with two ends":  func(r, _ *Record) { r.Header = append(head, head...) },
		"header without end":    func(r, _ *Record) { r.Header = head[:len(head)-2] },
		"body without header":   func(r, _ *Record) { r.Header, r.ContentType = nil, httpAnswer },
		"header of 2 MiB":       func(r, _ *Record) { r.Header = append(bytes.Repeat([]byte("a"), 2<<20), "\r\n\r\n"...) },
		"block over bound":      func(r, _ *Record) { r.Body = make([]byte, MaxBlock) },
		"revisit, no profile":   func(r, _ *Record) { r.Type = TypeRevisit },
		"revisit, no digest":    func(r, _ *Record) { r.Type, r.Profile = TypeRevisit, ProfileIdenticalPayload },
		"info with target":      func(_, i *Record) { i.TargetURI = "http://e.example/" },
		"info with address":     func(_, i *Record) { i.IPAddress = "192.0.2.1" },
		"info with HTTP header": func(_, i *Record) { i.Header = head },
		"info with digest":      func(_, i *Record) { i.PayloadDigest = PayloadDigest(nil) },
		"info, name injected":   func(_, i *Record) { i.Filename = inject },
		"info concurrent":       func(_, i *Record) { i.ConcurrentTo = "urn:uuid:x" },
	} {
		r, i := response, info
		change(&r, &i)
		e := NewEncoder(GzipFast)
		_, _, err := e.Append(nil, &r)
		out, id, err2 := e.Append([]byte("before"), &i)
		if !errors.Is(err, ErrField) && !errors.Is(err2, ErrField) {
			t.Errorf("%s: accepted (%v, %v)", name, err, err2)
		}
		if err2 != nil && (string(out) != "before" || id != "") {
			t.Errorf("%s: an error came with output %q, %q", name, out, id)
		}
	}
	e := NewEncoder(GzipFast)
	for _, r := range []*Record{&response, &info} { // the unchanged records are valid
		if _, _, err := e.Append(nil, r); err != nil {
			t.Error(err)
		}
	}
}

func TestURI(t *testing.T) {
	for uri, want := range map[string]bool{
		"http://example.org/":                  true,
		"https://user:pw@example.org:8080/a?b": true,
		"http://[2001:db8::1]:80/":             true,
		"urn:uuid:4885803b-eebd-4b27":          true,
		"dns:example.org":                      true,
		"http://h/%41#f?/":                     true,
		"http://h":                             true,
		"a+b-.1:":                              true,
		"":                                     false,
		"//h/":                                 false,
		"1a:b":                                 false,
		":x":                                   false,
		"http://h/a b":                         false,
		"http://h/\x00":                        false,
		"http://h/\r\n":                        false,
		"http://h/\t":                          false,
		"http://h/a|b":                         false,
		"http://h/é":                           false,
		"http://a<b/":                          false,
	} {
		if err := checkURI(uri); (err == nil) != want {
			t.Errorf("%q: %v, want accepted: %v", uri, err, want)
		}
	}
}

// TestWARCIO checks written files with an independent implementation. WARCIO is the path of warcio's executable.
func TestWARCIO(t *testing.T) {
	warcio := os.Getenv("WARCIO")
	if warcio == "" {
		t.Skip("WARCIO does not name the warcio executable (pip install warcio)")
	}
	records := sampleRecords(t)
	packed := *records[2]
	packed.Packed = true
	records = append(records, &packed)
	for c, name := range map[Compression]string{GzipFast: "fast.warc.gz", None: "plain.warc"} {
		file, starts := packFile(t, c, records)
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(warcio, "check", "-v", path).CombinedOutput()
		if n := bytes.Count(out, []byte("digest pass")); err != nil || n != len(records)-2 { // revisits are not checked
			t.Errorf("check: %v, %d records passed\n%s", err, n, out)
		}
		out, err = exec.Command(warcio, "index", "-f", "offset,warc-type", path).CombinedOutput()
		var want strings.Builder
		for i, r := range records {
			fmt.Fprintf(&want, "{\"offset\": \"%d\", \"warc-type\": \"%s\"}\n", starts[i], r.Type)
		}
		if diff := cmp.Diff(want.String(), string(out)); err != nil || diff != "" {
			t.Errorf("index: %v\n%s", err, diff)
		}
	}
}

func TestEncoderAllocations(t *testing.T) {
	for _, r := range benchRecords() {
		e := NewEncoder(GzipFast)
		dst, _, err := e.Append(nil, r)
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(100, func() { dst, _, _ = e.Append(dst[:0], r) })
		if n > 1 { // the id
			t.Errorf("%s: %v allocations", r.Type, n)
		}
	}
}

// benchRecords returns a response with 30 KiB of HTML-like text and its request.
func benchRecords() []*Record {
	const page = "https://www.example.org/some/path/to/article-12345.html?x=1"
	var body []byte
	for i, n := 0, uint32(1); len(body) < 30<<10; i++ {
		n = n*1664525 + 1013904223
		body = fmt.Appendf(body, "<div class=\"item c%d\"><a href=\"/articles/%d/%08x.html\">Title %d of %x</a><p>", i%7, i, n, i, n>>3)
		for range n >> 28 {
			n = n*1664525 + 1013904223
			body = append(body, [...]string{"the ", "weaver ", "walks ", "over ", "an ", "orb ", "between ", "leaves "}[n>>29]...)
			body = fmt.Appendf(body, "%x ", n>>20)
		}
		body = append(body, "</p></div>\n"...)
	}
	head := AppendHTTPResponseHead(nil, "HTTP/1.1", 200, "OK", []HeaderField{
		{"Date", "Tue, 19 Sep 2023 17:18:40 GMT"}, {"Server", "nginx/1.24.0"}, {"Content-Type", "text/html; charset=utf-8"},
		{"Cache-Control", "public, max-age=300"}, {"ETag", "\"3e45-67e-2ed02ec0\""}, {"Vary", "Accept-Encoding, Cookie"},
		{"Strict-Transport-Security", "max-age=31536000; includeSubDomains"}, {"Content-Length", strconv.Itoa(len(body))},
	})
	request := AppendHTTPRequestHead(nil, "GET", "/some/path/to/article-12345.html?x=1", []HeaderField{
		{"Host", "www.example.org"}, {"User-Agent", "orbweaver/0.1 (+https://orbweaver.example/bot.html)"},
		{"Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.5"}, {"Accept-Language", "en;q=0.9,*;q=0.5"}, {"Accept-Encoding", "gzip, br"},
	})
	return []*Record{
		{Type: TypeResponse, Date: leapDay, TargetURI: page, IPAddress: "192.0.2.1", Header: head, Body: body,
			ConcurrentTo: "urn:uuid:92283950-ef2f-8d72-b224-f54c6ec90bb0"},
		{Type: TypeRequest, Date: leapDay, TargetURI: page, IPAddress: "192.0.2.1", Header: request},
	}
}

// BenchmarkPacked encodes a page received as gzip, once stored as received and once deflated again.
func BenchmarkPacked(b *testing.B) {
	var body bytes.Buffer
	z := stdgzip.NewWriter(&body)
	z.Write(benchRecords()[0].Body)
	z.Close()
	for _, packed := range []bool{true, false} {
		b.Run(map[bool]string{true: "stored", false: "deflated"}[packed], func(b *testing.B) {
			r := *benchRecords()[0]
			r.Body, r.Packed = body.Bytes(), packed
			e := NewEncoder(GzipFast)
			dst, _, _ := e.Append(nil, &r)
			b.SetBytes(int64(len(r.Header) + len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				dst, _, _ = e.Append(dst[:0], &r)
			}
			b.ReportMetric(float64(len(dst)), "stored-B")
		})
	}
}

func BenchmarkEncoder(b *testing.B) {
	for c, name := range []string{"gzip1", "plain"} {
		for _, r := range benchRecords() {
			b.Run(name+"/"+string(r.Type), func(b *testing.B) {
				e := NewEncoder(Compression(c))
				dst, _, err := e.Append(nil, r)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(int64(len(r.Header) + len(r.Body)))
				b.ReportAllocs()
				for b.Loop() {
					dst, _, _ = e.Append(dst[:0], r)
				}
				b.ReportMetric(float64(len(dst)), "stored-B")
			})
		}
	}
}

// FuzzEncoder checks that any record is refused, or that an independent reader finds exactly its values.
func FuzzEncoder(f *testing.F) {
	f.Add("http://e.example/", "application/http", "192.0.2.1", "urn:uuid:x", "length", "sha1:A", []byte("HTTP/1.1 200 OK\r\n\r\n"), []byte("body"), true)
	f.Add("http://e.example/\r\nX: y", "a\nb", "::1%x", "<>", "\x00", ":", []byte("\r\n"), []byte("WARC/1.1\r\n"), false)
	e := NewEncoder(GzipFast)
	f.Fuzz(func(t *testing.T, target, kind, ip, concurrent, truncated, digest string, head, body []byte, packed bool) {
		r := &Record{Type: TypeResponse, Date: leapDay, TargetURI: target, ContentType: kind, IPAddress: ip,
			ConcurrentTo: concurrent, Truncated: truncated, PayloadDigest: digest, Header: head, Body: body, Packed: packed}
		out, _, err := e.Append(nil, r)
		if err != nil {
			if !errors.Is(err, ErrField) || len(out) != 0 {
				t.Fatalf("%d bytes with %v", len(out), err)
			}
			return
		}
		p := readMember(t, GzipFast, out)
		for name, value := range map[string]string{
			"WARC-Type": "response", "WARC-Target-URI": r.TargetURI, "Content-Type": contentType(r),
			"WARC-Truncated": truncated, "WARC-Block-Digest": blockDigest(r),
		} {
			if got := p.fields.Values(name); len(got) > 1 || len(got) == 1 && got[0] != strings.Trim(value, " ") || len(got) == 0 && value != "" {
				t.Fatalf("%s: %q, want %q", name, got, value)
			}
		}
		for name := range p.fields {
			if !strings.HasPrefix(name, "Warc-") && !strings.HasPrefix(name, "Content-") {
				t.Fatalf("field %q broke out", name)
			}
		}
		if !bytes.Equal(p.block, append(bytes.Clone(head), body...)) {
			t.Fatal("block differs")
		}
	})
}

// TestChunks checks that a chunked body is stored as received, read without chunks, and has a payload digest that is not
// stored.
func TestChunks(t *testing.T) {
	const head, chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "2;x\r\nbo\r\n2\r\ndy\r\n0\r\nA: b\r\n\r\n"
	for _, c := range []Compression{GzipFast, None} {
		for _, packed := range []bool{false, true} {
			rec := Record{
				Type: TypeResponse, Date: time.Unix(1, 0), TargetURI: "http://example.org/", Header: []byte(head), Body: []byte("body"),
				Chunks: []byte(chunks), Packed: packed, PayloadDigest: PayloadDigest([]byte("body")),
			}
			stored, _, err := NewEncoder(c).Append(nil, &rec)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ReadAt(bytes.NewReader(stored), 0, int64(len(stored)))
			if err != nil || got.Verify() != nil {
				t.Fatal(err, got.Verify())
			}
			if string(got.Body) != "body" || string(got.Chunks) != chunks || string(got.Header) != head || got.PayloadDigest != rec.PayloadDigest {
				t.Errorf("read %q, chunks %q, digest %s", got.Body, got.Chunks, got.PayloadDigest)
			}
			if c == None && bytes.Contains(stored, []byte("WARC-Payload-Digest")) {
				t.Errorf("stored %q", stored)
			}
		}
	}
}
