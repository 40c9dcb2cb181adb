package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

// plan says which slots would move, as a file that 'partitions apply' takes.
type plan struct {
	Version int             `json:"version"` // of this file
	Crawl   string          `json:"crawl"`
	Epoch   partition.Epoch `json:"epoch"` // of the map that it was made of
	Slots   int             `json:"slots"` // of the crawl
	// What follows is for people: what it comes to.
	Before int        `json:"owners_before"`
	Owners int        `json:"owners"` // partitions with slots, in the end
	Moved  int        `json:"moved"`  // slots
	Share  float64    `json:"share"`  // of all slots
	Fewest int        `json:"fewest"` // slots that must move, so that each partition has as many as planned
	Load   *planLoad  `json:"load,omitempty"`
	Moves  []planMove `json:"moves"`
	place  *place     // where it was made
}

// planLoad is the load of the fullest partition, relative to the mean.
type planLoad struct {
	Before float64 `json:"fullest_before"`
	After  float64 `json:"fullest_after"`
}

type planMove struct {
	From  partition.ID    `json:"from"`
	To    partition.ID    `json:"to"`
	Text  string          `json:"slots"`
	slots partition.Slots // that Text says
}

const (
	planVersion = 1
	maxPlan     = 8 << 20                // bytes: all slots one by one, indented
	maxSlotText = 6 * partition.MaxSlots // bytes of one move: all slots, with a comma each
)

type planFlags struct {
	looking
	balance bool
	out     string
	n       int // partitions; 0 for those there are
}

func newPlan() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan [N] [--balance] [--out FILE]",
		Short: "Say which slots would move, and move none",
		Long: `Plan says which slots would move from whom to whom if the crawl had N partitions with
equally many slots, as 'scale' does it; or, with --balance, with about as much to do each:
the load of a slot is the URLs that are pending there, or, where nothing is pending any
more, those that are known. As long as no partition comes or goes, that moves at most an
eighth of the slots at once. With --out the plan is written as JSON, to be looked at,
changed and carried out by 'apply', as long as the map is still the same.`,
		Example: `  orbweaver partitions plan 8
  orbweaver partitions plan --balance --out plan.json && orbweaver partitions apply plan.json
  orbweaver partitions plan 8 --json | jq .moved`,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) == 0 && !f.balance {
				return usagef("give a number of partitions, or --balance\nSee '%s --help'", cmd.CommandPath())
			}
			if len(args) > 0 {
				if f.n, err = oneNumber(cmd, args); err != nil {
					return err
				}
				if f.n < 1 {
					return usagef("a crawl has 1 partition or more, not %d", f.n)
				}
			}
			return f.divided(cmd.Context(), func(v *view.View, most int) error { return runPlan(cmd, &f, v, most) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.balance, "balance", false, "even out what there is to do, not the number of slots")
	cmd.Flags().StringVar(&f.out, "out", "", "file to write the plan into")
	return cmd
}

func runPlan(cmd *cobra.Command, f *planFlags, v *view.View, most int) error {
	l, err := v.Layout(cmd.Context())
	if err != nil {
		return err
	}
	var to *partition.Map
	var load []float64
	if f.balance {
		if load, err = v.Loads(cmd.Context()); err != nil {
			return err
		}
		to, err = f.balanced(l, load, f.n, most)
	} else {
		to, err = f.scaled(l, f.n, most)
	}
	if err != nil {
		return err
	}
	p := newPlanOf(v.ID(), l, to)
	p.place = &f.place
	if f.balance {
		p.Load = &planLoad{fullest(l.Target, load), fullest(to, load)}
	}
	if f.out != "" {
		if err := p.write(f.out); err != nil {
			return err
		}
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), p)
	}
	return p.print(cmd.OutOrStdout(), f.out)
}

// balanced is the map in which partitions have about as much to do each: n of them, or
// those that there are if that is 0.
func (p *place) balanced(l *view.Layout, load []float64, n, most int) (*partition.Map, error) {
	var o partition.BalanceOptions
	if n > 0 {
		if err := p.checkNumber(l, n, most); err != nil {
			return nil, err
		}
		o.Partitions = l.Target.Active(n)
	}
	return l.Target.Apply(l.Target.Balance(load, o))
}

func newPlanOf(crawl string, l *view.Layout, to *partition.Map) *plan {
	moves := l.Target.Toward(to, func(partition.Slot) bool { return false })
	p := &plan{
		Version: planVersion, Crawl: crawl, Epoch: l.Record.Epoch, Slots: to.Slots(), Before: len(l.Target.Partitions()), Owners: len(to.Partitions()),
		Moved: len(moves), Share: float64(len(moves)) / float64(to.Slots()), Fewest: fewest(l.Target, to), Moves: grouped(moves),
	}
	slices.SortFunc(p.Moves, func(a, b planMove) int { return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To)) })
	return p
}

// write writes the plan into a file that is not there yet.
func (p *plan) write(name string) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return usagef("%s exists already; give another file with --out", name)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return writeJSON(f, p)
}

