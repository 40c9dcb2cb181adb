package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
)

// files returns the paths of all objects of a kind.
func files(t *testing.T, data string, kind naming.Kind) (paths []string) {
	t.Helper()
	blobs := filepath.Join(data, naming.ObjectsFolder)
	err := filepath.WalkDir(blobs, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(blobs, path)
		if naming.KindOf(filepath.ToSlash(name)) == kind {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// damages are kinds of damage to a file. Bits are flipped everywhere except at its beginning.
var damages = []struct {
	name string
	do   func(path string) error
}{
	{"missing", os.Remove},
	{"cut", func(path string) error {
		info, err := os.Stat(path)
		return errors.Join(err, os.Truncate(path, info.Size()/10))
	}},
	{"flipped", func(path string) error {
		data, err := os.ReadFile(path)
		for i := len(data) / 10; i < len(data); i++ {
			data[i] ^= 0x55
		}
		return errors.Join(err, os.WriteFile(path, data, 0o600))
	}},
}

// damageCommands lists commands with the parts of a folder that each reads. SITE is the crawled site.
var damageCommands = []struct {
	args  string
	reads string // d the database, c commits, w WARC files, i the index, r ranks
}{
	{"crawl --allow-net 127.0.0.1 --delay 0s --quiet SITE/fixed", "dcir"},
	{"recrawl --allow-net 127.0.0.1 --quiet SITE/3", "dcir"},
	{"status", "d"},
	{"get SITE/3", "dcw"},
	{"export --format jsonl --out -", "dc"},
	{"search page", "dir"},
	{"rank", "dcr"},
	{"rank --show", "dr"},
	{"fsck", "dcwir"},
	{"explain SITE/3", "dc"},
	{"hosts", "d"},
	{"index", "di"},
}

// TestDamage damages each part of a folder in each way, and runs each command on it. A command that reads the part ends with
// the status of damage, and names the damage, the safe data and what to do. The others work. None creates another crawl.
func TestDamage(t *testing.T) {
	t.Parallel()
	s := newSite()
	t.Cleanup(s.close)
	base := filepath.Join(t.TempDir(), "base")
	mustRun(t, "crawl", "--data", base, "--allow-net", "127.0.0.1", "--delay", "0s", "--partitions", "1", "--index", "--quiet", s.url+"/0")
	database := func(data string) []string { return []string{filepath.Join(data, naming.DatabaseFile)} }
	of := func(kind naming.Kind, room string) func(string) []string {
		return func(data string) []string {
			return slices.DeleteFunc(files(t, data, kind), func(path string) bool {
				return !strings.Contains(filepath.ToSlash(path), room)
			})
		}
	}
	for _, part := range []struct {
		letter string
		files  func(data string) []string
		todo   string
	}{
		{"d", database, "restore the folder from a copy"},
		{"c", of(naming.State, "/p00000/c"), "restore the folder from a copy"},
		{"w", of(naming.Answers, ""), "restore the file from a copy"},
		{"i", of(naming.Derived, "/index/"), "orbweaver index --data DATA --rebuild"},
		{"r", of(naming.Derived, "/rank"), "orbweaver index --data DATA --rebuild"},
	} {
		for _, d := range damages {
			for _, c := range damageCommands {
				t.Run(part.letter+" "+d.name+" "+c.args, func(t *testing.T) {
					t.Parallel()
					data := filepath.Join(t.TempDir(), "d")
					if err := os.CopyFS(data, os.DirFS(base)); err != nil {
						t.Fatal(err)
					}
					crawls := crawlsIn(t, data)
					hit := part.files(data)
					if len(hit) == 0 {
						t.Fatal("there is nothing to damage")
					}
					for _, path := range hit {
						if err := d.do(path); err != nil {
							t.Fatal(err)
						}
					}
					args := append(strings.Fields(strings.ReplaceAll(c.args, "SITE", s.url)), "--data", data)
					status, out := inProcess(t, args...)
					checkDamage(t, status, strings.Contains(c.reads, part.letter), out, strings.ReplaceAll(part.todo, "DATA", data))
					if now := crawlsIn(t, data); !slices.Equal(now, crawls) {
						t.Errorf("there are crawls %v, before %v", now, crawls)
					}
					if part.letter == "w" && c.args == "fsck" && !regexp.MustCompile(`; 0 of [0-9]+ WARC files? verified, [1-9][0-9]* damaged\n`).MatchString(out) {
						t.Errorf("damaged files count as verified:\n%s", out)
					}
				})
			}
		}
	}
}

func checkDamage(t *testing.T, status exit, noticed bool, said, todo string) {
	t.Helper()
	if regexp.MustCompile(`panic|goroutine|runtime error|invalid memory`).MatchString(said) {
		t.Errorf("an error for programmers:\n%s", said)
	}
	want := exitOK
	if noticed {
		want = exitDamaged
	}
	if status != want {
		t.Errorf("exit status %d, want %d:\n%s", status, want, said)
	}
	if !noticed {
		return
	}
	for _, words := range []string{`(?m)^orbweaver: the folder .* is damaged: |^damaged: `, `(?mi)^ *safe: `, `(?mi)^ *to do: `, regexp.QuoteMeta(todo)} {
		if !regexp.MustCompile(words).MatchString(said) {
			t.Errorf("no word of %s:\n%s", words, said)
		}
	}
}

// inProcess runs a command line, and returns its output and errors.
func inProcess(t *testing.T, args ...string) (exit, string) {
	t.Helper()
	var said bytes.Buffer
	cmd := root()
	cmd.SetOut(&said)
	cmd.SetErr(&said)
	return execute(t.Context(), cmd, args), said.String()
}

func mustRun(t *testing.T, args ...string) string {
	t.Helper()
	status, out := inProcess(t, args...)
	if status != exitOK {
		t.Fatalf("%v: exit status %d\n%s", args, status, out)
	}
	return out
}

func crawlsIn(t *testing.T, data string) (ids []string) {
	t.Helper()
	dirs, err := os.ReadDir(filepath.Join(data, naming.ObjectsFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		ids = append(ids, d.Name())
	}
	return ids
}

// TestRebuild checks that after any damage to index and ranks, index --rebuild restores the results of a search, and that
// fsck is clean afterwards.
func TestRebuild(t *testing.T) {
	t.Parallel()
	s := newSite()
	t.Cleanup(s.close)
	base := filepath.Join(t.TempDir(), "base")
	mustRun(t, "crawl", "--data", base, "--allow-net", "127.0.0.1", "--delay", "0s", "--partitions", "2", "--index", "--quiet", s.url+"/0")
	mustRun(t, "rank", "--data", base) // a second job, so that there is a previous one
	found := regexp.MustCompile(`"url":\s*"[^"]*"`)
	want := found.FindAllString(mustRun(t, "search", "--json", "--data", base, "--limit", "50", "page"), -1)
	if len(want) < 30 {
		t.Fatalf("only %d results", len(want))
	}
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			data := filepath.Join(t.TempDir(), "d")
			if err := os.CopyFS(data, os.DirFS(base)); err != nil {
				t.Fatal(err)
			}
			for _, path := range files(t, data, naming.Derived) {
				if err := d.do(path); err != nil {
					t.Fatal(err)
				}
			}
			if status, out := inProcess(t, "search", "--data", data, "page"); status != exitDamaged {
				t.Errorf("search ends with %d:\n%s", status, out)
			}
			mustRun(t, "index", "--rebuild", "--quiet", "--data", data)
			if got := found.FindAllString(mustRun(t, "search", "--json", "--data", data, "--limit", "50", "page"), -1); !slices.Equal(got, want) {
				t.Errorf("it finds %v, before %v", got, want)
			}
			mustRun(t, "fsck", "--data", data)
			mustRun(t, "rank", "--data", data)
		})
	}
}

// TestDamageAdvice checks that the last object that was read decides, and that in a shared crawl it may only have been
// replaced.
func TestDamageAdvice(t *testing.T) {
	segment, table := naming.Segment("c", 3, 17, nil), naming.RankObject("c", 3, 12, "table", nil)
	page := fmt.Errorf("read record of https://c.example/ in %s at 7: %w", naming.WARC("c", 3, 2, 17, true), warc.ErrDamaged)
	cloud := &target{location: deployment{"aws://web?bucket=b&partitions=4", []string{"--platform", "aws.json"}}, live: true}
	for _, c := range []struct {
		place *target
		err   error
		want  string // a regular expression; "" for an error that is about something else
	}{
		{folderTarget("d"), page, `^the folder d is damaged: read record of .*: damaged WARC record\.\nSafe: the pages in all other WARC files, .*\.\nTo do: restore the file from a copy\. .*\. 'orbweaver fsck --data d' lists all damage$`},
		{folderTarget("d"), fmt.Errorf("segment %s: %s: %w", segment, table, fs.ErrNotExist), `^the folder d is damaged: ` + table + ` is missing\.\nSafe: the crawl .*\.\nTo do: make index and ranks again with 'orbweaver index --data d --rebuild'\. `},
		{&target{location: folder("d"), data: "d", live: true}, fmt.Errorf("get %s: %w", segment, actor.ErrNotFound), `\nTo do: try again first, because the crawl may just have replaced the object\. If the error stays, make index and ranks again`},
		{cloud, fmt.Errorf("get %s: %w", naming.Commit("c", 3, 17, 2), wire.ErrDamaged), `^what is stored in aws://web is damaged: .*\nTo do: try again first, .* restore table and bucket as they were at one moment\. .* 'orbweaver fsck --platform aws.json' lists all damage$`},
		{folderTarget("d"), fmt.Errorf("read d/orbweaver.db: %w", drivers.ErrDamaged), `\nTo do: restore the folder from a copy, with both orbweaver\.db and blobs\. Without a copy, start another crawl in another folder \(--data\)$`},
		{folderTarget("d"), fmt.Errorf("read urls.txt: %w", fs.ErrNotExist), ""},
		{folderTarget("d"), fmt.Errorf("get %s: permission denied", segment), ""},
	} {
		got := ""
		if err := c.place.damage(c.err); err != nil {
			got = err.Error()
			if statusOf(err) != exitDamaged {
				t.Errorf("%v: exit status %d", c.err, statusOf(err))
			}
		}
		if (got == "") != (c.want == "") || !regexp.MustCompile("(?s)"+c.want).MatchString(got) {
			t.Errorf("%v:\n%s\nwant %s", c.err, got, c.want)
		}
	}
}
