package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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
	quick     bool
	delay     time.Duration
	max       int
	state     string
	slots     string
	partition int
	repair    bool
	dryRun    bool
	grace     time.Duration
}

func newFsck() *cobra.Command {
	var f fsckFlags
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "Check everything that is stored, and repair what crashes leave",
		Long: `Fsck checks a crawl by what is stored of it, without the code that is to keep it right: that
every object is there and whole, that every URL that was found is fetched, pending or
refused, that none was fetched twice, that no host was asked too often, that each slot has
one owner wherever it went, that the index shows each page once and as it was answered
last, that ranks add up. It only reads, and may run while the crawl does: what looks
broken then is looked at again before it is told.

Each broken invariant is a line of its output: its number (docs/invariants.md), the
object, and what is wrong. Objects that nothing names are what crashes leave; they are
counted, and are no damage.

With --state a check leaves a file, and the next one with it does not read again the WARC
files that were found whole, which are nearly all the bytes; but a few of them each time.

With --slots or --partition only a part is checked, and little more is read. What such a
check cannot show it says.

With --repair, and if there is no violation, objects that nothing names are deleted when
they are older than --grace and nobody can come to name them, and partitions are woken
that have something to do and no step. See first what it would do with --dry-run. In a
folder, no other process may work on it.`,
		Example: `  orbweaver fsck
  orbweaver fsck --quick                # reads few of the WARC files
  orbweaver fsck --state checked.json   # reads those that are new, the next time
  orbweaver fsck --delay 1s             # hold all answers to this pace
  orbweaver fsck --partition 3
  orbweaver fsck --slots 0-99,4000
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
	cmd.Flags().BoolVar(&f.quick, "quick", false, "read one in 32 of the WARC files only")
	cmd.Flags().DurationVar(&f.delay, "delay", 0, "least time between two answers of a host (default: the --delay that was in force)")
	cmd.Flags().IntVar(&f.max, "max", 100, "how many violations of each invariant to show")
	cmd.Flags().StringVar(&f.state, "state", "", "file that says what was found whole before; it is made, and kept up to date")
	cmd.Flags().StringVar(&f.slots, "slots", "", "check these slots only, as in 3,8-15")
	cmd.Flags().IntVar(&f.partition, "partition", -1, "check this partition only")
	cmd.Flags().BoolVar(&f.repair, "repair", false, "delete what nothing names, and send wakes that were lost")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --repair: only say what would be done")
	cmd.Flags().DurationVar(&f.grace, "grace", time.Hour, "with --repair: objects that are younger stay")
	return cmd
}

// check says what is wrong with the flags.
func (f *fsckFlags) check(cmd *cobra.Command) error {
	some := f.slots != "" || cmd.Flags().Changed("partition")
	switch {
	case f.delay < 0 || f.max < 1:
		return usagef("--delay must be 0s or more, and --max 1 or more")
	case f.dryRun && !f.repair, cmd.Flags().Changed("grace") && !f.repair:
		return usagef("--dry-run and --grace are for --repair")
	case f.grace <= 0:
		return usagef("--grace must be more than 0s")
	case f.repair && some:
		return usagef("--repair is for a whole crawl, not for --slots or --partition")
	case f.state != "" && some:
		return usagef("--state is for checks of a whole crawl, not for --slots or --partition")
	case cmd.Flags().Changed("partition") && (f.partition < 0 || f.partition >= partition.MaxPartitions):
		return usagef("--partition must be 0 to %d", partition.MaxPartitions-1)
	}
	return nil
}

// options are what package fsck is asked for.
func (f *fsckFlags) options(cmd *cobra.Command, v *view.View) (fsck.Options, error) {
	opt := fsck.Options{
		Crawl: v.ID(), Delay: f.delay, MaxViolations: f.max, Software: "orbweaver " + version, Time: time.Now().UTC(),
		Progress: fsckProgress(cmd.ErrOrStderr()),
	}
	if f.quick {
		opt.WARCs = fsck.SomeWARCs
	}
	if f.slots != "" {
		var err error
		if opt.Slots, err = partition.ParseSlots(f.slots); err != nil {
			return opt, usagef("--slots: %w", err)
		}
	}
	if p := partition.ID(f.partition); f.partition >= 0 {
		opt.Partition = &p
	}
	if f.state == "" {
		return opt, nil
	}
	b, err := os.ReadFile(f.state)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		opt.State = &fsck.State{}
	case err != nil:
		return opt, err
	default:
		if opt.State, err = fsck.DecodeState(b); err != nil {
			return opt, f.unfitState(err)
		}
	}
	return opt, nil
}

func (f *fsckFlags) unfitState(err error) error {
	return usagef("--state %s: %w.\nName another file, or delete this one: then everything is checked", f.state, err)
}

// explainCheck says what is wrong with what was asked for.
func (f *fsckFlags) explainCheck(err error) error {
	switch {
	case errors.Is(err, fsck.ErrNoCrawl):
		return f.noCrawl()
	case errors.Is(err, fsck.ErrState):
		return f.unfitState(err)
	case errors.Is(err, fsck.ErrScope):
		return usagef("%w", err)
	}
	return err
}

// keepState writes the state for the next check, whole or not at all.
func (f *fsckFlags) keepState(r *fsck.Report) (err error) {
	if r.State == nil {
		return nil
	}
	b, err := r.State.Encode()
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.state), ".fsck-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name()) // it is of no use
		}
	}()
	_, err = tmp.Write(b)
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), f.state)
}

func runFsck(cmd *cobra.Command, f *fsckFlags, v *view.View) error {
	opt, err := f.options(cmd, v)
	if err != nil {
		return err
	}
	r, err := fsck.Check(cmd.Context(), v.Store(), opt)
	if err != nil {
		return f.explainCheck(err)
	}
	if err := f.keepState(&r); err != nil {
		return err
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
	opt, err := f.options(cmd, v.view)
	if err != nil {
		return err
	}
	did, err := fsck.Repair(cmd.Context(), mendable{v.view.Store(), v.platform}, fsck.RepairOptions{Options: opt, Grace: f.grace, DryRun: f.dryRun})
	damaged := errors.Is(err, fsck.ErrViolations)
	if err != nil && !damaged {
		return f.explainCheck(err)
	}
	if err := f.keepState(&did.Report); err != nil {
		return err
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
	for _, what := range r.NotChecked {
		fmt.Fprintf(&b, "not checked: %s\n", what)
	}
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
	if r.TakenOver > 0 {
		s += fmt.Sprintf(", %d by a check before", r.TakenOver)
	}
	return s
}
