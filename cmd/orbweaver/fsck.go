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
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/stored"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

type fsckFlags struct {
	looking
	quick  bool
	delay  time.Duration
	max    int
	repair bool
	dryRun bool
	grace  time.Duration
}

func newFsck() *cobra.Command {
	var f fsckFlags
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check everything that is stored, and repair what crashes leave",
		Long: `Fsck checks a crawl by what is stored of it, without the code that writes it: every object is
there and whole, every URL that was found is fetched, pending or refused, no URL was
fetched twice, no host was asked too often, each slot has one owner wherever it went, the
index shows each page once and as of its last answer, and ranks add up. It only reads, and
may run while the crawl does: then it checks a second time before it reports a violation.

Each violation is a line of output: the number of the invariant (docs/invariants.md), the
object, and what is wrong. Crashes leave objects that nothing names; they are counted, and
are no damage.

With --repair, and if there is no violation, fsck deletes objects that nothing names, that
are older than --grace and that nobody can come to name, and it wakes partitions that have
something to do and no step. See first what it would do with --dry-run. In a folder, no
other process may work on it.`,
		Example: `  orbweaver fsck
  orbweaver fsck --quick                # reads few of the WARC files
  orbweaver fsck --delay 1s             # compares all answers with this pace
  orbweaver fsck --platform aws.json    # reads all objects: that costs gets, and traffic
  orbweaver fsck --repair --dry-run
  orbweaver fsck --json | jq .violations`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			if f.repair {
				if err := f.settle(); err != nil {
					return err
				}
				return f.visit(cmd.Context(), func(v *visit) error { return runRepair(cmd, &f, v) })
			}
			return f.look(cmd.Context(), func(v *view.View) error { return runFsck(cmd, &f, v) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.quick, "quick", false, "read only one in 32 of the WARC files")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "least time between two answers of a host (default: the --delay that was in force)")
	cmd.Flags().IntVar(&f.max, "max", 100, "how many violations of each invariant to show")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "delete what nothing names, and send wakes that were lost")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --repair: only say what would be done")
	cmd.Flags().DurationVar(&f.grace, "grace", time.Hour, "with --repair: objects that are younger stay")
	return cmd
}

// check says what is wrong with the flags.
func (f *fsckFlags) check(cmd *cobra.Command) error {
	switch {
	case f.delay < 0 || f.max < 1:
		return usagef("--delay must be 0s or more, and --max 1 or more")
	case f.dryRun && !f.repair, cmd.Flags().Changed("grace") && !f.repair:
		return usagef("--dry-run and --grace are for --repair")
	case f.grace <= 0:
		return usagef("--grace must be more than 0s")
	}
	return nil
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

// explainCheck says why a check was not possible.
func (f *fsckFlags) explainCheck(err error) error {
	if errors.Is(err, fsck.ErrNoCrawl) {
		return f.noCrawl()
	}
	return err
}

func runFsck(cmd *cobra.Command, f *fsckFlags, v *view.View) error {
	r, err := fsck.Check(cmd.Context(), v.Store(), f.options(cmd, v))
	if err != nil {
		return f.explainCheck(err)
	}
	out := cmd.OutOrStdout()
	if f.json {
		err = writeJSON(out, r)
	} else {
		err = f.printCheck(out, &r)
	}
	if err == nil && !r.Clean() {
		return fail(exitDamaged, nil)
	}
	return err
}

// mendable is the store of an open platform, for repairs.
type mendable struct {
	stored.Store
	p *platform.Platform
}

func (m mendable) Modified(ctx context.Context, name string) (time.Time, error) {
	a, err := m.p.Bucket.Attributes(ctx, name)
	if err != nil {
		return time.Time{}, err
	}
	return a.ModTime, nil
}

func (m mendable) Delete(ctx context.Context, name string) error {
	err := m.p.Bucket.Delete(ctx, name)
	if err != nil {
		if there, lookErr := m.p.Bucket.Exists(ctx, name); lookErr == nil && !there {
			return nil
		}
	}
	return err
}

func (m mendable) Wake(ctx context.Context, crawl string, ids []partition.ID) (err error) {
	q, err := m.p.Queue(naming.WakesQueue)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(ctx)) }()
	var bodies [][]byte
	for _, p := range ids {
		bodies = append(bodies, blobschema.EncodeWake(crawl, p))
	}
	for len(bodies) > 0 {
		n := min(10, len(bodies)) // what queues take in one call
		if err := q.Send(ctx, bodies[:n], 0); err != nil {
			return err
		}
		bodies = bodies[n:]
	}
	return nil
}

