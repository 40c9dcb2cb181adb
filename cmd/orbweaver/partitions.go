package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/control"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

func newPartitions() *cobra.Command {
	var f reading
	cmd := f.newReport("partitions", noSuchCommand, func(ctx context.Context, v *view.View, _ []string) (string, any, error) {
		l, err := v.Layout(ctx)
		if err != nil {
			return "", nil, err
		}
		return "partitions", newLayoutReport(f.where(v.ID()), l), nil
	})
	cmd.AddCommand(newScale(), newMove(), newRollback())
	return cmd
}

// layoutReport says how a crawl is divided.
type layoutReport struct {
	where
	Epoch  partition.Epoch `json:"epoch"`
	Slots  int             `json:"slots"`
	Owners int             `json:"owners"` // partitions with slots, by the map of Epoch
	Parts  []partReport    `json:"partitions"`
	Moves  []movesReport   `json:"moves,omitempty"`
	Target *targetReport   `json:"target,omitempty"` // the division when the moves have ended
}

type partReport struct {
	Partition partition.ID    `json:"partition"`
	Slots     int             `json:"slots"` // held
	Owed      int             `json:"slots_owed,omitempty"`
	Awaited   int             `json:"slots_awaited,omitempty"`
	Wanted    int             `json:"slots_wanted"` // in the end
	Known     int64           `json:"known"`
	Pending   int64           `json:"pending"`
	Pages     int64           `json:"pages"`
	Commits   uint64          `json:"commits"`
	Due       time.Time       `json:"due,omitzero"`
	Lease     string          `json:"lease,omitempty"` // of whom
	Until     time.Time       `json:"lease_until,omitzero"`
	Epoch     partition.Epoch `json:"epoch"`
	Fence     uint64          `json:"fence"`
}

type movesReport struct {
	blobschema.Moving
	Count int       `json:"count"` // of slots
	Given int       `json:"given"` // of them, by the previous owner
	Taken int       `json:"taken"`
	Since time.Time `json:"since,omitzero"`
}

type targetReport struct {
	Owners int `json:"owners"`
	Slots  int `json:"slots"` // slots that must still move
}

func newLayoutReport(w where, l *view.Layout) *layoutReport {
	r := &layoutReport{where: w, Epoch: l.Record.Epoch, Slots: l.Map.Slots(), Owners: len(l.Map.Partitions())}
	for i := range l.Parts {
		s := &l.Parts[i]
		line := partReport{Partition: s.Partition, Slots: s.Held, Owed: s.Owes, Awaited: s.Awaits, Wanted: s.Wanted}
		if h := s.Head; h != nil {
			line.Known, line.Pending, line.Pages = h.Totals.Known+h.Totals.Unexamined, h.Totals.Pending+h.Totals.Unexamined, h.Totals.Pages
			line.Commits, line.Due, line.Lease, line.Epoch, line.Fence = h.Seq, h.Due, h.Owner, h.Epoch, h.Fence
			if h.Owner != "" {
				line.Until = h.LeaseUntil
			}
		}
		r.Parts = append(r.Parts, line)
	}
	for _, m := range l.Moves {
		r.Moves = append(r.Moves, movesReport{m.Moving, len(m.Slots), len(m.Slots) - m.Held, m.Taken, m.Since})
	}
	if _, later := l.Left(); later > 0 {
		r.Target = &targetReport{Owners: len(l.Target.Partitions()), Slots: later}
	}
	return r
}

// Place names the crawl and its target.
func (r *layoutReport) Place() string { return r.Crawl + " in " + r.at.String() }

// Arriving counts the slots that are on the move.
func (r *layoutReport) Arriving() (n int) {
	for _, m := range r.Moves {
		n += m.Count - m.Taken
	}
	return n
}

// Sum adds up the partitions.
func (r *layoutReport) Sum() (sum partReport) {
	for i := range r.Parts {
		p := &r.Parts[i]
		sum.Slots += p.Slots
		sum.Owed += p.Owed
		sum.Awaited += p.Awaited
		sum.Known += p.Known
		sum.Pending += p.Pending
		sum.Pages += p.Pages
	}
	return sum
}

// Age is the time since the moves began; "-" if it is unknown.
func (m movesReport) Age() string {
	if m.Since.IsZero() {
		return "-"
	}
	return span(max(0, time.Since(m.Since).Seconds()))
}

// wanted computes the desired map from a layout.
type wanted func(ctx context.Context, o *opened, l *view.Layout) (*partition.Map, error)

// changing holds the flags of the commands that change the owners of slots.
type changing struct {
	reading
	wait   bool
	dryRun bool
}

func (f *changing) newCommand(name string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	cmd := f.reading.newCommand(name, args, run)
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until all slots have arrived")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only show which slots would move")
	return cmd
}

