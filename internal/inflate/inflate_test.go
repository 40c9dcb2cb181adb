package inflate

import (
	"bytes"
	stdflate "compress/flate"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/flate"
)

// raw decodes a DEFLATE stream without its frame, as Gzip does with it.
func (d *Decoder) raw(dst, src []byte, limit int) ([]byte, error) {
	d.open(dst, src, limit)
	err := d.deflate()
	return d.close(), err
}

// readAll reads up to limit bytes; its error is ErrLimit if there are more.
func readAll(r io.Reader, limit int) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if len(out) > limit {
		return out[:limit], ErrLimit
	}
	return out, err
}

// decoders are what is tested, and what it is to be equal to.
var decoders = map[string]struct {
	own      func(d *Decoder, dst, src []byte, limit int) ([]byte, error)
	standard func(src []byte, limit int) ([]byte, error)
}{
	"gzip": {
		(*Decoder).Gzip,
		func(src []byte, limit int) ([]byte, error) {
			r, err := stdgzip.NewReader(bytes.NewReader(src))
			if err != nil {
				return nil, err
			}
			return readAll(r, limit)
		},
	},
	"deflate": {
		(*Decoder).raw,
		func(src []byte, limit int) ([]byte, error) {
			return readAll(stdflate.NewReader(bytes.NewReader(src)), limit)
		},
	},
}

// equal holds a decoding to that of the standard library, with the output in a slice that is
// absent, just large enough, ample, or begun already. It returns what came out.
func equal(t *testing.T, d *Decoder, format string, src []byte, limit int) ([]byte, error) {
	t.Helper()
	want, wantErr := decoders[format].standard(src, limit)
	const before = "not to be referred to"
	var got []byte
	var err error
	for _, dst := range [][]byte{nil, make([]byte, 0, len(want)), []byte(before), append(make([]byte, 0, len(want)+1000), before...)} {
		n := len(dst)
		all, e := decoders[format].own(d, dst, src, limit)
		if len(all) < n || string(all[:n]) != before[:n] {
			t.Fatalf("%s %x: what was there before is gone", format, src)
		}
		got, err = all[n:], e
		if wantErr == io.ErrUnexpectedEOF {
			// The standard library wants as many bits for any code as the end of the block has, so
			// of an input that ends it leaves out what the last few bits mean. More input tells.
			more, _ := decoders[format].standard(append(bytes.Clone(src), make([]byte, 4)...), limit)
			if bytes.HasPrefix(got, want) && bytes.HasPrefix(more, got) && err != nil && (err != ErrLimit || len(got) == limit) {
				continue
			}
		}
		if !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) || (err == ErrLimit) != (wantErr == ErrLimit) {
			t.Fatalf("%s %x, at most %d bytes into %d of %d: %d bytes and %v, want %d and %v", format, src, limit, n, cap(dst), len(got), err, len(want), wantErr)
		}
	}
	if d.src != nil || d.dst != nil {
		t.Fatal("a slice is held on to")
	}
	return got, err
}

// texts are of all sizes that matter and of all degrees of redundancy.
func texts(t testing.TB) map[string][]byte {
	page := pages(t, 1)[0]
	return map[string][]byte{
		"nothing": nil, "byte": []byte("x"), "words": []byte("to be or not to be, that is to be the question"),
		"page": page, "noise": noise(100 << 10), "spaces": bytes.Repeat([]byte(" "), 100<<10),
		"pairs": bytes.Repeat([]byte("ab"), 300), "sevens": bytes.Repeat([]byte("abcdefg"), 100),
		"far": append(append([]byte{}, noise(32<<10)...), noise(32 << 10)[:1000]...),
	}
}

// streams are texts as encoders write them, DEFLATE without a frame.
func streams(t testing.TB) map[string][]byte {
	all := map[string][]byte{}
	for name, text := range texts(t) {
		for level := flate.HuffmanOnly; level <= 9; level++ {
			var a, b bytes.Buffer
			s, err := stdflate.NewWriter(&a, level)
			if err != nil {
				t.Fatal(err)
			}
			s.Write(text)
			s.Close()
			k, err := flate.NewWriter(&b, level)
			if err != nil {
				t.Fatal(err)
			}
			k.Write(text[:len(text)/2])
			k.Flush()
			k.Write(text[len(text)/2:])
			k.Close()
			all[fmt.Sprint("standard ", level, name)] = a.Bytes()
			all[fmt.Sprint("klauspost ", level, name)] = b.Bytes()
		}
		var b bytes.Buffer
		if err := flate.StatelessDeflate(&b, text, true, nil); err != nil {
			t.Fatal(err)
		}
		all["stateless "+name] = b.Bytes()
	}
	return all
}