// print writes the plan for people, in one write.
func (p *plan) print(out io.Writer, file string) error {
	var b strings.Builder
	if p.Moved == 0 {
		fmt.Fprintf(&b, "nothing would move: the slots of crawl %s are dealt to %s so already\n", p.Crawl, plural(int64(p.Owners), "partition"))
	} else {
		w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "from\tto\tslots\t\n")
		for _, m := range p.Moves {
			fmt.Fprintf(w, "%d\t%d\t%s\t\n", m.From, m.To, count(int64(len(m.slots))))
		}
		w.Flush() // into memory: it cannot fail
		to := plural(int64(p.Owners), "partition")
		if p.Before != p.Owners {
			to = fmt.Sprintf("%s instead of %d", to, p.Before)
		}
		fmt.Fprintf(&b, "%s of %s would move (%s), for %s; %s is the fewest that give each as many\n",
			plural(int64(p.Moved), "slot"), count(int64(p.Slots)), percent(p.Share), to, count(int64(p.Fewest)))
	}
	if p.Load != nil {
		fmt.Fprintf(&b, "the fullest partition has %.2f times the mean load, and would have %.2f times\n", p.Load.Before, p.Load.After)
	}
	if file != "" {
		fmt.Fprintf(&b, "carry it out with '%s'\n", p.place.command("partitions apply", file))
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func newApply() *cobra.Command {
	var f changing
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Carry out a plan",
		Long: `Apply moves the slots that a plan names, as 'partitions plan --out' writes it; - is
standard input. A plan holds for the map that it was made of, and for no other.` + whatFollows,
		Example: "  orbweaver partitions apply plan.json\n  orbweaver partitions plan 8 --json | orbweaver partitions apply - --wait",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("'%s' takes one file\nSee '%[1]s --help'", cmd.CommandPath())
			}
			p, err := readPlan(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			return f.run(cmd, func(_ context.Context, v *view.View, l *view.Layout, most int) (*partition.Map, error) {
				return p.apply(&f.place, v.ID(), l, most)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func readPlan(name string, in io.Reader) (*plan, error) {
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usagef("read the plan: %w", err)
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxPlan+1))
	if err != nil {
		return nil, usagef("read the plan: %w", err)
	}
	p, err := decodePlan(data)
	if err != nil {
		return nil, usagef("the plan %s cannot be used: %w.\nMake one with 'orbweaver partitions plan --out FILE'", name, err)
	}
	return p, nil
}

// decodePlan decodes a plan and checks its bounds, but not whether it fits a crawl.
func decodePlan(data []byte) (*plan, error) {
	if len(data) > maxPlan {
		return nil, fmt.Errorf("it has more than %s", size(maxPlan))
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	p := &plan{}
	if err := d.Decode(p); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("there is more than one JSON value")
	}
	if p.Version != planVersion {
		return nil, fmt.Errorf("its version is %d, not %d", p.Version, planVersion)
	}
	if err := naming.CheckCrawlID(p.Crawl); err != nil {
		return nil, err
	}
	all := 0
	for i := range p.Moves {
		m := &p.Moves[i]
		if err := m.parse(); err != nil {
			return nil, fmt.Errorf("the move from partition %d to %d: %w", m.From, m.To, err)
		}
		if all += len(m.slots); all > partition.MaxSlots {
			return nil, fmt.Errorf("it moves more than %d slots", partition.MaxSlots)
		}
	}
	return p, nil
}

// parse reads the slots of a move and checks its bounds.
func (m *planMove) parse() (err error) {
	if len(m.Text) > maxSlotText {
		return fmt.Errorf("its list of slots has more than %s", size(maxSlotText))
	}
	if m.slots, err = partition.ParseSlots(m.Text); err != nil {
		return err
	}
	switch {
	case len(m.slots) == 0:
		return errors.New("it names no slots")
	case m.From == m.To:
		return fmt.Errorf("%s would be moved to where it is", slotNames(m.slots))
	case m.To >= partition.MaxPartitions:
		return errors.New("there can be no such partition")
	}
	return nil
}

// apply is the map that a plan makes of the one that is wanted now.
func (p *plan) apply(at *place, crawl string, l *view.Layout, most int) (*partition.Map, error) {
	anew := fmt.Sprintf("Make another one with '%s'", at.command("partitions plan"))
	switch {
	case p.Crawl != crawl:
		return nil, usagef("the plan is for crawl %s, and the one in %s is %s.\n%s", p.Crawl, at, crawl, anew)
	case p.Epoch != l.Record.Epoch:
		return nil, usagef("the plan was made of epoch %d of the map, and it has epoch %d now.\n%s", p.Epoch, l.Record.Epoch, anew)
	case p.Slots != l.Map.Slots():
		return nil, usagef("the plan is for %s, and the crawl in %s has %d.\n%s", plural(int64(p.Slots), "slot"), at, l.Map.Slots(), anew)
	}
	var list []partition.Move
	fresh := map[partition.ID]bool{}
	for _, m := range p.Moves {
		if int(m.To) >= l.Record.Partitions {
			fresh[m.To] = true
		}
		for _, s := range m.slots {
			list = append(list, partition.Move{Slot: s, From: m.From, To: m.To})
		}
	}
	there := l.Record.Partitions + len(fresh) // new ones are numbered without gaps
	for _, m := range p.Moves {
		switch {
		case most > 0 && int(m.To) >= most:
			return nil, usagef("the plan needs partition %d, and %s was deployed with %d", m.To, at, most)
		case int(m.To) >= there:
			return nil, usagef("the plan moves slots to partition %d, and the crawl in %s has partitions 0 to %d: new ones have the next numbers", m.To, at, l.Record.Partitions-1)
		}
	}
	m, err := l.Target.Apply(list)
	if err != nil {
		return nil, usagef("the plan does not fit the crawl in %s: %w.\n%s", at, err, anew)
	}
	return m, nil
}
