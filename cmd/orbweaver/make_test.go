//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMakeCrawl checks that Ctrl-C in 'make crawl' stops the crawl without an error of make, and that a failure is an
// error.
func TestMakeCrawl(t *testing.T) {
	t.Parallel()
	mk, err := exec.LookPath("make")
	if err != nil {
		t.Skip("SKIPPED: make is not installed")
	}
	makefile, err := filepath.Abs(filepath.FromSlash("../../Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "orbweaver")); err != nil {
		t.Fatal(err)
	}
	start := func(args, url string) (*exec.Cmd, *bytes.Buffer) {
		var out bytes.Buffer
		c := exec.CommandContext(t.Context(), mk, "-f", makefile, "-o", "build", "crawl", "ARGS="+args, "URL="+url) // bin/orbweaver is there
		c.Dir, c.Stdout, c.Stderr = dir, &out, &out
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a terminal does
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		return c, &out
	}
	site := newSite()
	defer site.close()
	c, out := start("--allow-net 127.0.0.1", site.url+"/slow/1")
	if !site.wait(1) {
		t.Error("make crawl sent no request")
	}
	if err := syscall.Kill(-c.Process.Pid, syscall.SIGINT); err != nil {
		t.Error(err)
	}
	_ = c.Wait() // make ends by the signal itself
	if text := out.String(); !strings.Contains(text, "Stopped, with 0 pages.") || strings.Contains(text, "***") {
		t.Errorf("after Ctrl-C:\n%s", text)
	}
	c, out = start("--scope galaxy", site.url)
	if err := c.Wait(); err == nil || !strings.Contains(out.String(), "Error 2") {
		t.Errorf("wrong use: %v\n%s", err, out)
	}
}