func TestTexts(t *testing.T) {
	var d Decoder
	texts := texts(t)
	for name, src := range streams(t) {
		got, err := equal(t, &d, "deflate", src, 1<<20)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text := texts[strings.TrimLeft(name[strings.Index(name, " "):], " -0123456789")]; !bytes.Equal(got, text) {
			t.Errorf("%s: %d bytes, want %d", name, len(got), len(text))
		}
	}
}

// TestCuts ends the input, and the room for the output, at every byte.
func TestCuts(t *testing.T) {
	var d Decoder
	for name, text := range texts(t) {
		text = text[:min(len(text), 400)]
		for _, level := range []int{stdgzip.HuffmanOnly, 0, 1, 6} {
			src := zipped(t, text, level)
			for i := range src {
				if _, err := equal(t, &d, "gzip", src[:i], 1<<20); err != io.ErrUnexpectedEOF {
					t.Errorf("%s, %d of %d bytes: %v", name, i, len(src), err)
				}
			}
			for limit := range len(text) + 2 {
				got, err := equal(t, &d, "gzip", src, limit)
				if (err == ErrLimit) != (limit < len(text)) || !bytes.Equal(got, text[:min(limit, len(text))]) {
					t.Errorf("%s, at most %d: %d bytes, %v", name, limit, len(got), err)
				}
			}
		}
	}
	src := zipped(t, []byte("text"), 6)
	for limit, want := range map[int]string{-1: "", math.MinInt: "", math.MaxInt: "text"} {
		if got, err := d.Gzip([]byte("a "), src, limit); string(got) != "a "+want || (err == nil) != (want != "") {
			t.Errorf("at most %d: %q, %v", limit, got, err)
		}
	}
}

func TestMembers(t *testing.T) {
	header := func(flags byte, more string) string {
		return "\x1f\x8b\x08" + string([]byte{flags}) + "\x00\x00\x00\x00\x00\xff" + more
	}
	member := string(zipped(t, []byte("text"), 6))
	body := member[10:]
	long := strings.Repeat("n", maxName)
	var named bytes.Buffer
	w := stdgzip.NewWriter(&named)
	w.Name, w.Comment, w.Extra = "name", "comment", []byte("extra")
	w.Write([]byte("text"))
	w.Close()
	var d Decoder
	for _, tt := range []struct {
		name, src, want string
		err             error
	}{
		{"one", member, "text", nil},
		{"two", member + member, "texttext", nil},
		{"empty ones", string(zipped(t, nil, 6)) + member + string(zipped(t, nil, 0)), "text", nil},
		{"nothing", "", "", io.ErrUnexpectedEOF},
		{"all fields", named.String(), "text", nil},
		{"text, and reserved flags", header(0xe1, body), "text", nil},
		{"extra", header(flagExtra, "\x03\x00abc"+body), "text", nil},
		{"extra cut", header(flagExtra, "\xff\xffabc"+body), "", io.ErrUnexpectedEOF},
		{"no length of extra", header(flagExtra, "\x03"), "", io.ErrUnexpectedEOF},
		{"name", header(flagName, "n\xe4me\x00"+body), "text", nil},
		{"name and comment", header(flagName|flagComment, "name\x00\x00"+body), "text", nil},
		{"no end of name", header(flagName, "name"), "", io.ErrUnexpectedEOF},
		{"no comment", header(flagName|flagComment, "name\x00"), "", io.ErrUnexpectedEOF},
		{"longest name", header(flagName, long[1:]+"\x00"+body), "text", nil},
		{"too long a name", header(flagName, long+"\x00"+body), "", errHeader},
		{"checksum of header", header(flagHeaderCRC, "\x3f\xae"+body), "", errHeader},
		{"no checksum of header", header(flagHeaderCRC, "\x3f"), "", io.ErrUnexpectedEOF},
		{"other method", "\x1f\x8b\x07" + member[3:], "", errHeader},
		{"not gzip", "<!DOCTYPE html>", "", errHeader},
		{"wrong checksum", member[:len(member)-8] + "\x00" + member[len(member)-7:], "text", errChecksum},
		{"wrong size", member[:len(member)-1] + "\x01", "text", errChecksum},
		{"wrong, then another", member[:len(member)-1] + "\x01" + member, "text", errChecksum},
		{"trailer cut", member[:len(member)-1], "text", io.ErrUnexpectedEOF},
		{"trailing zero", member + "\x00", "text", io.ErrUnexpectedEOF},
		{"trailing text", member + "and something else", "text", errHeader},
		{"match into the member before", member + header(0, "\x03\x02\x00"+strings.Repeat("\x00", 8)), "text", errCorrupt},
	} {
		got, err := equal(t, &d, "gzip", []byte(tt.src), 1<<20)
		if string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: %q and %v, want %q and %v", tt.name, got, err, tt.want, tt.err)
		}
	}
	// With a checksum of the header that is right. No encoder at hand writes one.
	named.Reset()
	named.WriteString(header(flagHeaderCRC, ""))
	sum := crc(named.Bytes())
	src := named.String() + string([]byte{byte(sum), byte(sum >> 8)}) + body
	if got, err := equal(t, &d, "gzip", []byte(src), 100); string(got) != "text" || err != nil {
		t.Errorf("checksum of header: %q and %v", got, err)
	}
}

