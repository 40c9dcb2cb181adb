package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// wanted works out which partitions should own the slots, of a layout: nil for no change.
// most is how many partitions there may be, 0 for any number.
type wanted func(ctx context.Context, v *view.View, l *view.Layout, most int) (*partition.Map, error)

// changing is what the commands have in common that change how a crawl is divided.
type changing struct {
	looking
	wait bool
}

func (f *changing) register(cmd *cobra.Command) {
	f.looking.register(cmd)
	cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until all slots have arrived")
}

// whatFollows ends the help of each command that changes something.
const whatFollows = `

The command returns once the change is recorded; the partitions carry it out by themselves,
while the crawl goes on. With --wait it waits until they have; Ctrl-C ends the waiting only.`

func newScale() *cobra.Command {
	var f changing
	cmd := &cobra.Command{
		Use:   "scale N",
		Short: "Divide a crawl into so many partitions",
		Long: `Scale makes N partitions share the slots evenly, and moves as few slots as that takes.
Where there are more than N, those with the highest numbers give up theirs.` + whatFollows,
		Example: "  orbweaver partitions scale 8\n  orbweaver partitions scale 200 --platform aws.json --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := oneNumber(cmd, args)
			if err != nil {
				return err
			}
			return f.run(cmd, func(_ context.Context, _ *view.View, l *view.Layout, most int) (*partition.Map, error) {
				return f.scaled(l, n, most)
			})
		},
	}
	f.register(cmd)
	return cmd
}

// oneNumber parses the only argument of a command as a number of partitions.
func oneNumber(cmd *cobra.Command, args []string) (int, error) {
	if len(args) != 1 {
		return 0, usagef("'%s' takes one number of partitions\nSee '%[1]s --help'", cmd.CommandPath())
	}
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return 0, usagef("%.40q is not a number of partitions\nSee '%s --help'", args[0], cmd.CommandPath())
	}
	return n, nil
}

// checkNumber refuses a number of partitions that a crawl cannot have.
func (p *place) checkNumber(l *view.Layout, n, most int) error {
	switch slots := l.Map.Slots(); {
	case n < 1:
		return usagef("a crawl has 1 partition or more, not %d", n)
	case n > partition.MaxPartitions:
		return usagef("%d partitions are too many: a crawl has at most %d", n, partition.MaxPartitions)
	case n > slots:
		return usagef("%d partitions are too many: the crawl in %s has %s, which is its --slots for good, and each partition needs one", n, p, plural(int64(slots), "slot"))
	case most > 0 && n > most:
		return usagef("%d partitions are too many: %s was deployed with %d. Deploy it again with more, then scale", n, p, most)
	}
	return nil
}

// scaled is the map that n partitions share evenly, made of the one that is wanted now.
func (p *place) scaled(l *view.Layout, n, most int) (*partition.Map, error) {
	if err := p.checkNumber(l, n, most); err != nil {
		return nil, err
	}
	moves, err := l.Target.Plan(l.Target.Active(n))
	if err != nil {
		return nil, err
	}
	return l.Target.Apply(moves)
}

