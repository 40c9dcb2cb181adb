package warc

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// asRead returns the record that a reader must return for r.
func asRead(r *Record, start, end int) *Record {
	w := *r
	w.ContentType = contentType(r)
	w.Date = r.Date.UTC().Truncate(time.Microsecond)
	if !w.RefersToDate.IsZero() {
		w.RefersToDate = r.RefersToDate.UTC().Truncate(time.Microsecond)
	}
	w.BlockDigest = blockDigest(r)
	w.Offset, w.Length = int64(start), int64(end-start)
	return &w
}

var sameRecord = cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Record{}, "ID", "PayloadDigest", "IPAddress")}

func TestReader(t *testing.T) {
	records := sampleRecords(t)
	for _, c := range []Compression{GzipFast, None} {
		file, starts := packFile(t, c, records)
		for _, slow := range []bool{false, true} {
			var in io.Reader = bytes.NewReader(file)
			if slow {
				in = iotest.OneByteReader(in)
			}
			r := NewReader(in)
			for i := range records {
				got, err := r.Next()
				if err != nil {
					t.Fatalf("%d: record %d: %v", c, i, err)
				}
				if diff := cmp.Diff(asRead(records[i], starts[i], starts[i+1]), got, sameRecord); diff != "" {
					t.Errorf("%d: record %d: %s", c, i, diff)
				}
				if err := got.Verify(); err != nil {
					t.Errorf("%d: record %d: %v", c, i, err)
				}
			}
			for range 2 {
				if _, err := r.Next(); err != io.EOF {
					t.Errorf("%d: at the end: %v", c, err)
				}
			}
		}
		for i := len(records) - 1; i >= 0; i-- {
			got, err := ReadAt(bytes.NewReader(file), int64(starts[i]), int64(starts[i+1]-starts[i]))
			if err != nil {
				t.Fatalf("%d: record %d alone: %v", c, i, err)
			}
			if diff := cmp.Diff(asRead(records[i], starts[i], starts[i+1]), got, sameRecord); diff != "" {
				t.Errorf("%d: record %d alone: %s", c, i, diff)
			}
		}
		for _, at := range [][2]int{{0, 0}, {-1, 5}, {0, starts[1] - 5}, {0, starts[2]}, {starts[1] + 1, starts[2] - starts[1]}, {len(file), 9}} {
			if _, err := ReadAt(bytes.NewReader(file), int64(at[0]), int64(at[1])); !errors.Is(err, ErrDamaged) {
				t.Errorf("%d: range %v: %v", c, at, err)
			}
		}
	}
}

func TestReaderMixedFile(t *testing.T) {
	records := sampleRecords(t)
	plain, _ := packFile(t, None, records[:2])
	packed, _ := packFile(t, GzipFast, records[2:4])
	r := NewReader(bytes.NewReader(append(append(bytes.Clone(plain), packed...), plain...)))
	for i, want := range []int{0, 1, 2, 3, 0, 1} {
		got, err := r.Next()
		if err != nil || got.Type != records[want].Type || got.Verify() != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
}

// TestReaderDamage cuts a record at each byte and inverts each bit. The reader either reports damage with the record's
// offset, or returns the record as written (some bits of a gzip header have no meaning).
func TestReaderDamage(t *testing.T) {
	for _, packed := range []bool{false, true} {
		t.Run(map[bool]string{false: "deflated", true: "packed"}[packed], func(t *testing.T) { testDamage(t, packed) })
	}
}

func testDamage(t *testing.T, packed bool) {
	records := sampleRecords(t)
	small := *records[2]
	small.Body, small.Packed = small.Body[:200], packed
	file, starts := packFile(t, GzipFast, []*Record{records[1], &small})
	second := starts[1]
	read := func(file []byte) (*Record, error) {
		r := NewReader(bytes.NewReader(file))
		if _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		return r.Next()
	}
	place := "at " + strconv.Itoa(second) + ":"
	for n := second + 1; n < len(file); n++ {
		if _, err := read(file[:n]); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), place) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	whole, err := read(file)
	if err != nil {
		t.Fatal(err)
	}
	undetected := 0
	for bit := second * 8; bit < len(file)*8; bit++ {
		bad := bytes.Clone(file)
		bad[bit/8] ^= 1 << (bit % 8)
		got, err := read(bad)
		if err == nil {
			undetected++
			if diff := cmp.Diff(whole, got); diff != "" {
				t.Fatalf("bit %d: %s", bit, diff)
			}
		} else if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), place) {
			t.Fatalf("bit %d: %v", bit, err)
		}
	}
	// 6 bytes of time, flags and system in the gzip header, 3 times padding, and matches
	// with several possible distances.
	if undetected > 80 {
		t.Errorf("%d turned bits went unnoticed", undetected)
	}
}