func newScale() *cobra.Command {
	var f changing
	balance := false
	cmd := f.newCommand("partitions-scale", nil, func(cmd *cobra.Command, args []string) error {
		n, err := 0, error(nil)
		if len(args) > 0 {
			n, err = strconv.Atoi(args[0])
		}
		switch {
		case len(args) > 1 || len(args) == 0 && !balance:
			return usagef("'%s' takes one number of partitions, or --balance\nSee '%[1]s --help'", cmd.CommandPath())
		case err != nil:
			return usagef("%.40q is not a number of partitions\nSee '%s --help'", args[0], cmd.CommandPath())
		case len(args) > 0 && n < 1:
			return usagef("a crawl has 1 partition or more, not %d", n)
		}
		return f.run(cmd, func(ctx context.Context, o *opened, l *view.Layout) (*partition.Map, error) {
			if err := f.checkNumber(l, n, o.partitions()); err != nil {
				return nil, err
			}
			if !balance {
				moves, err := l.Target.Plan(l.Target.Active(n))
				if err != nil {
					return nil, err
				}
				return l.Target.Apply(moves)
			}
			load, err := o.view.Loads(ctx)
			if err != nil {
				return nil, err
			}
			var options partition.BalanceOptions
			if n > 0 {
				options.Partitions = l.Target.Active(n)
			}
			return l.Target.Apply(l.Target.Balance(load, options))
		})
	})
	cmd.Flags().BoolVar(&balance, "balance", false, "even out pending URLs instead of slots; without N among the present partitions")
	return cmd
}

// checkNumber refuses a number of partitions that a crawl cannot have.
func (t *target) checkNumber(l *view.Layout, n, most int) error {
	switch slots := l.Map.Slots(); {
	case n > partition.MaxPartitions:
		return usagef("%d partitions are too many: a crawl has at most %d", n, partition.MaxPartitions)
	case n > slots:
		return usagef("%d partitions are too many: the crawl in %s has %s, its fixed number of --slots, and each partition needs one",
			n, t, plural(slots, "slot"))
	case most > 0 && n > most:
		return usagef("%d partitions are too many: %s was deployed with %d. Deploy it again with more, then scale", n, t, most)
	}
	return nil
}

func newMove() *cobra.Command {
	var f changing
	to := -1
	cmd := f.newCommand("partitions-move", nil, func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 || to < 0 {
			return usagef("give slots, and their new partition with --to\nSee '%s --help'", cmd.CommandPath())
		}
		slots, err := partition.ParseSlots(strings.Join(args, ","))
		if err != nil {
			return usagef("%w", err)
		}
		return f.run(cmd, func(_ context.Context, o *opened, l *view.Layout) (*partition.Map, error) {
			return f.moved(l, slots, partition.ID(to), o.partitions())
		})
	})
	cmd.Flags().IntVar(&to, "to", -1, "the partition")
	return cmd
}

// moved returns the map with some slots owned by another partition.
func (t *target) moved(l *view.Layout, slots partition.Slots, to partition.ID, most int) (*partition.Map, error) {
	n := l.Record.Partitions
	last := slots[len(slots)-1]
	switch {
	case int(last) >= l.Map.Slots():
		return nil, usagef("there is no slot %d: the crawl in %s has slots 0 to %d", last, t, l.Map.Slots()-1)
	case most > 0 && int(to) >= most:
		return nil, usagef("there can be no partition %d: %s was deployed with %d", to, t, most)
	case int(to) > n || to >= partition.MaxPartitions:
		return nil, usagef("there is no partition %d: the crawl in %s has partitions 0 to %d, and the next new one is %d",
			to, t, n-1, min(n, partition.MaxPartitions-1))
	}
	owners := l.Target.Owners()
	if !slices.ContainsFunc(slots, func(s partition.Slot) bool { return owners[s] != to }) {
		name := fmt.Sprintf("slots %.60s", slots)
		if len(slots) == 1 {
			name = fmt.Sprintf("slot %d", last)
		}
		return nil, usagef("%s: partition %d already holds or awaits it", name, to)
	}
	for _, s := range slots {
		owners[s] = to
	}
	return l.Target.WithOwners(owners)
}

func newRollback() *cobra.Command {
	var f changing
	return f.newCommand("partitions-rollback", noArguments, func(cmd *cobra.Command, _ []string) error {
		return f.run(cmd, func(ctx context.Context, o *opened, l *view.Layout) (*partition.Map, error) {
			m, err := o.view.PreviousMap(ctx, l)
			if err == nil && m == nil {
				err = usagef("nothing to undo: the partitions of the crawl in %s have not changed since it was created", &f.target)
			}
			return m, err
		})
	})
}

// repartitioned is the result of a change.
type repartitioned struct {
	where
	Changed bool        `json:"changed"` // false: it was so already, or will be
	DryRun  bool        `json:"dry_run,omitempty"`
	Slots   int         `json:"slots"` // slots that move
	Share   float64     `json:"share"` // of all slots
	Before  int         `json:"owners_before"`
	Owners  int         `json:"owners"`            // partitions with slots, in the end
	Epoch   uint64      `json:"epoch"`             // after the change
	Later   int         `json:"slots_later"`       // slots that move once the moving ones have arrived
	PID     int         `json:"pid,omitempty"`     // of the process that received the order
	Arrived bool        `json:"arrived,omitempty"` // all of them: with --wait
	Seconds float64     `json:"seconds,omitempty"` // wait for the moves to arrive: with --wait
	Stopped bool        `json:"stopped,omitempty"` // nothing moves until the crawl is resumed
	Moves   []slotsMove `json:"moves,omitempty"`   // with --dry-run

	All   int  `json:"-"` // slots
	Idle  bool `json:"-"` // no process works on the crawl
	began time.Time
}

