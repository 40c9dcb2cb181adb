package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/view"
)

// The names of the files that export writes.
const (
	indexFile = "index.cdxj"
	pagesFile = "pages.jsonl"
	urlsFile  = "urls.txt"
)

type exportFlags struct {
	target
	format   string
	out      string
	name     string // of the file in that folder; "" for the usual one
	outcomes []string
	topic    string
	history  bool
	force    bool
}

func newExport() *cobra.Command {
	var f exportFlags
	cmd := command("export", noArguments, func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		ctx, release := following(cmd.Context())
		defer release() // a signal leaves no partial file behind
		return f.read(ctx, func(v *view.View) error {
			frozen, err := v.Freeze(ctx) // files and index are of one moment
			if err != nil {
				return err
			}
			e := exporter{exportFlags: &f, view: frozen, stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), last: time.Now()}
			err = e.run(ctx)
			if err != nil && ctx.Err() != nil {
				return fail(exitStopped, errors.New("stopped; the export is incomplete"))
			}
			return err
		})
	})
	f.target.register(cmd)
	f.registerCrawl(cmd)
	cmd.Flags().StringVar(&f.format, "format", "", "what to write: warc, cdxj, jsonl or urls")
	cmd.Flags().StringVar(&f.out, "out", "", "folder to write into, or the name of one file, such as urls.txt; - for standard output")
	cmd.Flags().StringSliceVar(&f.outcomes, "outcome", nil, "jsonl and urls: only these outcomes, such as ok,redirect")
	cmd.Flags().StringVar(&f.topic, "topic", "", "jsonl and urls: only this topic")
	cmd.Flags().BoolVar(&f.history, "history", false, "jsonl and urls: every record of a URL, not only the latest")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite files")
	return cmd
}

func (f *exportFlags) check() error {
	if !slices.Contains([]string{"warc", "cdxj", "jsonl", "urls"}, f.format) {
		return usagef("--format must be warc, cdxj, jsonl or urls, not %q", f.format)
	}
	if f.out == "" {
		return usagef("give the folder to write into with --out, or - for standard output")
	}
	if f.out == "-" && f.format == "warc" {
		return usagef("--format warc writes several files; give a folder with --out")
	}
	if info, err := os.Stat(f.out); f.format != "warc" && filepath.Ext(f.out) != "" && (err != nil || !info.IsDir()) {
		f.out, f.name = filepath.Split(f.out)
		f.out = cmp.Or(f.out, ".")
	}
	for flag, given := range map[string]bool{"outcome": len(f.outcomes) > 0, "topic": f.topic != ""} {
		if given && f.format != "jsonl" && f.format != "urls" {
			return usagef("--%s is for --format jsonl and urls", flag)
		}
	}
	for _, o := range f.outcomes {
		if _, err := blobschema.ParseOutcome(o); err != nil {
			return usagef("--outcome: %w", err)
		}
	}
	return nil
}

// exporter writes one export.
type exporter struct {
	*exportFlags
	view   *view.View
	stdout io.Writer
	stderr io.Writer
	last   time.Time // time of the last line of progress
}

func (e *exporter) run(ctx context.Context) error {
	if e.toStdout() {
		w := bufio.NewWriterSize(e.stdout, 64<<10)
		_, err := e.list(ctx, w)
		return errors.Join(err, w.Flush())
	}
	if err := os.MkdirAll(e.out, 0o755); err != nil {
		return err
	}
	if e.format == "warc" {
		return e.warcs(ctx)
	}
	name := cmp.Or(e.name, map[string]string{"cdxj": indexFile, "jsonl": pagesFile, "urls": urlsFile}[e.format])
	n, err := e.write(ctx, name)
	if err != nil {
		return err
	}
	return e.done(fmt.Sprintf("%s in %s", plural(n, "line"), filepath.Join(e.out, name)))
}

// toStdout reports whether the export goes to standard output.
func (e *exporter) toStdout() bool { return e.out == "-" }

// done reports the written files.
func (e *exporter) done(what string) error {
	_, err := fmt.Fprintln(e.stdout, what)
	return err
}

// progress reports the progress of the export every few seconds.
func (e *exporter) progress(n int64, noun string) {
	if now := time.Now(); now.Sub(e.last) > 3*time.Second {
		e.last = now
		fmt.Fprintf(e.stderr, "export: %s\n", plural(n, noun))
	}
}

