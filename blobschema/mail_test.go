package blobschema

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

func TestMailRoundTrip(t *testing.T) {
	w := newWeb(t, 1)
	for _, m := range []Mail{
		{Crawl: "c", From: partition.Intake, To: 4095, Number: 1<<64 - 1, Epoch: 1<<64 - 1},
		{Crawl: strings.Repeat("c", naming.MaxCrawlID), URLs: []Queued{{URL: "https://a.example/", Rank: 1<<32 - 1, Generation: 1<<32 - 1, Depth: 1<<16 - 1, Flags: 255}}},
		{Crawl: "web", From: 1, To: 2, Number: 3, Epoch: 4, URLs: w.mailURLs(2000)},
	} {
		b, err := EncodeMail(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMail(b)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("mail differs (-want +got):\n%.2000s", diff)
		}
		slices.Reverse(m.URLs)
		if again, err := EncodeMail(m); err != nil || !bytes.Equal(b, again) {
			t.Errorf("the same URLs in another order are other bytes, %v", err)
		}
	}
}

// TestMailGolden checks that mail of the first version can still be read.
func TestMailGolden(t *testing.T) {
	want := Mail{Crawl: "web", From: 1, To: 2, Number: 3, Epoch: 4, URLs: []Queued{
		{URL: "https://a.example/", Depth: 1, Flags: FlagSeed}, {URL: "https://a.example/x", Depth: 2, Rank: 9, Key: "[192.0.2.1]", Flags: FlagPlaced}, {URL: "https://b.example/", Generation: 5, Topic: 2}}}
	const golden = "TQUDd2ViAQIDBABFKLUv/QAAKQIAAwEBAgABAAAFAQEIAAEACQABAAACAQASCBIBCmh0dHBzOi8vYS5leGFtcGxlL3hiLmV4YW1wbGUvC1sxOTIuMC4yLjFdWx3d9Q=="
	b, err := base64.StdEncoding.DecodeString(golden)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeMail(b)
	if err != nil {
		now, _ := EncodeMail(want)
		t.Fatalf("%v\nnow it is %s", err, base64.StdEncoding.EncodeToString(now))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mail differs (-want +got):\n%s", diff)
	}
}