func TestReaderRefuses(t *testing.T) {
	const id = "WARC-Record-ID: <urn:x:1>\r\n"
	const date = "WARC-Date: 2024-01-01T00:00:00Z\r\n"
	ok := "WARC/1.1\r\nWARC-Type: resource\r\n" + id + date + "Content-Length: 2\r\n\r\nab\r\n\r\n"
	if _, err := NewReader(strings.NewReader(ok)).Next(); err != nil {
		t.Fatal(err)
	}
	zip := func(s string) string {
		var b bytes.Buffer
		z := stdgzip.NewWriter(&b)
		io.WriteString(z, s)
		z.Close()
		return b.String()
	}
	for name, file := range map[string]string{
		"one byte":          "W",
		"text":              "hello world\n\n",
		"blank":             "\r\n\r\n",
		"other version":     strings.Replace(ok, "1.1", "2.0", 1),
		"no type":           strings.Replace(ok, "WARC-Type", "X", 1),
		"no id":             strings.Replace(ok, "WARC-Record-ID", "X", 1),
		"no date":           strings.Replace(ok, "WARC-Date", "X", 1),
		"bad date":          strings.Replace(ok, "2024-01-01", "2024-13-01", 1),
		"bad date, empty":   strings.NewReplacer("2024-01-01", "2024-13-01", "Length: 2", "Length: 0", "ab", "").Replace(ok),
		"bad other date":    strings.Replace(ok, id, id+"WARC-Refers-To-Date: x\r\n", 1),
		"no length":         strings.Replace(ok, "Content-Length", "X", 1),
		"negative length":   strings.Replace(ok, "Length: 2", "Length: -2", 1),
		"signed length":     strings.Replace(ok, "Length: 2", "Length: +2", 1),
		"huge length":       strings.Replace(ok, "Length: 2", "Length: 99999999999999999999", 1),
		"length over bound": strings.Replace(ok, "Length: 2", "Length: 67108865", 1),
		"length over input": strings.Replace(ok, "Length: 2", "Length: 67108864", 1),
		"short length":      strings.Replace(ok, "Length: 2", "Length: 1", 1),
		"two lengths":       strings.Replace(ok, "Content-Length: 2", "Content-Length: 2\r\ncontent-length: 1", 1),
		"control character": strings.Replace(ok, "urn:x:1", "urn:x:\x00", 1),
		"lone CR":           strings.Replace(ok, "urn:x:1", "urn\rx:1", 1),
		"no colon":          strings.Replace(ok, "WARC-Type:", "WARC-Type", 1),
		"bad name":          strings.Replace(ok, "WARC-Type:", "WARC Type:", 1),
		"endless header":    "WARC/1.1\r\n" + strings.Repeat("X: y\r\n", MaxHeader),
		"endless line":      "WARC/1.1\r\nX: " + strings.Repeat("y", 2*MaxHeader),
		"two in one member": zip(ok + ok),
		"more in member":    zip(ok + "\n"),
		"empty member":      zip(""),
		"cut in member":     zip(ok[:len(ok)-4]),
		"gzip name":         "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x00name",
	} {
		if r, err := NewReader(strings.NewReader(file)).Next(); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	r := NewReader(strings.NewReader(strings.Replace(ok, "Content-Length: ", "Content-Length: 99999999", 1)))
	for range 2 {
		if _, err := r.Next(); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), "over the bound") {
			t.Errorf("over the bound: %v", err)
		}
	}
	broken := errors.New("network")
	in := io.MultiReader(strings.NewReader(ok[:40]), iotest.ErrReader(broken))
	if _, err := NewReader(in).Next(); !errors.Is(err, broken) || errors.Is(err, ErrDamaged) {
		t.Errorf("failing source: %v", err)
	}
	if _, err := NewReader(iotest.ErrReader(broken)).Next(); !errors.Is(err, broken) || errors.Is(err, ErrDamaged) {
		t.Errorf("source failing at once: %v", err)
	}
}

func TestReaderTolerates(t *testing.T) {
	const folded = "WARC/1.0\nwarc-type:resource\nWARC-Record-ID: <urn:x:1>\nWARC-Target-URI: <http://e.example/>\n" +
		"WARC-Date: 2024-01\nX-Unknown: é\nContent-Type:\n  text/plain\nWARC-Concurrent-To: <urn:x:2>\n" +
		"WARC-Concurrent-To: <urn:x:3>\nContent-Length: 2\n\nab"
	got, err := NewReader(strings.NewReader(folded)).Next()
	if err != nil {
		t.Fatal(err)
	}
	want := &Record{
		Type: "resource", ID: "urn:x:1", TargetURI: "http://e.example/", Date: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC),
		ContentType: "text/plain", ConcurrentTo: "urn:x:2", Body: []byte("ab"), Length: int64(len(folded)),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestReaderMemory checks that a claimed length takes no memory until the bytes come.
func TestReaderMemory(t *testing.T) {
	file := "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:x:1>\r\nWARC-Date: 2024-01-01T00:00:00Z\r\nContent-Length: 67108864\r\n\r\nab"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewReader(strings.NewReader(file)).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for a record of two", n)
	}
}

