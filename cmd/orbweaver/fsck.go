package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/fsck"
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
		case f.repair && f.crawl != "":
			return usagef("--repair works on the active crawl only; leave --crawl out")
		case f.dryRun && !f.repair, cmd.Flags().Changed("grace") && !f.repair:
			return usagef("--dry-run and --grace are for --repair")
		case f.grace <= 0:
			return usagef("--grace must be more than 0s")
		case !f.repair:
			return f.read(cmd.Context(), func(v *view.View) error {
				r, err := fsck.Check(cmd.Context(), v.Store(), f.options(cmd, v))
				return f.conclude(cmd, &r, fsckReport{&r, nil, &f.target}, err)
			})
		}
		return f.own(cmd.Context(), func(o *opened) error {
			did, err := fsck.Repair(cmd.Context(), repairStore{o.view.Store(), o.platform},
				fsck.RepairOptions{Options: f.options(cmd, o.view), Grace: f.grace, DryRun: f.dryRun})
			if errors.Is(err, fsck.ErrViolations) {
				err = nil
			}
			return f.conclude(cmd, &did, fsckReport{&did.Report, &did, &f.target}, err)
		})
	})
	f.registerCrawl(cmd)
	cmd.Flags().BoolVar(&f.quick, "quick", false, "read only one in 32 of the WARC files")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "least time between two answers of a host (default: the --delay that was in force)")
	cmd.Flags().IntVar(&f.max, "max", 100, "number of violations of each invariant to show")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "delete objects that nothing refers to")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --repair: only show what would be deleted")
	cmd.Flags().DurationVar(&f.grace, "grace", time.Hour, "with --repair: keep objects that are younger")
	return cmd
}

// options are the options of a check.
func (f *fsckFlags) options(cmd *cobra.Command, v *view.View) fsck.Options {
	return fsck.Options{
		Crawl: v.ID(), Quick: f.quick, Delay: f.delay, MaxViolations: f.max, Software: "orbweaver " + version, Time: time.Now().UTC(),
		Progress: fsckProgress(cmd.ErrOrStderr()),
	}
}

// conclude reports a check, and a repair if there was one.
func (f *fsckFlags) conclude(cmd *cobra.Command, all any, r fsckReport, err error) error {
	switch {
	case errors.Is(err, fsck.ErrNoCrawl):
		return f.noCrawl()
	case err != nil:
		return err
	}
	if f.json {
		err = writeJSON(cmd.OutOrStdout(), all)
	} else {
		err = f.report(cmd.OutOrStdout(), "fsck", r)
	}
	if err == nil && !r.Clean() {
		return fail(exitDamaged, nil)
	}
	return err
}

// repairStore is the store of an open platform, for repairs.
type repairStore struct {
	blobschema.Store
	p *platform.Platform
}

func (s repairStore) Delete(ctx context.Context, name string) error {
	return s.p.DeleteObject(ctx, name)
}

// fsckReport is the report of a check, and of a repair if there was one, for people.
type fsckReport struct {
	*fsck.Report
	Repair *fsck.Repairs
	target *target
}

// Hidden counts the violations that are not listed.
func (r fsckReport) Hidden() int { return r.Found - len(r.Violations) }

// Checked counts the checked items by invariant.
func (r fsckReport) Checked() string {
	var checked []string
	for _, t := range r.Invariants {
		checked = append(checked, fmt.Sprintf("%s %s", t.Invariant, count(t.Checked)))
	}
	return strings.Join(checked, ", ")
}

// Damage is advice about the damage: the damaged data, the safe data and the next step.
func (r fsckReport) Damage() []remedy { return r.target.damageFound(r.Report) }

// fsckProgress reports the progress of the check every few seconds.
func fsckProgress(w io.Writer) func(fsck.Progress) {
	last := time.Now()
	return func(p fsck.Progress) {
		if now := time.Now(); now.Sub(last) > 3*time.Second {
			last = now
			fmt.Fprintf(w, "fsck: %s of partition %d of %d, %s read\n", p.Phase, min(p.Done+1, p.Total), p.Total, plural(p.Pages, "page record"))
		}
	}
}