// TestMailFields checks that fields that mail does not carry come back empty.
func TestMailFields(t *testing.T) {
	q := Queued{URL: "u", Slot: 5, Key: "h", Attempts: 3, NotBefore: 9, Depth: 2}
	b, err := EncodeMail(Mail{Crawl: "c", URLs: []Queued{q}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := DecodeMail(b)
	if want := (Queued{URL: "u", Depth: 2}); err != nil || m.URLs[0] != want {
		t.Errorf("mail has %+v, %v", m.URLs, err)
	}
}

func TestMailBounds(t *testing.T) {
	random := make([]byte, wire.MaxURL)
	r := newRand(8)
	var incompressible []Queued
	for range 100 {
		for i := range random {
			random[i] = byte(r.IntN(256))
		}
		incompressible = append(incompressible, Queued{URL: string(random)})
	}
	long := slices.Repeat([]Queued{{URL: strings.Repeat("u", wire.MaxURL)}}, MaxMailText/wire.MaxURL+1)
	for name, m := range map[string]Mail{
		"no crawl":  {},
		"bad crawl": {Crawl: "A"},
		"long URL":  {Crawl: "c", URLs: []Queued{{URL: strings.Repeat("u", wire.MaxURL+1)}}},
		"URLs":      {Crawl: "c", URLs: make([]Queued, MaxMailURLs+1)},
		"text":      {Crawl: "c", URLs: long},
		"bytes":     {Crawl: "c", URLs: incompressible},
	} {
		if b, err := EncodeMail(m); err == nil {
			t.Errorf("%s: mail of %d bytes", name, len(b))
		}
	}
	if _, err := EncodeMail(Mail{Crawl: "c", URLs: long[1:]}); err != nil {
		t.Errorf("as much text as is allowed: %v", err)
	}
	// The reader enforces the bounds too.
	for name, b := range map[string][]byte{
		"text":  sealLetter(letterMail, []byte("\x01c\x01\x01\x01\x01"), long),
		"URLs":  sealLetter(letterMail, []byte("\x01c\x01\x01\x01\x01"), make([]Queued, MaxMailURLs+1)),
		"bytes": make([]byte, MaxMailBytes+1),
		"crawl": sealLetter(letterMail, []byte("\x01C\x01\x01\x01\x01"), nil),
		"kind":  sealLetter(letterSeeds, []byte("\x01c\x01\x01\x01\x01"), nil),
		"head":  sealLetter(letterMail, []byte("\x21c\x01\x01\x01\x01"), nil),
		"ID":    sealLetter(letterMail, []byte("\x01c\xff\xff\xff\xff\x7f\x01\x01\x01"), nil),
	} {
		if _, err := DecodeMail(b); !errors.Is(err, wire.ErrDamaged) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestMailDamage(t *testing.T) {
	b, err := EncodeMail(Mail{Crawl: "web", From: 1, To: 2, Number: 3, URLs: newWeb(t, 1).mailURLs(5)})
	if err != nil {
		t.Fatal(err)
	}
	eachDamage(b, func(what string, b []byte) {
		if _, err := DecodeMail(b); !isRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	b[1]++
	if _, err := DecodeMail(b); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("mail of another version: %v", err)
	}
}

func TestSplitMail(t *testing.T) {
	w := newWeb(t, 9)
	many := make([]Queued, 0, MaxMailURLs+5)
	for i := range cap(many) {
		many = append(many, Queued{URL: fmt.Sprint("https://a.example/", i)})
	}
	for _, tt := range []struct {
		name   string
		urls   []Queued
		limit  int
		pieces int // at most
	}{
		{"none", nil, 0, 0},
		{"one", w.mailURLs(1), 0, 1},
		{"one, however long", []Queued{{URL: strings.Repeat("u", 100)}}, 1, 1},
		{"some", w.mailURLs(1000), 0, 1},
		{"many", w.mailURLs(30_000), 0, 13},
		{"to small pieces", w.mailURLs(1000), 1000, 40},
		{"to pieces of one", w.mailURLs(20), 1, 20},
		{"to the largest", w.mailURLs(30_000), 1 << 30, 3},
		{"more than fit by number", many, MaxMailBytes, 3},
		{"the same", slices.Repeat([]Queued{{URL: strings.Repeat("u", wire.MaxURL)}}, 1500), 0, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := slices.SortedFunc(slices.Values(tt.urls), byURL)
			pieces := SplitMail(tt.urls, tt.limit)
			limit := tt.limit
			if limit == 0 {
				limit = MailTarget
			}
			var got []Queued
			for _, p := range pieces {
				b, err := EncodeMail(Mail{Crawl: strings.Repeat("c", naming.MaxCrawlID), From: partition.Intake, To: 1<<32 - 1, Number: 1<<64 - 1, Epoch: 1<<64 - 1, URLs: p})
				if err != nil {
					t.Fatal(err)
				}
				if len(b) > limit && len(p) > 1 {
					t.Errorf("%d URLs take %d bytes", len(p), len(b))
				}
				got = append(got, p...)
			}
			if !slices.Equal(want, got) {
				t.Errorf("%d URLs become %d others", len(want), len(got))
			}
			if len(pieces) > tt.pieces {
				t.Errorf("%d pieces are above %d", len(pieces), tt.pieces)
			}
		})
	}
}

func TestSeeds(t *testing.T) {
	want := SeedBatch{Version: wire.Version, Number: 3, URLs: newWeb(t, 1).mailURLs(100)}
	b, err := EncodeSeeds(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeSeeds(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("seeds differ (-want +got):\n%s", diff)
	}
	eachDamage(b[:100], func(what string, b []byte) {
		if _, err := DecodeSeeds(b); !isRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	if _, err := EncodeSeeds(SeedBatch{Version: wire.Version + 1}); !errors.Is(err, wire.ErrVersion) {
		t.Errorf("seeds of another version: %v", err)
	}
	var random []Queued
	r := newRand(9)
	for range 50_000 {
		random = append(random, Queued{URL: fmt.Sprintf("%016x", r.Uint64())})
	}
	if _, err := EncodeSeeds(SeedBatch{URLs: random}); err == nil {
		t.Error("a batch that mail cannot hold is taken")
	}
}

func TestWake(t *testing.T) {
	b := EncodeWake("web-1", 3)
	if want := `{"version":5,"crawl":"web-1","partition":3}`; string(b) != want {
		t.Errorf("wake is %s, want %s", b, want)
	}
	if crawl, p, err := DecodeWake(b); crawl != "web-1" || p != 3 || err != nil {
		t.Errorf("wake decodes to %s, %d, %v", crawl, p, err)
	}
	for text, want := range map[string]error{
		"": wire.ErrDamaged, "null": wire.ErrVersion, "[]": wire.ErrDamaged, `{"version":1}`: wire.ErrVersion, `{"version":5}`: wire.ErrDamaged,
		`{"version":5,"crawl":"C","partition":3}`:    wire.ErrDamaged,
		`{"version":5,"crawl":"c","partition":-3}`:   wire.ErrDamaged,
		`{"version":5,"crawl":"c","partition":4096}`: wire.ErrDamaged,
	} {
		if _, _, err := DecodeWake([]byte(text)); !errors.Is(err, want) {
			t.Errorf("wake %q: error %v, want %v", text, err, want)
		}
	}
}

// FuzzMail fuzzes the content below checksum and compression.
func FuzzMail(f *testing.F) {
	f.Add([]byte("\x03web\x01\x02\x03\x04\x05"), encodeURLs(newWeb(f, 1).mailURLs(5)))
	f.Add([]byte("\x03web\x01\x02\x03\x04\x05"), encodeURLs(nil))
	f.Fuzz(func(t *testing.T, head, body []byte) {
		b := wire.AppendPacked(append([]byte{letterMail, wire.Version}, head...), body)
		b = append(b, 0, 0, 0, 0)
		sum := wire.Checksum(b[:len(b)-4])
		for i := range 4 {
			b[len(b)-4+i] = byte(sum >> (8 * i))
		}
		m, err := DecodeMail(b)
		if err != nil {
			if !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := EncodeMail(m)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeMail(again)
		if err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(m.URLs, byURL)
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzLetter decodes any message of a queue.
func FuzzLetter(f *testing.F) {
	b, err := EncodeMail(Mail{Crawl: "web", URLs: newWeb(f, 1).mailURLs(3)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	if b, err = EncodeSeeds(SeedBatch{URLs: newWeb(f, 1).mailURLs(3)}); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(EncodeWake("web", 3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := DecodeMail(b); err != nil && !isRefusal(err) {
			t.Error(err)
		}
		if _, err := DecodeSeeds(b); err != nil && !isRefusal(err) {
			t.Error(err)
		}
		if _, _, err := DecodeWake(b); err != nil && !isRefusal(err) {
			t.Error(err)
		}
		if _, err := wire.Unpack(b, 1<<20); err != nil && !isRefusal(err) {
			t.Error(err)
		}
	})
}
