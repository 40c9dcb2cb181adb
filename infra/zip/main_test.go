package main

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestSameBytes checks that the zip depends only on the contents of the executable.
func TestSameBytes(t *testing.T) {
	dir := t.TempDir()
	content := bytes.Repeat([]byte("orbweaver\x00\x01"), 10_000)
	make := func(name string, content []byte, mode os.FileMode, age time.Duration) []byte {
		t.Helper()
		exe, out := filepath.Join(dir, name), filepath.Join(dir, name+".zip")
		if err := os.WriteFile(exe, content, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(exe, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		if err := run(out, exe); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	first := make("a", content, 0o755, 0)
	if !bytes.Equal(first, make("b", content, 0o600, time.Hour)) {
		t.Error("name, mode or time of the executable show in the zip")
	}
	if bytes.Equal(first, make("c", content[1:], 0o755, 0)) {
		t.Error("other content, same zip")
	}

	r, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil || len(r.File) != 1 {
		t.Fatalf("%d files, %v", len(r.File), err)
	}
	f := r.File[0]
	if f.Name != "bootstrap" || f.Mode() != 0o755 {
		t.Errorf("%s with mode %v", f.Name, f.Mode())
	}
	in, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, content) {
		t.Errorf("%d bytes come out, %v", len(got), err)
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestNothingHalf checks that a failure does not change the zip.
func TestNothingHalf(t *testing.T) {
	out := filepath.Join(t.TempDir(), "f.zip")
	if err := os.WriteFile(out, []byte("before"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, exe := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		if err := run(out, exe); err == nil {
			t.Errorf("%s is packed", exe)
		}
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "before" {
		t.Errorf("%q, %v", b, err)
	}
}
