package token

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"
	"unicode/utf16"
)

func TestDictionary(t *testing.T) {
	d := chinese()
	if n := len(d.costs); n < 500_000 {
		t.Errorf("only %d words", n)
	}
	for i := range d.costs {
		w := d.text[d.ends[i]:d.ends[i+1]]
		if i > 0 {
			before := d.text[d.ends[i-1]:d.ends[i]]
			if string(utf16.Decode(before)) >= string(utf16.Decode(w)) {
				t.Fatalf("word %d, %s, is not after %s", i, string(utf16.Decode(w)), string(utf16.Decode(before)))
			}
		}
		if i%97 != 0 {
			continue
		}
		found := false
		d.each(w, func(n int, cost uint8) { found = found || n == len(w) && cost == d.costs[i] })
		if !found {
			t.Fatalf("%s is not found", string(utf16.Decode(w)))
		}
	}
}

func TestCut(t *testing.T) {
	for _, want := range []string{
		"我们 去 参观 故宫", "研究 生命 起源", "他 来到 了 网易 杭 研 大厦", "乒乓球 拍卖 完 了", "臺灣大學 位於 臺北市", "𠀀",
	} {
		run := []rune(strings.ReplaceAll(want, " ", ""))
		han := make([]uint16, len(run))
		for i, r := range run {
			if r <= 0xFFFF {
				han[i] = uint16(r)
			}
		}
		var got []string
		from := 0
		for _, to := range chinese().cut(nil, han) {
			got = append(got, string(run[from:to]))
			from = to
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("got %s, want %s", s, want)
		}
	}
}

func TestDamagedDictionary(t *testing.T) {
	pack := func(b string) []byte {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		z.Write([]byte(b))
		z.Close()
		return out.Bytes()
	}
	if d, err := openDictionary(pack("\x00\x01\x4e\x00\x07\x01\x01\x4e\x01\x08")); err != nil || len(d.costs) != 2 || d.costs[1] != 8 {
		t.Errorf("a good one: %v, %v", d, err)
	}
	for _, bad := range []string{"\x00", "\x00\x00\x01", "\x01\x01\x4e\x00\x07", "\x00\x01\x4e", "\x00\x11" + strings.Repeat("\x4e\x00", 17) + "\x01"} {
		if _, err := openDictionary(pack(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := openDictionary([]byte("not gzip")); err == nil {
		t.Error("what is not gzip is taken")
	}
}