func newMove() *cobra.Command {
	var f changing
	to := -1
	cmd := &cobra.Command{
		Use:   "move SLOT... --to P",
		Short: "Move slots to a partition",
		Long: `Move gives slots to a partition: one that there is, or the next new one. Slots are numbers
and ranges, such as 17, 200-299 or 0-1020/4 for every fourth. 'orbweaver explain' tells
the slot of a host.` + whatFollows,
		Example: "  orbweaver partitions move 17 --to 3\n  orbweaver partitions move 200-299,512 --to 0 --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || to < 0 {
				return usagef("give slots, and with --to the partition that they are to go to\nSee '%s --help'", cmd.CommandPath())
			}
			slots, err := partition.ParseSlots(strings.Join(args, ","))
			if err != nil {
				return usagef("%w", err)
			}
			return f.run(cmd, func(_ context.Context, _ *view.View, l *view.Layout, most int) (*partition.Map, error) {
				return f.moved(l, slots, partition.ID(to), most)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().IntVar(&to, "to", -1, "the partition")
	return cmd
}

// moved is the map in which a partition owns some slots.
func (p *place) moved(l *view.Layout, slots partition.Slots, to partition.ID, most int) (*partition.Map, error) {
	if last := slots[len(slots)-1]; int(last) >= l.Map.Slots() {
		return nil, usagef("there is no slot %d: the crawl in %s has slots 0 to %d", last, p, l.Map.Slots()-1)
	}
	switch n := l.Record.Partitions; {
	case most > 0 && int(to) >= most:
		return nil, usagef("there can be no partition %d: %s was deployed with %d", to, p, most)
	case int(to) > n || to >= partition.MaxPartitions:
		return nil, usagef("there is no partition %d: the crawl in %s has partitions 0 to %d, and the next new one is %d", to, p, n-1, min(n, partition.MaxPartitions-1))
	}
	owners := l.Target.Owners()
	same := 0
	for _, s := range slots {
		if owners[s] == to {
			same++
		}
		owners[s] = to
	}
	if same == len(slots) {
		return nil, usagef("%s: partition %d has it already, or is to get it", slotNames(slots), to)
	}
	return l.Target.WithOwners(owners)
}

// slotNames names slots in a message.
func slotNames(slots partition.Slots) string {
	if len(slots) == 1 {
		return fmt.Sprintf("slot %d", slots[0])
	}
	return fmt.Sprintf("slots %.60s", slots)
}

func newRollback() *cobra.Command {
	var f changing
	cmd := &cobra.Command{
		Use:   "rollback",
		Short: "Take back the last change of how a crawl is divided",
		Long: `Rollback gives every slot back to the partition that had it, or was to get it, before the
last change. That is a change too: rolled back again, it is as it was.` + whatFollows,
		Example: "  orbweaver partitions rollback\n  orbweaver partitions rollback --platform aws.json --wait",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.run(cmd, func(ctx context.Context, v *view.View, l *view.Layout, most int) (*partition.Map, error) {
				m, err := v.FormerMap(ctx, l)
				if err == nil && m == nil {
					err = usagef("nothing to take back: the crawl in %s is divided as it was begun", &f.place)
				}
				return m, err
			})
		},
	}
	f.register(cmd)
	return cmd
}

// repartitioned is what came of a change.
type repartitioned struct {
	Crawl   string  `json:"crawl"`
	Data    string  `json:"data,omitempty"`
	Cloud   string  `json:"platform,omitempty"`
	Changed bool    `json:"changed"` // false: it was so already, or is to be
	Slots   int     `json:"slots"`   // that get another partition
	Share   float64 `json:"share"`   // of all slots
	Before  int     `json:"owners_before"`
	Owners  int     `json:"owners"`            // partitions with slots, in the end
	Epoch   uint64  `json:"epoch"`             // after the change
	Later   int     `json:"slots_later"`       // that follow when those on the move have arrived
	PID     int     `json:"pid,omitempty"`     // of the process that was told
	Arrived bool    `json:"arrived,omitempty"` // all of them: with --wait
	Seconds float64 `json:"seconds,omitempty"` // that took
	Stopped bool    `json:"stopped,omitempty"` // the crawl is: nothing moves until it is resumed

	all   int // slots
	place *place
	began time.Time
}

// run carries out a change, waits for it if that is asked for, and says what came of it.
func (f *changing) run(cmd *cobra.Command, want wanted) error {
	if err := f.settle(); err != nil {
		return err
	}
	ctx, release := following(cmd.Context())
	defer release()
	r := &repartitioned{place: &f.place, began: time.Now()}
	var err error
	if f.inCloud() {
		r.Cloud = f.cloud
		err = f.work(ctx, func(v *visit) error {
			err := r.change(ctx, v.view, v.platform.Partitions, want, func(c view.Change) error {
				_, _, err := v.engine.Repartition(c.Want)
				return err
			})
			if err != nil {
				return err
			}
			if _, err := v.engine.Tick(); err != nil { // it wakes those that have slots to give
				return err
			}
			return f.follow(ctx, cmd, r, v.view)
		})
	} else {
		r.Data = f.data
		err = f.inFolder(ctx, cmd, r, want)
	}
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), r.text())
	return err
}

// inFolder tells the process that works on the folder, or records the change for the next.
func (f *changing) inFolder(ctx context.Context, cmd *cobra.Command, r *repartitioned, want wanted) error {
	return f.tell(ctx, func(v *view.View, pid int) error {
		if r.PID = pid; pid == 0 && f.wait {
			return usagef("--wait makes no sense: no process works on %s, and slots move when '%s' goes on with the crawl", f.data, f.command("crawl"))
		}
		err := r.change(ctx, v, 0, want, func(c view.Change) error { return v.Repartition(ctx, c) })
		if err != nil {
			return err
		}
		return f.follow(ctx, cmd, r, v)
	}, func(v *visit) error {
		return r.change(ctx, v.view, 0, want, func(c view.Change) error {
			_, _, err := v.engine.Repartition(c.Want)
			return err
		})
	})
}

// maxChanges is how often a change is worked out anew because another came first: as slots
// arrive, a tick notes it.
const maxChanges = 20

// change works out what is wanted and does it, and takes note of what that is.
func (r *repartitioned) change(ctx context.Context, v *view.View, most int, want wanted, do func(view.Change) error) error {
	r.Crawl = v.ID()
	wish, err := v.Wish(ctx)
	if err != nil {
		return err
	}
	r.Stopped = wish.Stop
	for try := 1; ; try++ {
		l, err := v.Layout(ctx)
		if err != nil {
			return err
		}
		m, err := want(ctx, v, l, most)
		if err != nil {
			return err
		}
		r.compare(l.Target, m)
		if r.Changed {
			err = do(view.Change{Version: l.Record.Version, Map: m})
		}
		if errors.Is(err, view.ErrChanged) && try < maxChanges && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return err
		}
		if l, err = v.Layout(ctx); err != nil {
			return err
		}
		_, r.Later = l.Left()
		r.Epoch = uint64(l.Record.Epoch)
		return nil
	}
}