func TestVerify(t *testing.T) {
	const (
		helloSHA1   = "sha1:6VZNHFX25EQGMKDRJ6ZM4AHXF2KPEJMP"
		helloSHA256 = "sha256:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
	)
	for i, c := range []struct {
		block, payload string
		typ            Type
		ok             bool
	}{
		{helloSHA1, "", "resource", true},
		{"", helloSHA1, "resource", true},
		{"SHA1:6vznhfx25eqgmkdrj6zm4ahxf2kpejmp", "", "resource", true},
		{helloSHA256, helloSHA1, "resource", false},
		{helloSHA1, PayloadDigest(nil), TypeRevisit, true}, // its payload is elsewhere
		{"", "", "resource", false},
		{"", helloSHA1, TypeRevisit, false},
		{helloSHA1, PayloadDigest(nil), "resource", false},
		{PayloadDigest(nil), helloSHA1, "resource", false},
		{"md5:b1946ac92492d2347c6235b4d2611184", "", "resource", false},
		{"sha1:", "", "resource", false},
		{"sha1", "", "resource", false},
		{"sha1:!!!", "", "resource", false},
	} {
		r := &Record{Type: c.typ, Body: []byte("hello\n"), BlockDigest: c.block, PayloadDigest: c.payload}
		if err := r.Verify(); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrDigest) {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

// TestForeign reads files that warcio wrote, compressed and not, record by record.
func TestForeign(t *testing.T) {
	types := []Type{TypeInfo, TypeResponse, TypeRequest, TypeRevisit, "metadata"}
	for _, name := range []string{"foreign.warc", "foreign.warc.gz"} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		r := NewReader(bytes.NewReader(file))
		for i, want := range types {
			got, err := r.Next()
			if err != nil {
				t.Fatalf("%s: record %d: %v", name, i, err)
			}
			if err := got.Verify(); err != nil || got.Type != want || got.ID != "urn:uuid:00000000-0000-4000-8000-00000000000"+strconv.Itoa(i+1) {
				t.Errorf("%s: record %d: %s %s, %v", name, i, got.Type, got.ID, err)
			}
			if want != TypeResponse {
				continue
			}
			m, err := got.HTTP()
			if err != nil || m.Status != 200 || string(got.Body) != "<title>Un été</title>\n<p>x" || got.TargetURI != "http://example.org/" || got.IPAddress != "192.0.2.7" {
				t.Errorf("%s: response %+v, %v", name, m, err)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("%s: at the end: %v", name, err)
		}
	}
}

func BenchmarkReader(b *testing.B) {
	file, _ := packFile(b, GzipFast, benchRecords())
	file = bytes.Repeat(file, 50)
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		r := NewReader(bytes.NewReader(file))
		for {
			rec, err := r.Next()
			if err == io.EOF {
				break
			}
			if err == nil {
				err = rec.Verify()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// FuzzReader checks that hostile bytes give records or an error, never a panic, a stall or a block above the bound. A record
// that can be written again is read the same.
func FuzzReader(f *testing.F) {
	for _, c := range []Compression{GzipFast, None} {
		records := sampleRecords(f)
		records[2].Body = records[2].Body[:100] // small seeds mutate better
		file, starts := packFile(f, c, records)
		f.Add(file)
		f.Add(file[:starts[1]])
		f.Add(file[starts[1]:starts[2]])
	}
	f.Add([]byte("WARC/1.0\nWARC-Type:revisit\nWARC-Record-ID:<>\nWARC-Date:2024\nContent-Length:0\n\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		r := NewReader(bytes.NewReader(file))
		at := int64(0)
		for {
			got, err := r.Next()
			if err != nil {
				if err != io.EOF && !errors.Is(err, ErrDamaged) {
					t.Fatal(err)
				}
				return
			}
			if got.Offset != at || got.Length <= 0 || at+got.Length > int64(len(file)) || cap(got.Body) > 2<<20 {
				t.Fatalf("record at %d of %d bytes, after %d", got.Offset, got.Length, at)
			}
			at += got.Length
			_ = got.Verify()
			_, _ = got.HTTP()
			one, _, err := NewEncoder(None).Append(nil, got)
			if err != nil {
				continue // readers accept more than may be written
			}
			again, err := ReadAt(bytes.NewReader(one), 0, int64(len(one)))
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Verify(); err != nil && got.PayloadDigest == "" {
				t.Fatal(err)
			}
			if again.TargetURI != got.TargetURI || again.Type != got.Type || !bytes.Equal(again.Header, got.Header) || !bytes.Equal(again.Body, got.Body) {
				t.Fatalf("wrote %+v, read %+v", got, again)
			}
		}
	})
}
