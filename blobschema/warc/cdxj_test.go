package warc

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
			`a%20b%0A%7F 00010101000000 {"url": "u\r\n\"\\\u0000\ufffd", "length": "1", "offset": "0", "filename": "f\n"}` + "\n"},
		"no record": {"k", func(p *blobschema.Page) { p.Length = 0 }, "f", ""},
	} {
		p := cdxjSample()
		c.change(&p)
		if diff := cmp.Diff("before"+c.want, string(AppendCDXJ([]byte("before"), c.key, p, c.filename))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// cdxj is a line of an index, with the values that all lines have.
type cdxj struct {
	Key, Time, URL, Digest, Filename, Status string
	Offset, Length                           int64 `json:",string"`
}

func parseCDXJ(t *testing.T, line []byte) (c cdxj) {
	t.Helper()
	fields := bytes.SplitN(line, []byte(" "), 3)
	if err := json.Unmarshal(fields[2], &c); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	c.Key, c.Time = string(fields[0]), string(fields[1])
	return c
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

// TestCDXJForeign checks that an index by cdxj-indexer leads to the records of its file.
func TestCDXJForeign(t *testing.T) {
	index, err := os.ReadFile(filepath.Join("testdata", "foreign.cdxj"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(index) {
		c := parseCDXJ(t, line)
		file, err := os.Open(filepath.Join("testdata", c.Filename))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		r, err := ReadAt(file, c.Offset, c.Length)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.TargetURI != c.URL || r.Date.Format(cdxjTime) != c.Time ||
			strings.TrimPrefix(r.PayloadDigest, "sha1:") != strings.TrimPrefix(c.Digest, "sha1:") {
			t.Errorf("%s leads to %+v", line, r)
		}
		m, err := r.HTTP()
		if err != nil || strconv.Itoa(m.Status) != c.Status {
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

// FuzzCDXJ checks that any page becomes one line that sorts and can be read.
func FuzzCDXJ(f *testing.F) {
	f.Add("org,example)/", "http://example.org/", "text/html", "sha1:X", "f.warc.gz", uint16(200), int64(5), int64(1))
	f.Add("a b\n", "\xff\"", "\x00;", "", "\\", uint16(0), int64(-5), int64(1<<62))
	f.Fuzz(func(t *testing.T, key, url, mime, digest, filename string, status uint16, offset, length int64) {
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
		c := parseCDXJ(t, out)
		if want := strings.ToValidUTF8(url, "\ufffd"); strings.ReplaceAll(c.URL, "\ufffd", "") != strings.ReplaceAll(want, "\ufffd", "") ||
			c.Offset != p.Offset || c.Length != p.Length ||
			p.Status != 0 && c.Status != strconv.Itoa(int(p.Status)) || c.Time != leapDay.Format(cdxjTime) {
			t.Fatalf("%q gives %+v", out, c)
		}
	})
}
