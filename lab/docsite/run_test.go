package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pages are those of docs with a word of their own.
const pages = 18

// docs makes a small documentation with some of what real ones have. All its files have a
// time in the past.
func docs(t *testing.T) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "docs")
	files := map[string]string{
		"index.html": `<!DOCTYPE html><title>Contents</title><link rel=stylesheet href=style.css><link rel=next href=page0.html>
			<a href="guide">guide</a> <a href=notes.txt>notes</a> <a href=translations/zh_CN/0.html>中文</a> <a href=translations/zh_CN/1.html>中文</a> <a href=gone.html>gone</a> <a href="empty/">empty</a>
			<a href="page0.html?highlight=x">found</a> <a href="a%20name%20with%20%C3%BC.html#top">odd</a> <a href=old.html>old</a>
			<a href="http://elsewhere.test/">elsewhere</a>`,
		"guide/index.html":   `<a href="../index.html">up</a> <a href="part.xhtml">part</a> <noscript><iframe src=toc.html></iframe></noscript>`,
		"guide/part.xhtml":   `<html xmlns="http://www.w3.org/1999/xhtml"><a href="../logo.svg">logo</a></html>`,
		"guide/toc.html":     `<base href="../"><a href=page9.html>last</a>`,
		"a name with ü.html": `<a href=/>home</a>`,
		"old.html":           `<meta http-equiv=refresh content="0; url=page1.html">`,
		"notes.txt":          strings.Repeat("plain text ", 1000),
		"style.css":          `body { color: black }`,
		"logo.svg":           `<svg xmlns="http://www.w3.org/2000/svg"/>`,
		"robots.txt":         "User-agent: *\nDisallow: /\n",
		"unlinked.html":      `nobody leads here`,
		"empty/.keep":        ``,
	}
	for i := range pages {
		word := strings.Repeat(string(rune('c'+i)), 9)
		files[fmt.Sprintf("page%d.html", i)] = fmt.Sprintf(`<title>Number %d - Docs</title><p>This page alone has the %s.<p><a href=page%d.html>next</a>%s`, i, word, (i+1)%pages, strings.Repeat("<p>much the same", i*10))
	}
	for i, text := range []string{"抓取程序把已知而未取的网址放在边界里，按价值排序。", "搜索引擎根据倒排索引查找网页，每一步取走到期的部分。"} {
		files[fmt.Sprintf("translations/zh_CN/%d.html", i)] = fmt.Sprintf("<title>第%d章</title><h1>%s</h1><p>%s</p>", i, text[:18], strings.Repeat(text, 2))
	}
	write(t, root, files)
	past := time.Date(2020, 2, 2, 2, 2, 2, 0, time.UTC)
	for name := range files {
		if err := os.Chtimes(filepath.Join(root, name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestRun makes a whole run on a small documentation, with the crawler as it is.
func TestRun(t *testing.T) {
	needNginx(t)
	if testing.Short() {
		t.Skip("it builds the crawler")
	}
	t.Setenv("TMPDIR", t.TempDir())
	bin := filepath.Join(t.TempDir(), "orbweaver")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", bin, "../../cmd/orbweaver").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var out, told bytes.Buffer
	if err := run(t.Context(), []string{"-docs", docs(t), "-binary", bin, "-partitions", "3", "-json"}, &out, &told); err != nil {
		t.Fatalf("%v\n%s%s", err, &told, &out)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	// index, / and guide/ by their folders, the odd one, old, notes, logo, part, toc, pages
	// of their own and one of them with a query, two in Chinese; guide, gone and empty/ besides.
	const served, others = pages + 12, 3
	if !r.OK || r.URLs != served+others || len(r.Phases) != 4 {
		t.Fatalf("%s\n%s", &told, &out)
	}
	for i, want := range []struct{ pages, ok, unchanged int }{
		{served + others, served, 0}, {served, 0, served}, {served, 2 * changes, served - 2*changes}, {served, 0, served - changes},
	} {
		p := r.Phases[i]
		if p.Pages != want.pages || p.Statuses[200] != want.ok || p.Statuses[304] != want.unchanged || faults(p.Checks) != 0 || p.Stored <= 0 || p.Sent <= 0 {
			t.Errorf("%+v, want %+v", p, want)
		}
	}
	if s := r.Search; s == nil || len(s.Sought) != 2 || s.Sought[0].Words.Asked != pages-1 || s.Sought[1].Words.Asked != 2 {
		t.Errorf("%+v", s)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %v (%v)", left, err)
	}
}
