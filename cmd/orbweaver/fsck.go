package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/view"
)

type fsckFlags struct {
	looking
	quick bool
	delay time.Duration
	max   int
}

func newFsck() *cobra.Command {
	var f fsckFlags
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check everything that is stored",
		Long: `Fsck checks a crawl by what is stored of it, and shares no code with what stored it: that
every object is there and whole, that every URL that was found is fetched, pending or
refused, that none was fetched twice, that no host was asked too often. It only reads,
and may run while the crawl does.

Each line of its output is one broken invariant: its number (docs/invariants.md), the
object, and what is wrong. Objects that nothing names are what crashes leave; they are
counted, and are no damage.`,
		Example: `  orbweaver fsck
  orbweaver fsck --quick                # reads few of the WARC files
  orbweaver fsck --delay 1s             # hold all answers to this pace
  orbweaver fsck --platform aws.json    # reads all objects: that costs gets, and traffic
  orbweaver fsck --json | jq .violations`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.delay < 0 || f.max < 1 {
				return usagef("--delay must be 0s or more, and --max 1 or more")
			}
			return f.look(cmd.Context(), func(v *view.View) error { return runFsck(cmd, &f, v) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.quick, "quick", false, "read one in 32 of the WARC files only")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "least time between two answers of a host (default: the --delay that was in force)")
	cmd.Flags().IntVar(&f.max, "max", 100, "how many violations of each invariant to show")
	return cmd
}

func runFsck(cmd *cobra.Command, f *fsckFlags, v *view.View) error {
	opt := fsck.Options{Crawl: v.ID(), Delay: f.delay, MaxViolations: f.max, Progress: fsckProgress(cmd.ErrOrStderr())}
	if f.quick {
		opt.WARCs = fsck.SomeWARCs
	}
	r, err := fsck.Check(cmd.Context(), v.Store(), opt)
	if err != nil {
		if errors.Is(err, fsck.ErrNoCrawl) {
			return f.noCrawl()
		}
		return err
	}
	out := cmd.OutOrStdout()
	if f.json {
		err = writeJSON(out, r)
	} else {
		err = printCheck(out, &r)
	}
	if err == nil && !r.Clean() {
		return fail(exitDamaged, nil)
	}
	return err
}

// fsckProgress says every few seconds how far the check is.
func fsckProgress(w io.Writer) func(fsck.Progress) {
	last := time.Now()
	return func(p fsck.Progress) {
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			last = now
			fmt.Fprintf(w, "fsck: %s of partition %d of %d, %s read\n", p.Phase, min(p.Done+1, p.Total), p.Total, plural(p.Pages, "page record"))
		}
	}
}

func printCheck(out io.Writer, r *fsck.Report) error {
	for _, v := range r.Violations {
		if _, err := fmt.Fprintln(out, printable(v.String())); err != nil {
			return err
		}
	}
	verdict := "clean"
	if !r.Clean() {
		verdict = plural(int64(r.Found), "violation")
		if n := r.Found - len(r.Violations); n > 0 {
			verdict += fmt.Sprintf(" (%s not shown)", count(int64(n)))
		}
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s (%s pending), %s, %s in %s; %s\n", verdict, plural(r.Pages, "page record"), plural(r.URLs, "known URL"), count(r.Pending),
		plural(r.Links, "followed link"), plural(int64(r.Commits), "commit"), plural(int64(r.Objects), "object"), warcsRead(r))
	if err == nil && r.Orphans+r.Dead > 0 {
		_, err = fmt.Fprintf(out, "%s that nothing names (left by crashes and merges, or just being written), %s\n", plural(int64(r.Orphans), "object"), plural(int64(r.Dead), "dead letter"))
	}
	return err
}

func warcsRead(r *fsck.Report) string {
	if r.WARCsRead == r.WARCs {
		return fmt.Sprintf("all %s verified", plural(int64(r.WARCs), "WARC file"))
	}
	return fmt.Sprintf("%d of %s verified", r.WARCsRead, plural(int64(r.WARCs), "WARC file"))
}