// target returns the path of a file. Without --force it refuses a file that exists.
func (e *exporter) target(name string) (string, error) {
	to := filepath.Join(e.out, name)
	if _, err := os.Lstat(to); err == nil && !e.force {
		return "", usagef("%s exists already; give another place with --out, or overwrite it with --force", to)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return to, nil
}

// write writes a list into a temporary file, and renames the complete file.
func (e *exporter) write(ctx context.Context, name string) (lines int64, err error) {
	to, err := e.target(name)
	if err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(e.out, ".export-")
	if err != nil {
		return 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	w := bufio.NewWriterSize(f, 256<<10)
	lines, err = e.list(ctx, w)
	if err = errors.Join(err, w.Flush(), f.Chmod(0o644), f.Close()); err != nil {
		return 0, err
	}
	return lines, os.Rename(f.Name(), to)
}

// pageLine is a page record with the name of its topic.
type pageLine struct {
	*blobschema.Page
	TopicName string `json:"topic_name,omitempty"`
}

// list writes the lines of the format.
func (e *exporter) list(ctx context.Context, w io.Writer) (lines int64, err error) {
	if e.format == "cdxj" || e.format == "warc" {
		tmp := e.out
		if e.toStdout() {
			tmp = ""
		}
		return e.view.CDXJ(ctx, w, tmp)
	}
	which := view.LatestRecord
	if e.history {
		which = view.EveryRecord
	}
	c, err := e.view.Crawl(ctx)
	if err != nil {
		return 0, err
	}
	topics := view.TopicNumbers(&c.Settings, e.topic)
	if e.topic != "" && len(topics) == 0 {
		return 0, usagef("the crawl in %s has no topic %q; '%s' lists those that it has", &e.exportFlags.target, e.topic, e.command("topics"))
	}
	records := json.NewEncoder(w)
	records.SetEscapeHTML(false)
	for pg, err := range e.view.Pages(ctx, which) {
		if err != nil {
			return lines, err
		}
		if len(e.outcomes) > 0 && !slices.Contains(e.outcomes, pg.Outcome.String()) {
			continue
		}
		if e.topic != "" && !slices.Contains(topics, pg.Topic) {
			continue
		}
		if e.format == "urls" {
			if pg.Robots { // the crawler requested it for itself
				continue
			}
			_, err = io.WriteString(w, pg.URL+"\n")
		} else {
			err = records.Encode(pageLine{&pg, view.TopicName(&c.Settings, pg.Topic)})
		}
		if err != nil {
			return lines, err
		}
		lines++
		e.progress(lines, "line")
	}
	return lines, nil
}

// warcs links or copies the WARC files of all visible commits, and then writes their
// index: an export with an index is complete.
func (e *exporter) warcs(ctx context.Context) error {
	var names []string
	for name, err := range e.view.WARCs(ctx) {
		if err != nil {
			return err
		}
		if _, err := e.target(path.Base(name)); err != nil {
			return err
		}
		names = append(names, name)
	}
	if _, err := e.target(indexFile); err != nil {
		return err
	}
	bytes, err := e.bring(ctx, names)
	if err != nil {
		return err
	}
	lines, err := e.write(ctx, indexFile)
	if err != nil {
		return err
	}
	return e.done(fmt.Sprintf("%s (%s) and %s with %s in %s",
		plural(len(names), "WARC file"), size(bytes), indexFile, plural(lines, "line"), e.out))
}

// loads is the number of WARC files that are linked or loaded at once. Each has at most about 32 MiB.
const loads = 4

// bring links or copies files, and returns the sum of their sizes.
func (e *exporter) bring(ctx context.Context, names []string) (bytes int64, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(loads)
	var mu sync.Mutex
	done := int64(0)
	for _, name := range names {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			n, err := e.warc(ctx, name)
			if err != nil {
				return fmt.Errorf("export %s: %w", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			bytes += n
			done++
			e.progress(done, "WARC file")
			return nil
		})
	}
	err = g.Wait()
	return bytes, err
}

// warc links or copies one file, and returns its size.
func (e *exporter) warc(ctx context.Context, name string) (int64, error) {
	to := filepath.Join(e.out, path.Base(name))
	if !strings.HasPrefix(path.Base(name), "orbweaver-") {
		return 0, fmt.Errorf("%w: no name of a WARC file", wire.ErrDamaged)
	}
	from, err := e.view.File(ctx, name)
	if err != nil {
		return 0, err
	}
	if e.force {
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	if from != "" && os.Link(from, to) == nil {
		info, err := os.Stat(to)
		if err != nil {
			return 0, err
		}
		return info.Size(), nil
	}
	data, err := e.view.Store().Object(ctx, name, 0, -1) // at most some 32 MiB
	if err != nil {
		return 0, err
	}
	return int64(len(data)), os.WriteFile(to, data, 0o644)
}