func runRepair(cmd *cobra.Command, f *fsckFlags, v *visit) error {
	opt := fsck.RepairOptions{Options: f.options(cmd, v.view), Grace: f.grace, DryRun: f.dryRun}
	did, err := fsck.Repair(cmd.Context(), mendable{v.view.Store(), v.platform}, opt)
	damaged := errors.Is(err, fsck.ErrViolations)
	if err != nil && !damaged {
		return f.explainCheck(err)
	}
	out := cmd.OutOrStdout()
	if f.json {
		err = writeJSON(out, did)
	} else {
		err = f.printRepair(out, &did, damaged)
	}
	if err == nil && damaged {
		return fail(exitDamaged, nil)
	}
	return err
}

func (f *fsckFlags) printRepair(out io.Writer, did *fsck.Repairs, damaged bool) error {
	if err := f.printCheck(out, &did.Report); err != nil {
		return err
	}
	if damaged {
		_, err := fmt.Fprintln(out, "nothing was repaired: look at the violations first")
		return err
	}
	var b strings.Builder
	deleted, woken := "deleted", "woke"
	if did.DryRun {
		deleted, woken = "would delete", "would wake"
	}
	for _, r := range did.Deleted {
		fmt.Fprintf(&b, "%s %s: %s\n", deleted, printable(r.Object), r.Why)
	}
	for _, r := range did.Kept {
		fmt.Fprintf(&b, "kept %s: %s\n", printable(r.Object), r.Why)
	}
	for _, w := range did.Woken {
		fmt.Fprintf(&b, "%s partition %d: %s\n", woken, w.Partition, w.Why)
	}
	fmt.Fprintf(&b, "%s %s and %s %s\n", deleted, plural(int64(len(did.Deleted)), "object"), woken, plural(int64(len(did.Woken)), "partition"))
	_, err := io.WriteString(out, b.String())
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

func (f *fsckFlags) printCheck(out io.Writer, r *fsck.Report) error {
	var b strings.Builder
	for _, v := range r.Violations {
		fmt.Fprintln(&b, printable(v.String()))
	}
	verdict := "clean"
	if !r.Clean() {
		verdict = plural(int64(r.Found), "violation")
		if n := r.Found - len(r.Violations); n > 0 {
			verdict += fmt.Sprintf(" (%s not shown)", count(int64(n)))
		}
	}
	fmt.Fprintf(&b, "%s: %s, %s (%s pending), %s, %s in %s; %s\n", verdict, plural(r.Pages, "page record"), plural(r.URLs, "known URL"), count(r.Pending),
		plural(r.Links, "followed link"), plural(int64(r.Commits), "commit"), plural(int64(r.Objects), "object"), warcsRead(r))
	if r.Orphans+r.Dead > 0 {
		fmt.Fprintf(&b, "%s that nothing names (left by crashes and merges, or just being written), %s\n", plural(int64(r.Orphans), "object"), plural(int64(r.Dead), "dead letter"))
	}
	b.WriteString(followersChecked(r))
	if r.Moving > 0 {
		fmt.Fprintf(&b, "%s on the move, by map %d\n", plural(int64(r.Moving), "slot"), r.Epoch)
	}
	var checked []string
	for _, t := range r.Invariants {
		checked = append(checked, fmt.Sprintf("%s %s", t.Invariant, count(t.Checked)))
	}
	fmt.Fprintf(&b, "checked: %s; read %s, %s (%s)\n", strings.Join(checked, ", "), plural(r.Read.Records, "record"), plural(r.Read.Objects, "object"), size(r.Read.Bytes))
	b.WriteString(f.damageFound(r))
	_, err := io.WriteString(out, b.String())
	return err
}

// followersChecked says what was found of index and ranks.
func followersChecked(r *fsck.Report) (s string) {
	if x := r.Index; x != nil {
		s = fmt.Sprintf("index: %s in %s, %d of them verified; %s behind, %s of text/html not in it\n", plural(x.Documents, "document"),
			plural(int64(x.Segments), "segment"), x.Read, plural(x.Behind, "commit"), plural(x.Unindexed, "page"))
		if x.Hidden+x.Stale > 0 {
			s += fmt.Sprintf("slots have moved: %s found gone by another partition are left out of searches, %s not yet\n", plural(x.Hidden, "document"), count(x.Stale))
		}
	}
	switch k := r.Ranks; {
	case k == nil:
	case k.Job > 0:
		s += fmt.Sprintf("ranks of job %d: %s, %s\n", k.Job, plural(k.Pages, "URL"), plural(k.Hosts, "host"))
	case k.Running > 0:
		s += fmt.Sprintf("ranks: job %d is under way, and none is finished\n", k.Running)
	}
	return s
}

func warcsRead(r *fsck.Report) string {
	switch {
	case r.WARCs == 0:
		return "no WARC files"
	case r.WARCsRead == r.WARCs:
		return fmt.Sprintf("all %s verified", plural(int64(r.WARCs), "WARC file"))
	}
	s := fmt.Sprintf("%d of %s verified", r.WARCsRead, plural(int64(r.WARCs), "WARC file"))
	if r.WARCsBad > 0 {
		s += fmt.Sprintf(", %d damaged", r.WARCsBad)
	}
	return s
}
