package main

import (
	"cmp"
	"context"
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
	"github.com/orbweaver/orbweaver/internal/export"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// indexFile ends an export of WARC files.
const indexFile = "index.cdxj"

// exportFiles are the names of the files that export writes, by format; "" for a format that writes several.
var exportFiles = map[string]string{
	"warc": "", "parquet": "", "wacz": "crawl.wacz", "cdxj": indexFile, "jsonl": "pages.jsonl", "csv": "pages.csv", "urls": "urls.txt",
	"links": "links.jsonl", "text": "text.jsonl", "markdown": "markdown.jsonl",
}

// exportFormats are those formats in the order of the help.
var exportFormats = []string{"warc", "wacz", "cdxj", "jsonl", "csv", "parquet", "links", "text", "markdown", "urls"}

type exportFlags struct {
	target
	format   string
	out      string
	name     string // of the file in that folder; "" for the usual one
	outcomes []string
	topic    string
	with     []string
	since    string
	history  bool
	force    bool

	from time.Time // since
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
			frozen, err := v.Freeze(ctx) // all files are of one moment
			if err != nil {
				return err
			}
			e := exporter{exportFlags: &f, view: frozen.Since(f.from), stdout: cmd.OutOrStdout(), stderr: cmd.ErrOrStderr(), last: time.Now()}
			err = e.run(ctx)
			if err != nil && ctx.Err() != nil {
				return fail(exitStopped, errors.New("stopped; the export is incomplete"))
			}
			return err
		})
	})
	f.target.register(cmd)
	f.registerCrawl(cmd)
	cmd.Flags().StringVar(&f.format, "format", "", "what to write: "+strings.Join(exportFormats, ", "))
	cmd.Flags().StringVar(&f.out, "out", "", "folder to write into, or the name of one file, such as urls.txt; - for standard output")
	cmd.Flags().StringSliceVar(&f.outcomes, "outcome", nil, "of page records: only these outcomes, such as ok,redirect")
	cmd.Flags().StringVar(&f.topic, "topic", "", "of page records: only this topic")
	cmd.Flags().BoolVar(&f.history, "history", false, "of page records: every record of a URL, not only the latest")
	cmd.Flags().StringSliceVar(&f.with, "with", nil, "jsonl, csv and parquet: columns that take longer: referrer, words, headers")
	cmd.Flags().StringVar(&f.since, "since", "", "only what was fetched since a time, such as 2026-11-27 or 2026-11-27T15:04:05Z, or in the last 24h")
	cmd.Flags().BoolVar(&f.force, "force", false, "overwrite files")
	return cmd
}

func (f *exportFlags) check() error {
	if !slices.Contains(exportFormats, f.format) {
		return usagef("--format must be one of %s, not %q", strings.Join(exportFormats, ", "), f.format)
	}
	if f.out == "" {
		return usagef("give the folder to write into with --out, or - for standard output")
	}
	several := exportFiles[f.format] == ""
	if f.out == "-" && several {
		return usagef("--format %s writes several files; give a folder with --out", f.format)
	}
	if info, err := os.Stat(f.out); !several && filepath.Ext(f.out) != "" && (err != nil || !info.IsDir()) {
		f.out, f.name = filepath.Split(f.out)
		f.out = cmp.Or(f.out, ".")
	}
	table := slices.Contains([]string{"jsonl", "csv", "parquet"}, f.format)
	pages := table || slices.Contains([]string{"text", "markdown", "urls"}, f.format)
	for flag, wrong := range map[string]bool{
		"outcome": len(f.outcomes) > 0 && !pages, "topic": f.topic != "" && !pages, "history": f.history && !pages, "with": len(f.with) > 0 && !table,
	} {
		if wrong {
			return usagef("--%s is not for --format %s", flag, f.format)
		}
	}
	for _, o := range f.outcomes {
		if _, err := blobschema.ParseOutcome(o); err != nil {
			return usagef("--outcome: %w", err)
		}
	}
	for _, column := range f.with {
		if !slices.Contains([]string{"referrer", "words", "headers"}, column) {
			return usagef("--with knows referrer, words and headers, not %q", column)
		}
	}
	return f.parseSince(time.Now())
}

// parseSince parses --since.
func (f *exportFlags) parseSince(now time.Time) (err error) {
	if f.since == "" {
		return nil
	}
	if d, err := time.ParseDuration(f.since); err == nil && d >= 0 {
		f.from = now.Add(-d)
		return nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if f.from, err = time.Parse(layout, f.since); err == nil {
			return nil
		}
	}
	return usagef("--since must be a time such as 2026-11-27 or 2026-11-27T15:04:05Z, or a duration such as 24h, not %q", f.since)
}

// exporter writes one export.
type exporter struct {
	*exportFlags
	view   *view.View
	stdout io.Writer
	stderr io.Writer
	last   time.Time // time of the last line of progress
	rows   export.Export
}

