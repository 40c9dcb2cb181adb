// Docsite crawls real documentation that nginx serves on loopback, and compares the crawl
// with the files that were served:
//
//	make docsite DOCS=/usr/share/doc/linux-doc/html
//
// Any folder of HTML with an index.html will do; nginx serves a copy of it. The crawler is
// the orbweaver program, used through its commands. There are two phases:
//
//   - crawl: from index.html until nothing is left. Then the pages are indexed and ranked.
//   - recrawl: each page is requested again, after five pages got another word and five others
//     another time only, and five more were removed.
//
// Each phase compares page records and stored payloads with the files, the server's log with
// the requests that the files call for, the crawler's figures with the log and the archive,
// ranks with those of the files' links, and searches with the files' text. [trial.compare]
// makes every comparison, of two tables of text. Links and ranks of the files are
// computed here, without the crawler's packages, which only read what is stored.
//
// With -replay it crawls with requisites instead, and compares pages with their replay in a browser (replay.go).
//
// The exit status is 0 only if no comparison differs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	docs := flag.String("docs", "/usr/share/doc/linux-doc/html", "`folder` of HTML files with an index.html")
	binary := flag.String("binary", filepath.Join("bin", "orbweaver"), "the orbweaver `program`")
	tools := flag.String("replay", "", "instead, replay the archive in a browser; `folder` of programs with pywb, playwright and pillow")
	shots := flag.String("shots", filepath.Join(".cache", "replay-shots"), "`folder` for pictures of the pages")
	flag.Parse()
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, *docs, *binary, func(t *trial) error {
		if *tools != "" {
			return t.replay(ctx, *tools, *shots)
		}
		return t.run(ctx)
	}, os.Stdout)
	release()
	if err != nil {
		fmt.Fprintln(os.Stderr, "docsite:", err)
		os.Exit(1)
	}
}

// run runs a trial in a temporary folder.
func run(ctx context.Context, docs, binary string, try func(*trial) error, out io.Writer) (err error) {
	if _, err := os.Stat(filepath.Join(docs, "index.html")); err != nil {
		return fmt.Errorf("%w; give another -docs, or on Debian and Ubuntu: apt-get install linux-doc", err)
	}
	if binary, err = exec.LookPath(binary); err != nil {
		return fmt.Errorf("%w; build it with 'make build'", err)
	}
	dir, err := os.MkdirTemp("", "orbweaver-docsite-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	srv, err := newServer(dir)
	if err != nil {
		return err
	}
	www := filepath.Join(dir, webDir)
	// nginx makes its validators from the times of files, so the copy keeps them.
	if said, err := exec.CommandContext(ctx, "cp", "-RLp", docs, www).CombinedOutput(); err != nil {
		return fmt.Errorf("copy %s: %w: %s", docs, err, said)
	}
	t := &trial{out: out, site: newSite(www, srv.port), server: srv, binary: binary, data: filepath.Join(dir, "crawl")}
	if err := try(t); err != nil {
		return err
	}
	if t.wrong > 0 {
		return fmt.Errorf("%d of %d comparisons differ", t.wrong, t.compared)
	}
	if t.compared > 0 {
		fmt.Fprintf(out, "%d comparisons, none differs\n", t.compared)
	}
	return nil
}
