package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
)

func newCrawls() *cobra.Command {
	var f reading
	return f.newCommand("crawls", noArguments, func(cmd *cobra.Command, _ []string) error {
		ctx, r := cmd.Context(), &crawlsReport{where: f.where("")}
		err := f.read(ctx, func(v *view.View) error {
			var err error
			r.Crawls, err = v.Summaries(ctx)
			return err
		})
		if err != nil {
			return err
		}
		return f.report(cmd.OutOrStdout(), "crawls", r)
	})
}

// crawlsReport lists the crawls of a target.
type crawlsReport struct {
	where
	Crawls []view.Summary `json:"crawls"`
}

type diffFlags struct {
	reading
	only []string
}

func newDiff() *cobra.Command {
	var f diffFlags
	cmd := f.newCommand("diff", nil, func(cmd *cobra.Command, args []string) error {
		if len(args) > 2 {
			return usagef("'%s' takes at most two ids of crawls\nSee '%[1]s --help'", cmd.CommandPath())
		}
		var only []view.Change
		for _, name := range f.only {
			if !slices.Contains(view.Changes, view.Change(name)) {
				return usagef("--only: there is no kind %q; there are %q", name, view.Changes)
			}
			only = append(only, view.Change(name))
		}
		ctx, release := following(cmd.Context())
		defer release()
		return f.read(ctx, func(v *view.View) error {
			err := f.compare(ctx, v, args, only, cmd.OutOrStdout())
			if err != nil && ctx.Err() != nil {
				return fail(exitStopped, errors.New("stopped; the comparison is incomplete"))
			}
			return err
		})
	})
	cmd.Flags().Lookup("json").Usage = "write JSON, one object a line; the first one has the counts"
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "list only these kinds, such as changed,gone")
	return cmd
}

// pair returns frozen views of the two crawls to compare.
func (f *diffFlags) pair(ctx context.Context, v *view.View, args []string) (before, after *view.View, err error) {
	if len(args) == 0 {
		ids, err := v.Crawls(ctx)
		if err != nil {
			return nil, nil, err
		}
		i := slices.Index(ids, v.ID())
		if i < 1 {
			return nil, nil, usagef("there is no crawl in %s before crawl %s, and so nothing to compare it with", &f.target, v.ID())
		}
		args = []string{ids[i-1]}
	}
	views := [2]*view.View{nil, v}
	for i, id := range args {
		if views[i], err = v.Of(ctx, id); err != nil {
			return nil, nil, err
		}
	}
	if views[0].ID() == views[1].ID() {
		return nil, nil, usagef("crawl %s cannot be compared with itself; '%s' lists the others", views[0].ID(), f.command("crawls"))
	}
	for i := range views {
		if views[i], err = views[i].Freeze(ctx); err != nil {
			return nil, nil, err
		}
	}
	return views[0], views[1], nil
}

// diffReport counts the differences of two crawls.
type diffReport struct {
	Before    string                `json:"before"`
	After     string                `json:"after"`
	Counts    map[view.Change]int64 `json:"counts"`
	Unchanged int64                 `json:"unchanged"`
	Other     int64                 `json:"other"` // URLs without a page that only one crawl knows
}

// compare writes the counts and then the differences of two crawls.
func (f *diffFlags) compare(ctx context.Context, v *view.View, args []string, only []view.Change, out io.Writer) error {
	before, after, err := f.pair(ctx, v, args)
	if err != nil {
		return err
	}
	d, err := before.Diff(ctx, after, only, "")
	if err != nil {
		return err
	}
	r := diffReport{before.ID(), after.ID(), d.Counts, d.Same, d.Other}
	w := bufio.NewWriterSize(out, 64<<10)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	write := func(diff *view.Difference) error { return enc.Encode(diff) }
	if f.json {
		err = enc.Encode(r)
	} else {
		_, err = w.WriteString(text("diff", r))
		write = func(diff *view.Difference) error {
			_, err := w.WriteString(text("difference", diff))
			return err
		}
	}
	if err == nil {
		err = d.Each(write)
	}
	return errors.Join(err, w.Flush(), d.Close())
}

// Kinds lists the counts that are not 0.
func (r diffReport) Kinds() string {
	var all []string
	for _, c := range view.Changes {
		if n := r.Counts[c]; n > 0 {
			all = append(all, string(c)+" "+count(n))
		}
	}
	return dots(append(all, "unchanged "+count(r.Unchanged))...)
}