func (e *exporter) run(ctx context.Context) error {
	if err := e.prepare(ctx); err != nil {
		return err
	}
	if e.out == "-" {
		_, err := e.list(ctx, e.stdout)
		return errors.Join(err, e.damage())
	}
	if err := os.MkdirAll(e.out, 0o755); err != nil {
		return err
	}
	switch e.format {
	case "warc":
		return e.warcs(ctx)
	case "parquet":
		return e.tables(ctx)
	}
	name, noun := cmp.Or(e.name, exportFiles[e.format]), "line"
	if e.format == "wacz" {
		noun = "WARC file"
	}
	n, err := e.write(ctx, name)
	if err == nil {
		err = e.done(fmt.Sprintf("%s in %s", plural(n, noun), filepath.Join(e.out, name)))
	}
	return errors.Join(err, e.damage())
}

// prepare sets what the rows are.
func (e *exporter) prepare(ctx context.Context) error {
	c, err := e.view.Crawl(ctx)
	if err != nil {
		return err
	}
	e.rows = export.Export{
		View: e.view, Settings: &c.Settings, Which: view.LatestRecord, Outcomes: e.outcomes, Topics: view.TopicNumbers(&c.Settings, e.topic),
		Referrer: slices.Contains(e.with, "referrer"), Words: slices.Contains(e.with, "words"), Headers: slices.Contains(e.with, "headers"),
		Progress: e.progress,
	}
	if e.out != "-" {
		e.rows.Tmp = e.out
	}
	if e.history {
		e.rows.Which = view.EveryRecord
	}
	if e.topic != "" && len(e.rows.Topics) == 0 {
		return usagef("the crawl in %s has no topic %q; '%s' lists those that it has", &e.exportFlags.target, e.topic, e.command("topics"))
	}
	return nil
}

// done reports the written files.
func (e *exporter) done(what string) error {
	_, err := fmt.Fprintln(e.stdout, what)
	return err
}

// damage returns an error if a stored answer could not be read. The export has everything else.
func (e *exporter) damage() error {
	if e.rows.Damaged == 0 {
		return nil
	}
	return fail(exitDamaged, fmt.Errorf("%s could not be read; the export has everything else, and '%s' lists the damage. The first: %w",
		plural(e.rows.Damaged, "stored answer"), e.command("fsck"), e.rows.First))
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

// draft is a file that gets its name when it is complete.
type draft struct {
	*os.File
	to string
}

// create creates a draft of a file.
func (e *exporter) create(name string) (*draft, error) {
	to, err := e.target(name)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(to), ".export-")
	return &draft{f, to}, err
}

// end names the file if err is nil, and removes it otherwise.
func (d *draft) end(err error) error {
	if err = errors.Join(err, d.Chmod(0o644), d.Close()); err == nil {
		err = os.Rename(d.Name(), d.to)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(d.Name()))
	}
	return err
}

// write writes a list into a file.
func (e *exporter) write(ctx context.Context, name string) (lines int64, err error) {
	d, err := e.create(name)
	if err != nil {
		return 0, err
	}
	lines, err = e.list(ctx, d)
	return lines, d.end(err)
}

// list writes the rows of the format.
func (e *exporter) list(ctx context.Context, w io.Writer) (lines int64, err error) {
	switch {
	case e.format == "cdxj" || e.format == "warc":
		return e.view.CDXJ(ctx, w, e.rows.Tmp)
	case e.format == "wacz":
		err = e.rows.WACZ(ctx, w, "orbweaver "+version)
	case e.format == "links" && filepath.Ext(e.name) == ".csv":
		err = e.rows.Lines(ctx, "links-csv", w)
	default:
		err = e.rows.Lines(ctx, e.format, w)
	}
	return e.rows.Rows, err
}

// tables writes the pages of each partition and the links as tables. All get their names when all are complete.
func (e *exporter) tables(ctx context.Context) (err error) {
	old, err := filepath.Glob(filepath.Join(e.out, "pages", "part-*.parquet"))
	if err == nil && len(old) > 0 && !e.force {
		_, err = e.target(filepath.Join("pages", filepath.Base(old[0])))
	}
	if err != nil {
		return err
	}
	var drafts []*draft
	create := func(name string) (io.Writer, error) {
		d, err := e.create(name)
		if err == nil {
			drafts = append(drafts, d)
		}
		return d, err
	}
	err = e.rows.Pages(ctx, func(p partition.ID) (io.Writer, error) {
		return create(filepath.Join("pages", fmt.Sprintf("part-%05d.parquet", p)))
	})
	if err == nil {
		var w io.Writer
		if w, err = create("links.parquet"); err == nil {
			err = e.rows.LinkTable(ctx, w)
		}
	}
	for i := 0; err == nil && i < len(old); i++ { // of another export, maybe of more partitions
		err = os.Remove(old[i])
	}
	for _, d := range drafts {
		err = d.end(err)
	}
	if err == nil {
		err = e.done(fmt.Sprintf("%s in %s", plural(len(drafts), "table"), e.out))
	}
	return errors.Join(err, e.damage())
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
	d, err := e.create(path.Base(name))
	if err != nil {
		return 0, err
	}
	_, err = d.Write(data)
	return int64(len(data)), d.end(err)
}
