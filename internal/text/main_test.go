package text

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzMain checks that Main drops parts of a body and changes nothing else.
func FuzzMain(f *testing.F) {
	f.Add([]byte("<nav><a href=1>x</a></nav><main><p>text <b>bold</b><script>no</script></main><ul><li>a<li>b</ul><footer>z"))
	f.Add([]byte("<div hidden>a<p>b</div>c<select><option>d</select>e</div></p>f"))
	f.Fuzz(func(t *testing.T, body []byte) {
		main, html, ok := Main("text/html; charset=utf-8", body, "http://a.example/")
		if _, want := Extract("text/html; charset=utf-8", body, "http://a.example/"); ok != want || html != ok {
			t.Errorf("html %v, ok %v, want %v", html, ok, want)
		}
		at := 0 // main is a subsequence of the body
		for _, c := range main {
			n := bytes.IndexByte(body[at:], c)
			if n < 0 {
				if bytes.ContainsRune(main, '\ufffd') {
					return // of bytes that are not UTF-8
				}
				t.Fatalf("%q is no part of %q", main, body)
			}
			at += n + 1
		}
	})
}

func TestMainText(t *testing.T) {
	const body = `<html><head><title>t</title></head><body><nav><ul><li><a href=/>menu</a></ul></nav><article><h1>Head</h1><p>` +
		`Words that are long enough to be the running text of this page, and more of them to be sure.<p>Second</p><button>b</button></article><footer>end</footer></body></html>`
	main, html, ok := Main("text/html", []byte(body), "http://a.example/")
	want := `<html><head></head><body><article><h1>Head</h1><p>Words that are long enough to be the running text of this page, and more of them to be sure.<p>Second</p></article></body></html>`
	if !html || !ok || string(main) != want {
		t.Errorf("got %v %v\n%s\nwant\n%s", html, ok, main, want)
	}
	if main, html, ok := Main("text/plain", []byte("a < b"), "http://a.example/"); html || !ok || string(main) != "a < b" {
		t.Errorf("plain text: %q, %v, %v", main, html, ok)
	}
	if _, _, ok := Main("image/png", []byte(strings.Repeat("\x00\x89PNG", 20)), "http://a.example/"); ok {
		t.Error("an image has a text")
	}
}
