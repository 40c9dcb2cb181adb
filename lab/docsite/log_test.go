package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const aLine = `{"status":304,"bytes":180,"method":"GET","uri":"/a%20b?c","if_none_match":"W/\"5f-1\"","if_modified_since":""}` + "\n"

func TestParseLog(t *testing.T) {
	got, err := parseLog([]byte(aLine + strings.Replace(aLine, "304", "200", 1)))
	want := request{Status: 304, Bytes: 180, Method: "GET", URI: "/a%20b?c", IfNoneMatch: `W/"5f-1"`}
	if err != nil || len(got) != 2 || got[1].Status != 200 {
		t.Fatalf("%+v, %v", got, err)
	}
	if d := cmp.Diff(want, got[0]); d != "" {
		t.Error(d)
	}
	if k, err := got[0].key(); k != "/a b?c" || err != nil || !got[0].conditional() {
		t.Errorf("%s, %v", k, err)
	}
	for _, bad := range []string{"127.0.0.1 - -\n", `{"status":"x"}` + "\n", aLine + "{\n", "\n", strings.Repeat("x", maxLine+1)} {
		if got, err := parseLog([]byte(bad)); err == nil {
			t.Errorf("%.100q is read as %v", bad, got)
		}
	}
	if k, err := (&request{}).key(); err == nil {
		t.Errorf("a request for nothing has the key %q", k)
	}
}

func FuzzParseLog(f *testing.F) {
	f.Add([]byte(aLine))
	f.Add([]byte(`{"uri":"` + markURI + `?1"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := parseLog(text)
		if err != nil && all != nil {
			t.Error("there are lines and an error")
		}
		for i := range all {
			if k, err := all[i].key(); err == nil && k == "" {
				t.Errorf("%q has no key", all[i].URI)
			}
		}
	})
}

// TestLogReader reads a log that grows, cut anywhere.
func TestLogReader(t *testing.T) {
	mark := func(n string) string { return `{"status":204,"method":"GET","uri":"` + markURI + "?" + n + `"}` + "\n" }
	l := logReader{name: filepath.Join(t.TempDir(), "log")}
	for i, c := range []struct {
		text string
		want int
	}{
		{mark("0") + aLine + aLine + mark("1"), 2},
		{mark("2"), 0},
		{aLine + mark("3"), 1},
	} {
		old, _ := os.ReadFile(l.name)
		if err := os.WriteFile(l.name, append(old, c.text...), 0o644); err != nil {
			t.Fatal(err)
		}
		l.marks++
		got, err := l.read(t.Context())
		if err != nil || len(got) != c.want {
			t.Errorf("piece %d: %d requests, %v; want %d", i+1, len(got), err, c.want)
		}
	}
}
