package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/platform"
)

type fsckFlags struct {
	reading
	quick  bool
	delay  time.Duration
	max    int
	repair bool
	dryRun bool
	grace  time.Duration
}

func newFsck() *cobra.Command {
	var f fsckFlags
	cmd := f.newCommand("fsck", noArguments, func(cmd *cobra.Command, _ []string) error {
		switch {
		case f.delay < 0 || f.max < 1:
			return usagef("--delay must be 0s or more, and --max 1 or more")
		case f.dryRun && !f.repair, cmd.Flags().Changed("grace") && !f.repair:
			return usagef("--dry-run and --grace are for --repair")
		case f.grace <= 0:
			return usagef("--grace must be more than 0s")
		case !f.repair:
			return f.read(cmd.Context(), func(v *view.View) error {
				r, err := fsck.Check(cmd.Context(), v.Store(), f.options(cmd, v))
				return f.conclude(cmd, &r, &r, err, func(*output) {})
			})
		}
		return f.own(cmd.Context(), func(o *opened) error {
			did, err := fsck.Repair(cmd.Context(), repairStore{o.view.Store(), o.platform},
				fsck.RepairOptions{Options: f.options(cmd, o.view), Grace: f.grace, DryRun: f.dryRun})
			if errors.Is(err, fsck.ErrViolations) {
				err = nil
			}
			return f.conclude(cmd, &did, &did.Report, err, func(out *output) { printRepair(out, &did) })
		})
	})
	cmd.Flags().BoolVar(&f.quick, "quick", false, "read only one in 32 of the WARC files")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "least time between two answers of a host (default: the --delay that was in force)")
	cmd.Flags().IntVar(&f.max, "max", 100, "number of violations of each invariant to show")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "delete objects that nothing names")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --repair: only show what would be done")
	cmd.Flags().DurationVar(&f.grace, "grace", time.Hour, "with --repair: keep objects that are younger")
	return cmd
}

// options are the options of a check.
func (f *fsckFlags) options(cmd *cobra.Command, v *view.View) fsck.Options {
	opt := fsck.Options{
		Crawl: v.ID(), Delay: f.delay, MaxViolations: f.max, Software: "orbweaver " + version, Time: time.Now().UTC(),
		Progress: fsckProgress(cmd.ErrOrStderr()),
	}
	if f.quick {
		opt.WARCs = fsck.SomeWARCs
	}
	return opt
}

// conclude reports a check, and a repair if there was one.
func (f *fsckFlags) conclude(cmd *cobra.Command, all any, r *fsck.Report, err error, repair func(*output)) error {
	switch {
	case errors.Is(err, fsck.ErrNoCrawl):
		return f.noCrawl()
	case err != nil:
		return err
	}
	err = f.report(cmd, all, func(out *output) {
		f.print(out, r)
		repair(out)
	})
	if err == nil && !r.Clean() {
		return fail(exitDamaged, nil)
	}
	return err
}

// repairStore is the store of an open platform, for repairs.
type repairStore struct {
	stored.Store
	p *platform.Platform
}

func (s repairStore) Delete(ctx context.Context, name string) error {
	return s.p.DeleteObject(ctx, name)
}

func printRepair(out *output, did *fsck.Repairs) {
	if !did.Report.Clean() {
		out.line("nothing was repaired: look at the violations first")
		return
	}
	deleted := "deleted"
	if did.DryRun {
		deleted = "would delete"
	}
	for _, r := range did.Deleted {
		out.line("%s %s: %s", deleted, printable(r.Object), r.Why)
	}
	for _, r := range did.Kept {
		out.line("kept %s: %s", printable(r.Object), r.Why)
	}
	out.line("%s %s", deleted, plural(len(did.Deleted), "object"))
}

// fsckProgress reports every few seconds how far the check is.
func fsckProgress(w io.Writer) func(fsck.Progress) {
	last := time.Now()
	return func(p fsck.Progress) {
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			last = now
			fmt.Fprintf(w, "fsck: %s of partition %d of %d, %s read\n", p.Phase, min(p.Done+1, p.Total), p.Total, plural(p.Pages, "page record"))
		}
	}
}

func (f *fsckFlags) print(out *output, r *fsck.Report) {
	for _, v := range r.Violations {
		out.line("%s", printable(v.String()))
	}
	verdict := "clean"
	if !r.Clean() {
		verdict = plural(r.Found, "violation")
		if n := r.Found - len(r.Violations); n > 0 {
			verdict += fmt.Sprintf(" (%s not shown)", count(n))
		}
	}
	out.line("%s: %s, %s (%s pending), %s, %s in %s; %s", verdict,
		plural(r.Pages, "page record"), plural(r.URLs, "known URL"), count(r.Pending),
		plural(r.Links, "followed link"), plural(r.Commits, "commit"), plural(r.Objects, "object"), warcsRead(r))
	if r.Orphans+r.Dead > 0 {
		out.line("%s that nothing names (left by crashes and merges, or just being written), %s",
			plural(r.Orphans, "object"), plural(r.Dead, "dead letter"))
	}
	if x := r.Index; x != nil {
		out.line("index: %s in %s, %d of them verified; %s behind, %s of text/html not in it", plural(x.Documents, "document"),
			plural(x.Segments, "segment"), x.Read, plural(x.Behind, "commit"), plural(x.Unindexed, "page"))
		if x.Hidden+x.Stale > 0 {
			out.line("slots have moved: %s found gone by another partition are left out of searches, %s not yet",
				plural(x.Hidden, "document"), count(x.Stale))
		}
	}
	switch k := r.Ranks; {
	case k == nil:
	case k.Job > 0:
		out.line("ranks of job %d: %s, %s", k.Job, plural(k.Pages, "URL"), plural(k.Hosts, "host"))
	case k.Running > 0:
		out.line("ranks: job %d is under way, and none is finished", k.Running)
	}
	if r.Moving > 0 {
		out.line("%s on the move, by map %d", plural(r.Moving, "slot"), r.Epoch)
	}
	var checked []string
	for _, t := range r.Invariants {
		checked = append(checked, fmt.Sprintf("%s %s", t.Invariant, count(t.Checked)))
	}
	out.line("checked: %s; read %s, %s (%s)",
		strings.Join(checked, ", "), plural(r.Read.Records, "record"), plural(r.Read.Objects, "object"), size(r.Read.Bytes))
	f.damageFound(out, r)
}

func warcsRead(r *fsck.Report) string {
	switch {
	case r.WARCs == 0:
		return "no WARC files"
	case r.WARCsRead == r.WARCs:
		return fmt.Sprintf("all %s verified", plural(r.WARCs, "WARC file"))
	}
	s := fmt.Sprintf("%d of %s verified", r.WARCsRead, plural(r.WARCs, "WARC file"))
	if r.WARCsBad > 0 {
		s += fmt.Sprintf(", %d damaged", r.WARCsBad)
	}
	return s
}
