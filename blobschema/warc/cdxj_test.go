package warc

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

func cdxjSample() blobschema.Page {
	return blobschema.Page{
		URL: "http://example.org/a?b=\"c\"&é", Time: time.Date(2024, 2, 29, 23, 59, 58, 999, time.FixedZone("", 3600)),
		Status: 200, MIME: "text/html; charset=utf-8", Digest: "sha1:BUOUIIINSE4GCD3FKWLBCMHJTYSKHFW4", Length: 357, Offset: 257,
	}
}

func TestAppendCDXJ(t *testing.T) {
	for name, c := range map[string]struct {
		key      string
		change   func(*blobschema.Page)
		filename string
		want     string
	}{
		"all fields": {"org,example)/a?b=c", func(*blobschema.Page) {}, "crawl-1.warc.gz",
			`org,example)/a?b=c 20240229225958 {"url": "http://example.org/a?b=\"c\"&é", "mime": "text/html", "status": "200", ` +
				`"digest": "BUOUIIINSE4GCD3FKWLBCMHJTYSKHFW4", "length": "357", "offset": "257", "filename": "crawl-1.warc.gz"}` + "\n"},
		"few fields": {"k", func(p *blobschema.Page) { *p = blobschema.Page{URL: "u", Length: 1} }, "f",
			`k 00010101000000 {"url": "u", "length": "1", "offset": "0", "filename": "f"}` + "\n"},
		"other digest": {"k", func(p *blobschema.Page) { *p = blobschema.Page{URL: "u", Length: 1, Digest: "sha256:ab"} }, "f",
			`k 00010101000000 {"url": "u", "digest": "sha256:ab", "length": "1", "offset": "0", "filename": "f"}` + "\n"},
		"hostile": {"a b\n\x7f", func(p *blobschema.Page) {
			*p = blobschema.Page{URL: "u\r\n\"\\\x00\xff", MIME: " ; x", Length: 1, Time: time.Date(12024, 1, 1, 0, 0, 0, 0, time.UTC)}
		}, "f\n",
			`a%20b%0A%7F 00010101000000 {"url": "u\u000d\u000a\"\\\u0000` + "\ufffd" + `", "length": "1", "offset": "0", "filename": "f\u000a"}` + "\n"},
		"no record": {"k", func(p *blobschema.Page) { p.Length = 0 }, "f", ""},
	} {
		p := cdxjSample()
		c.change(&p)
		if diff := cmp.Diff("before"+c.want, string(AppendCDXJ([]byte("before"), c.key, p, c.filename))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestParseCDXJ(t *testing.T) {
	want := CDXJ{Key: "org,example)/", Time: time.Date(2021, 5, 6, 7, 8, 9, 0, time.UTC), URL: "http://example.org/", MIME: "text/html",
		Status: 200, Digest: "sha1:BUOUIIINSE4GCD3FKWLBCMHJTYSKHFW4", Length: 357, Offset: 257, Filename: "f.warc.gz"}
	const head = `org,example)/ 20210506070809 `
	for _, line := range []string{
		head + `{"url": "http://example.org/", "mime": "text/html", "status": "200", "digest": "sha1:BUOUIIINSE4GCD3FKWLBCMHJTYSKHFW4", "length": "357", "offset": "257", "filename": "f.warc.gz"}`,
		head + `{"filename":"f.warc.gz","url":"http://example.org/","mime":"text/html","status":200,"digest":"BUOUIIINSE4GCD3FKWLBCMHJTYSKHFW4","length":357,"offset":257,"languages":["en"]}` + "\r\n",
	} {
		got, err := ParseCDXJ([]byte(line))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", line, diff)
		}
	}
	got, err := ParseCDXJ([]byte(head + `{"url":"u","status":"-","digest":"-","length":null,"offset":"","filename":"f"}`))
	if diff := cmp.Diff(CDXJ{Key: want.Key, Time: want.Time, URL: "u", Filename: "f"}, got); err != nil || diff != "" {
		t.Errorf("nothing known: %v %s", err, diff)
	}
	for name, line := range map[string]string{
		"empty":            "",
		"blank":            "\n",
		"no object":        head,
		"no space":         "org,example)/",
		"no key":           " 20210506070809 {}",
		"short time":       `k 20210506 {"url":"u","filename":"f"}`,
		"no such time":     `k 20211306070809 {"url":"u","filename":"f"}`,
		"no url":           head + `{"filename":"f"}`,
		"no file":          head + `{"url":"u"}`,
		"not an object":    head + `["u"]`,
		"rest after it":    head + `{"url":"u","filename":"f"} x`,
		"negative offset":  head + `{"url":"u","filename":"f","offset":"-1"}`,
		"fraction":         head + `{"url":"u","filename":"f","offset":1.5}`,
		"huge":             head + `{"url":"u","filename":"f","offset":"99999999999999999999"}`,
		"status too large": head + `{"url":"u","filename":"f","status":"1000"}`,
		"line too long":    head + `{"url":"u","filename":"f"}` + strings.Repeat(" ", MaxCDXJLine),
	} {
		if got, err := ParseCDXJ([]byte(line)); err == nil || errors.Is(err, ErrCDXJMeta) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := ParseCDXJ([]byte(`!meta 0 {"format": "cdxj-gzip-1.0"}`)); err != ErrCDXJMeta {
		t.Errorf("meta: %v", err)
	}
}

func TestCompareCDXJ(t *testing.T) {
	want := []string{
		"!meta 0 {}\n",
		"com,example)/ 20200101000000 {}\n",
		"com,example)/ 20210101000000 {}\n",
		"com,example)/a 20200101000000 {}\n",
		"com,example,www)/ 20200101000000 {}\n",
		"com,example-b)/ 20200101000000 {}\n",
	}
	var got [][]byte
	for _, line := range want {
		got = append([][]byte{[]byte(line)}, got...)
	}
	slices.SortFunc(got, CompareCDXJ)
	if diff := cmp.Diff(strings.Join(want, ""), string(bytes.Join(got, nil))); diff != "" {
		t.Error(diff)
	}
}

// An index that cdxj-indexer made leads to the records of the file it was made of.
func TestCDXJForeign(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("testdata", "foreign.cdxj"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(index) {
		c, err := ParseCDXJ(line)
		if err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(filepath.Join("testdata", c.Filename))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r, err := ReadAt(file, c.Offset, c.Length)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.TargetURI != c.URL || r.PayloadDigest != c.Digest || !r.Date.Truncate(time.Second).Equal(c.Time) {
			t.Errorf("%s leads to %+v", line, r)
		}
		m, err := r.HTTP()
		if err != nil || m.Status != c.Status {
			t.Errorf("%s leads to %+v, %v", line, m, err)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d lines", n)
	}
}

func BenchmarkAppendCDXJ(b *testing.B) {
	p := cdxjSample()
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = AppendCDXJ(dst[:0], "org,example)/a?b=c", p, "crawl-1.warc.gz")
	}
	b.SetBytes(int64(len(dst)))
}

// FuzzCDXJ: any line is parsed or refused, and any page becomes one line that
// sorts and parses.
func FuzzCDXJ(f *testing.F) {
	f.Add([]byte(`k 20210506070809 {"url":"u","filename":"f","offset":"1"}`), "org,example)/", "http://example.org/", "text/html", "sha1:X", "f.warc.gz", uint16(200), int64(5), int64(1))
	f.Add([]byte("!meta"), "a b\n", "\xff\"", "\x00;", "", "\\", uint16(0), int64(-5), int64(1<<62))
	f.Fuzz(func(t *testing.T, line []byte, key, url, mime, digest, filename string, status uint16, offset, length int64) {
		if c, err := ParseCDXJ(line); err == nil && (c.Key == "" || c.URL == "" || c.Filename == "" || c.Offset < 0 || c.Length < 0 || c.Status < 0) {
			t.Fatalf("%q gives %+v", line, c)
		}
		p := blobschema.Page{URL: url, MIME: mime, Digest: digest, Status: status % 1000, Time: leapDay, Offset: max(offset, 0), Length: length}
		out := AppendCDXJ(nil, key, p, filename)
		if length <= 0 {
			if len(out) != 0 {
				t.Fatalf("%q of no record", out)
			}
			return
		}
		if bytes.IndexByte(out, '\n') != len(out)-1 {
			t.Fatalf("not one line: %q", out)
		}
		if _, object, _ := bytes.Cut(out, []byte(" {")); !json.Valid(append([]byte("{"), object...)) {
			t.Fatalf("not JSON: %q", out)
		}
		if key == "" || key[0] == '!' || url == "" || filename == "" || len(out) > MaxCDXJLine {
			return
		}
		c, err := ParseCDXJ(out)
		if err != nil {
			t.Fatalf("%q: %v", out, err)
		}
		if want := strings.ToValidUTF8(url, "\ufffd"); strings.ReplaceAll(c.URL, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") ||
			c.Offset != p.Offset || c.Length != p.Length || c.Status != int(p.Status) || !c.Time.Equal(leapDay.Truncate(time.Second)) {
			t.Fatalf("%q gives %+v", out, c)
		}
	})
}
