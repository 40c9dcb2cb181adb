package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

//go:embed replay.py
var replayScript []byte

const replayed = 12 // pages that are compared

// replay crawls the site with its requisites, replays the archive with pywb, and compares some pages with the live ones in a browser.
// tools is a folder with programs of a Python environment that has pywb, playwright and pillow. Pictures go to shots.
func (t *trial) replay(ctx context.Context, tools, shots string) error {
	if err := t.site.walk(); err != nil {
		return err
	}
	all := slices.Sorted(maps.Keys(t.site.pages))
	all = slices.DeleteFunc(all, func(k string) bool { return !t.site.pages[k].html || t.site.pages[k].status != 200 })
	var urls []string
	for i := range min(replayed, len(all)) {
		urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d%s", t.server.port, all[i*len(all)/min(replayed, len(all))]))
	}
	dir := filepath.Dir(t.data)
	list, script := filepath.Join(dir, "urls"), filepath.Join(dir, "replay.py")
	if err := errors.Join(
		os.WriteFile(list, []byte(strings.Join(urls, "\n")), 0o600), os.WriteFile(script, replayScript, 0o600), os.MkdirAll(shots, 0o755),
	); err != nil {
		return err
	}
	_, err := t.server.during(ctx, func() error {
		if _, err := t.orbweaver(ctx, "", "crawl", "--allow-net=127.0.0.1", "--delay", "0s", urls[0], t.site.home.String()); err != nil {
			return err
		}
		files := filepath.Join(dir, "files")
		if _, err := t.orbweaver(ctx, "", "export", "--format", "warc", "--out", files); err != nil {
			return err
		}
		at, stop, err := serveArchive(ctx, tools, dir, files)
		if err != nil {
			return err
		}
		defer stop()
		cmd := exec.CommandContext(ctx, filepath.Join(tools, "python"), script, fmt.Sprintf("http://127.0.0.1:%d", t.server.port), at, list, shots)
		cmd.Stdout, cmd.Stderr = t.out, t.out
		return cmd.Run()
	})
	return err
}

// serveArchive serves WARC files by pywb and returns the address of the collection.
func serveArchive(ctx context.Context, tools, dir, files string) (at string, stop func(), err error) {
	warcs, err := filepath.Glob(filepath.Join(files, "*.warc.gz"))
	if err != nil {
		return "", nil, err
	}
	for _, args := range [][]string{{"init", "web"}, append([]string{"add", "web"}, warcs...)} {
		cmd := exec.CommandContext(ctx, filepath.Join(tools, "wb-manager"), args...)
		if cmd.Dir = dir; err == nil {
			var said []byte
			if said, err = cmd.CombinedOutput(); err != nil {
				return "", nil, fmt.Errorf("wb-manager %s: %w: %s", args[0], err, said)
			}
		}
	}
	// Without frames and banner, a replayed page looks like the live one.
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("framed_replay: false\n"), 0o600),
		os.MkdirAll(filepath.Join(dir, "templates"), 0o755), os.WriteFile(filepath.Join(dir, "templates", "banner.html"), nil, 0o600)); err != nil {
		return "", nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(tools, "wayback"), "-b", "127.0.0.1", "-p", port)
	cmd.Dir = dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = startTime
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	for until := time.Now().Add(3 * startTime); ; time.Sleep(100 * time.Millisecond) {
		if c, err := net.Dial("tcp4", addr); err == nil {
			return "http://" + addr + "/web", stop, c.Close()
		}
		if time.Now().After(until) {
			stop()
			return "", nil, errors.New("pywb does not answer")
		}
	}
}