// slotsMove is slots that would move from one partition to another.
type slotsMove struct {
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Slots partition.Slots `json:"slots"`
}

// run carries out a change, waits for it if --wait is given, and reports the result.
func (f *changing) run(cmd *cobra.Command, want wanted) error {
	ctx, release := following(cmd.Context())
	defer release()
	r := &repartitioned{DryRun: f.dryRun, began: time.Now()}
	err := f.change(ctx, func(o *opened) error {
		if r.where, r.PID, r.Idle = f.where(o.view.ID()), o.pid, o.here(); o.here() && f.wait {
			return usagef("--wait makes no sense: no process works on %s, and slots move when '%s' resumes the crawl",
				f.data, f.command("crawl"))
		}
		if err := f.apply(ctx, o, r, want); err != nil || !f.wait || f.dryRun {
			return err
		}
		return f.follow(ctx, cmd, r, o)
	})
	if err != nil {
		return err
	}
	return f.report(cmd.OutOrStdout(), "repartitioned", r)
}

// maxChanges is how often a change is recomputed because another change came first. The coordinator
// changes the map whenever slots arrive.
const maxChanges = 20

// apply computes the desired map, requests it, and records the difference.
func (f *changing) apply(ctx context.Context, o *opened, r *repartitioned, want wanted) error {
	desired, err := o.view.Desired(ctx)
	if err != nil {
		return err
	}
	r.Stopped = desired.Stop
	for try := 1; ; try++ {
		l, err := o.view.Layout(ctx)
		if err != nil {
			return err
		}
		m, err := want(ctx, o, l)
		if err != nil {
			return err
		}
		moves := r.compare(l.Target, m)
		r.Epoch = uint64(l.Record.Epoch)
		if f.dryRun {
			r.Moves = grouped(moves)
			return nil
		}
		if r.Changed {
			err = o.Repartition(ctx, control.Change{Version: l.Record.Version, Map: m})
		}
		if errors.Is(err, control.ErrChanged) && try < maxChanges && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		if l, err = o.view.Layout(ctx); err != nil {
			return err
		}
		_, r.Later = l.Left()
		r.Epoch = uint64(l.Record.Epoch)
		return nil
	}
}

// compare records the difference of two maps and returns the moves between them.
func (r *repartitioned) compare(from, to *partition.Map) []partition.Move {
	moves := from.Toward(to, func(partition.Slot) bool { return false })
	r.All, r.Slots = from.Slots(), len(moves)
	r.Changed, r.Share = r.Slots > 0, float64(r.Slots)/float64(r.All)
	r.Before, r.Owners = len(from.Partitions()), len(to.Partitions())
	return moves
}

// follow waits until all slots have arrived.
func (f *changing) follow(ctx context.Context, cmd *cobra.Command, r *repartitioned, o *opened) error {
	told, every := time.Now(), time.Second
	if o.pid > 0 {
		every = 200 * time.Millisecond
	}
	err := poll(ctx, cmd.ErrOrStderr(), every, func() (bool, error) {
		l, err := o.view.Layout(ctx)
		if err != nil {
			return false, err
		}
		moving, later := l.Left()
		switch {
		case moving+later == 0:
			r.Arrived, r.Seconds, r.Later = true, time.Since(r.began).Seconds(), 0
			r.Epoch = uint64(l.Record.Epoch)
			return true, nil
		case o.pid > 0 && o.view.Live(ctx) == nil:
			return true, fail(exitStopped, fmt.Errorf("the process that crawled in %s has ended; %s move when '%s' resumes the crawl",
				f.data, plural(moving+later, "slot"), f.command("crawl")))
		case time.Since(told) > 3*time.Second:
			told = time.Now()
			warn(cmd.ErrOrStderr(), "%s to arrive, and %s to follow", plural(moving, "slot"), count(later))
		}
		return false, nil
	})
	if err == nil && !r.Arrived {
		err = fail(exitStopped, fmt.Errorf("stopped waiting; the change stands: see '%s'", f.command("partitions")))
	}
	return err
}

// grouped groups moves by their two partitions.
func grouped(moves []partition.Move) (out []slotsMove) {
	slices.SortStableFunc(moves, func(a, b partition.Move) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	for _, m := range moves {
		if n := len(out); n == 0 || out[n-1].From != m.From || out[n-1].To != m.To {
			out = append(out, slotsMove{From: m.From, To: m.To})
		}
		last := &out[len(out)-1]
		last.Slots = append(last.Slots, m.Slot)
	}
	return out
}
