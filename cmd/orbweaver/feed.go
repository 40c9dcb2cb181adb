package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/feed"
	"github.com/orbweaver/orbweaver/internal/view"
)

type feedFlags struct {
	target
	since  string
	file   string // keeps the cursor
	follow bool
	every  time.Duration
	to     string
	only   []string
}

func newFeed() *cobra.Command {
	var f feedFlags
	cmd := command("feed", noArguments, f.run)
	f.target.register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.since, "since", "", "begin behind this cursor, or with what comes from now on: now; without it at the beginning of the crawl")
	fs.StringVar(&f.file, "cursor-file", "", "file that keeps the cursor; the feed begins there if the file exists")
	fs.BoolVar(&f.follow, "follow", false, "wait for more until Ctrl-C, instead of ending with the last commit")
	fs.DurationVar(&f.every, "every", 3*time.Second, "with --follow: time between two reads of the state of the crawl")
	fs.StringVar(&f.to, "to", "", "instead of standard output: URL of a webhook (https://…; its secret is $"+feed.SecretVariable+") or of a queue (awssqs://…, awssns://…, rabbit://…)")
	fs.StringSliceVar(&f.only, "only", nil, "only these kinds: new, changed, unchanged, gone or failed; such as new,changed,gone")
	return cmd
}

func (f *feedFlags) check() error {
	for _, kind := range f.only {
		if !slices.Contains(results[:], kind) {
			return usagef("--only: there is no kind %q; give some of %s", kind, strings.Join(results[:], ", "))
		}
	}
	return refuse(f.set, []wrong{{f.every <= 0, "every", "longer than 0s"}})
}

func (f *feedFlags) run(cmd *cobra.Command, _ []string) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	send, end, err := f.open(ctx, cmd)
	if err != nil {
		return err
	}
	defer end()
	return f.read(ctx, func(v *view.View) error {
		since, err := f.begin()
		if err != nil {
			return err
		}
		r, err := feed.New(ctx, v, since)
		if errors.Is(err, feed.ErrCursor) {
			return usagef("%w", err)
		}
		if err != nil {
			return err
		}
		done := r.Cursor()
		err = f.stream(ctx, r, &done, send)
		warn(cmd.ErrOrStderr(), "resume with --since %s", done)
		if ctx.Err() != nil {
			return fail(exitStopped, nil)
		}
		return err
	})
}

// stream sends the events of a feed. done is the cursor behind those that were sent.
func (f *feedFlags) stream(ctx context.Context, r *feed.Reader, done *string, send func([]feed.Event) error) error {
	if !f.follow {
		f.every = 0
	}
	for batch, err := range r.Batches(ctx, f.every) {
		if err != nil {
			return err
		}
		if f.only != nil {
			batch = slices.DeleteFunc(batch, func(e feed.Event) bool { return !slices.Contains(f.only, e.Kind) })
		}
		if err := send(batch); err != nil {
			return err
		}
		*done = r.Cursor()
		if err := f.keep(*done); err != nil {
			return err
		}
	}
	*done = r.Cursor() // commits without a page are behind it too
	return f.keep(*done)
}

// open returns the function that sends events to the place that --to names, and the one that closes it.
func (f *feedFlags) open(ctx context.Context, cmd *cobra.Command) (send func([]feed.Event) error, end func(), err error) {
	var to feed.Target
	end = func() {}
	switch {
	case f.to == "":
		return func(batch []feed.Event) error { return writeEvents(cmd.OutOrStdout(), batch) }, end, nil
	case strings.HasPrefix(f.to, "http:"), strings.HasPrefix(f.to, "https:"):
		to, err = feed.NewWebhook(f.to, os.Getenv(feed.SecretVariable))
	default:
		var q *feed.Queue
		if q, err = feed.OpenQueue(ctx, f.to); err == nil {
			to, end = q, func() { _ = q.Close(context.WithoutCancel(ctx)) } // all messages were acknowledged
		}
	}
	if err != nil {
		return nil, nil, usagef("--to: %w", err)
	}
	return func(batch []feed.Event) error {
		return feed.Deliver(ctx, to, batch, func(err error, wait time.Duration) {
			warn(cmd.ErrOrStderr(), "cannot deliver events: %v; trying again in %s", err, span(wait.Seconds()))
		})
	}, end, nil
}

func writeEvents(w io.Writer, batch []feed.Event) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for i := range batch {
		if err := enc.Encode(&batch[i]); err != nil {
			return err
		}
	}
	return out.Flush()
}

// begin returns the cursor to begin with.
func (f *feedFlags) begin() (string, error) {
	if f.file == "" {
		return f.since, nil
	}
	kept, err := os.ReadFile(f.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return cmp.Or(strings.TrimSpace(string(kept)), f.since), nil
}

// keep writes the cursor into its file. A crash leaves the old cursor or the new one.
func (f *feedFlags) keep(cursor string) error {
	if f.file == "" {
		return nil
	}
	next := f.file + ".next"
	if err := os.WriteFile(next, []byte(cursor+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(next, f.file)
}