// compare says what is to change from one map to another.
func (r *repartitioned) compare(from, to *partition.Map) {
	r.all = from.Slots()
	r.Slots = len(from.Toward(to, func(partition.Slot) bool { return false }))
	r.Changed, r.Share = r.Slots > 0, float64(r.Slots)/float64(r.all)
	r.Before, r.Owners = len(from.Partitions()), len(to.Partitions())
}

// follow waits until all slots have arrived, if that is asked for.
func (f *changing) follow(ctx context.Context, cmd *cobra.Command, r *repartitioned, v *view.View) error {
	if !f.wait {
		return nil
	}
	told, every := time.Now(), 50*time.Millisecond
	for failed := 0; ; {
		l, err := v.Layout(ctx)
		switch {
		case ctx.Err() != nil:
		case err != nil && failed < maxLooksFailed:
			failed++
		case err != nil:
			return err
		default:
			failed = 0
			moving, later := l.Left()
			if moving+later == 0 {
				r.Arrived, r.Seconds, r.Later = true, time.Since(r.began).Seconds(), 0
				r.Epoch = uint64(l.Record.Epoch)
				return nil
			}
			if !f.inCloud() && v.Live(ctx) == nil {
				return fail(exitStopped, fmt.Errorf("the process that crawled in %s has ended; %s move when '%s' goes on with the crawl",
					f.data, plural(int64(moving+later), "slot"), f.command("crawl")))
			}
			if time.Since(told) > 3*time.Second {
				told = time.Now()
				warn(cmd.ErrOrStderr(), "%s to arrive, and %s", plural(int64(moving), "slot"), follow(later))
			}
		}
		if every *= 2; !f.inCloud() {
			every = 200 * time.Millisecond
		}
		if !wait(ctx, min(every, 3*time.Second)) {
			return fail(exitStopped, fmt.Errorf("stopped waiting; the change stands: see '%s'", f.command("partitions")))
		}
	}
}

// text says what was changed, and when it takes effect.
func (r *repartitioned) text() string {
	who := fmt.Sprintf("crawl %s in %s", r.Crawl, r.place)
	to := plural(int64(r.Owners), "partition")
	if !r.Changed {
		return fmt.Sprintf("%s: nothing to change, its slots are dealt to %s so already\n", who, to)
	}
	if r.Before != r.Owners {
		to = fmt.Sprintf("%s instead of %d", to, r.Before)
	}
	what := fmt.Sprintf("%s: %s of %s (%s) for %s", who, moves(r.Slots), count(int64(r.all)), percent(r.Share), to)
	if r.Later > 0 && !r.Arrived {
		what += fmt.Sprintf(", %s when those on the move have arrived", follow(r.Later))
	}
	switch {
	case r.Arrived:
		return fmt.Sprintf("%s; all have arrived after %s\n", what, span(r.Seconds))
	case r.Stopped:
		return fmt.Sprintf("%s, when the crawl goes on: it is stopped until '%s'\n", what, r.place.command("resume"))
	case r.PID > 0:
		return fmt.Sprintf("%s; process %d begins at once\n", what, r.PID)
	case r.place.inCloud():
		return fmt.Sprintf("%s; steps at work begin with their next commit, others are woken\n", what)
	}
	return fmt.Sprintf("%s, when '%s' goes on with it\n", what, r.place.command("crawl"))
}

// moves says that slots move.
func moves(n int) string {
	if n == 1 {
		return "1 slot moves"
	}
	return plural(int64(n), "slot") + " move"
}

func percent(share float64) string { return fmt.Sprintf("%.3g%%", 100*share) }

// counted are how many slots each partition has, by partition.
func counted(m *partition.Map) map[partition.ID]int {
	n := map[partition.ID]int{}
	for _, o := range m.Owners() {
		n[o]++
	}
	return n
}

// fewest is the least number of slots that must move from one map so that each partition
// has as many as in another.
func fewest(from, to *partition.Map) (n int) {
	then := counted(to)
	for p, had := range counted(from) {
		n += max(0, had-then[p])
	}
	return n
}

// fullest is the load of the partition that has most, relative to the mean; 0 without load.
func fullest(m *partition.Map, load []float64) float64 {
	sums := map[partition.ID]float64{}
	total := 0.0
	for s, o := range m.Owners() {
		sums[o] += load[s]
		total += load[s]
	}
	if total == 0 {
		return 0
	}
	most := 0.0
	for _, sum := range sums {
		most = max(most, sum)
	}
	return most / total * float64(len(sums))
}

// grouped are moves by the partitions they are between.
func grouped(moves []partition.Move) (out []planMove) {
	for _, m := range moves {
		i := slices.IndexFunc(out, func(p planMove) bool { return p.From == m.From && p.To == m.To })
		if i < 0 {
			i = len(out)
			out = append(out, planMove{From: m.From, To: m.To})
		}
		out[i].slots = append(out[i].slots, m.Slot)
	}
	for i := range out {
		out[i].Text = out[i].slots.String()
	}
	return out
}