// TestRoom has little in, much out, and looks at what is allocated.
func TestRoom(t *testing.T) {
	var d Decoder
	bomb := zipped(t, make([]byte, 16<<20), 9)
	for _, limit := range []int{0, 1, 1000, 1 << 20} {
		got, err := d.Gzip(nil, bomb, limit)
		if most := (limit + slack) * 5 / 4; err != ErrLimit || len(got) != limit || cap(got) > most+4096 {
			t.Errorf("at most %d bytes: %d in %d, %v", limit, len(got), cap(got), err)
		}
	}
	src := zipped(t, pages(t, 1)[0], 6)
	dst := make([]byte, 0, 64<<10)
	if n := testing.AllocsPerRun(10, func() { d.Gzip(dst, src, 1<<20) }); n != 0 {
		t.Errorf("%v allocations where there is room", n)
	}
}

// TestMutations damages what encoders write.
func TestMutations(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var d Decoder
	for _, src := range streams(t) {
		if len(src) == 0 || len(src) > 20<<10 {
			continue
		}
		for range 20 {
			bad := bytes.Clone(src)
			for range 1 + rnd.IntN(3) {
				// Most often where the codes are.
				bad[rnd.IntN(min(len(bad), 1<<rnd.IntN(14)))] ^= 1 << rnd.IntN(8)
			}
			equal(t, &d, "deflate", bad, 1<<17)
		}
	}
}

func FuzzDeflate(f *testing.F) {
	for _, src := range streams(f) {
		if len(src) < 4<<10 {
			f.Add(src, uint16(100))
		}
	}
	for _, c := range codes {
		f.Add(c.write().bytes(), uint16(1000))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		f.Add(randomStream(rnd, 100), uint16(1000))
	}
	fuzz(f, "deflate")
}

func FuzzGzip(f *testing.F) {
	for _, text := range texts(f) {
		text = text[:min(len(text), 4<<10)]
		one := zipped(f, text, 6)
		f.Add(one, uint16(100))
		f.Add(append(one, one...), uint16(100))
	}
	f.Add([]byte("\x1f\x8b\x08\x1e\x00\x00\x00\x00\x00\xff\x01\x00xname\x00comment\x00\x00\x00\x03\x00"), uint16(1))
	fuzz(f, "gzip")
}

func fuzz(f *testing.F, format string) {
	var d Decoder // what it decoded before never shows
	f.Fuzz(func(t *testing.T, src []byte, limit uint16) {
		equal(t, &d, format, src, 1<<18)
		equal(t, &d, format, src, int(limit))
	})
}
