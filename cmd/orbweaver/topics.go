package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/view"
)

func newTopics() *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "Show a crawl's topics, and change their shares while it runs",
		Long: `Topics shows how far each topic of a crawl is, and with 'topics set' changes what share it
has, whether or not the crawl runs. Topics are given by a crawl file: see 'orbweaver help
crawl-file'.

  priority  higher goes first; several where seeds have priorities of their own
  slice     length of its turn among topics of its priority
  minimum   pages that it is to have in an hour, a day or another time, and how many of
            them it has had; once it has had all, its slice is shorter ("now") until
            that time is over, so that the others of its priority have more
  pages     answers kept with status 2xx; share: of all pages; bytes: received
  pending   URLs not asked for yet, as far as they are in memory

The last line is what belongs to no topic, and pending URLs that are not in memory.`,
		Example: `  orbweaver topics
  orbweaver topics set news --priority 20 --slice 30s
  orbweaver topics set news --minimum 2000/h
  orbweaver topics set news --minimum off
  orbweaver topics --platform aws.json --json | jq '.topics[] | {name, pages}'`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.look(cmd.Context(), func(v *view.View) error { return showTopics(cmd, &f, v) })
		},
	}
	f.register(cmd)
	cmd.AddCommand(newSetTopic())
	return cmd
}

// topicsReport is all topics, as JSON.
type topicsReport struct {
	Crawl  string        `json:"crawl"`
	Data   string        `json:"data,omitempty"`
	Cloud  string        `json:"platform,omitempty"`
	State  view.State    `json:"state"`
	Topics []topicReport `json:"topics"`
	None   topicReport   `json:"no_topic"`
}

type topicReport struct {
	Name       string    `json:"name,omitempty"`
	Priorities []int     `json:"priorities,omitempty"`
	Slice      float64   `json:"slice_seconds,omitempty"`
	SliceNow   float64   `json:"slice_now_seconds,omitempty"`
	Minimum    int64     `json:"minimum,omitempty"`
	Period     float64   `json:"period_seconds,omitempty"`
	Had        int64     `json:"had,omitempty"` // of the minimum, in the period that is
	Until      time.Time `json:"period_ends,omitzero"`
	Pages      int64     `json:"pages"`
	Share      float64   `json:"share"` // of all pages, 0 to 1
	Pending    int64     `json:"pending"`
	Bytes      int64     `json:"bytes"`
	of         view.TopicStatus
}

func newTopicReport(t view.TopicStatus, all int64) topicReport {
	r := topicReport{
		Name: t.Name, Priorities: t.Priorities, Slice: t.Slice.Seconds(), SliceNow: t.Slice.Seconds(), Minimum: t.Minimum, Period: t.Period.Seconds(),
		Had: t.Had, Until: t.Until, Pages: t.Totals.Pages, Pending: t.Totals.Pending, Bytes: t.Totals.Bytes, of: t,
	}
	if t.Shrunk > 0 {
		r.SliceNow = t.Shrunk.Seconds()
	}
	if all > 0 {
		r.Share = float64(t.Totals.Pages) / float64(all)
	}
	return r
}

func showTopics(cmd *cobra.Command, f *looking, v *view.View) error {
	s, err := v.Status(cmd.Context())
	if err != nil {
		return err
	}
	r := topicsReport{Crawl: v.ID(), State: s.State, Topics: []topicReport{}}
	if f.inCloud() {
		r.Cloud = f.cloud
	} else {
		r.Data = f.data
	}
	all := int64(0)
	list := s.Topics()
	for _, t := range list {
		all += t.Totals.Pages
	}
	for _, t := range list {
		r.Topics = append(r.Topics, newTopicReport(t, all))
	}
	last := len(r.Topics) - 1
	r.None, r.Topics = r.Topics[last], r.Topics[:last]
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	return r.print(cmd.OutOrStdout(), &f.place)
}

// print writes the report for people, in one write.
func (r *topicsReport) print(out io.Writer, p *place) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "priority\tslice\tminimum\tpages\tshare\tpending\tbytes\t  topic\n")
	line := func(t *topicReport, name string) {
		priority, slice, minimum := "-", "-", "-"
		if t.of.Slice > 0 {
			priority, slice = spread(t.Priorities), t.of.Slice.String()
		}
		if t.of.Shrunk > 0 {
			slice += " (now " + t.of.Shrunk.String() + ")"
		}
		if t.Minimum > 0 {
			minimum = crawlfile.FormatMinimum(t.Minimum, t.of.Period)
		}
		if !t.Until.IsZero() {
			minimum = count(t.Had) + " of " + minimum
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f%%\t%s\t%s\t  %s\n", priority, slice, minimum, count(t.Pages), 100*t.Share, count(t.Pending), size(t.Bytes), name)
	}
	for i := range r.Topics {
		line(&r.Topics[i], printable(r.Topics[i].Name))
	}
	line(&r.None, "(none)")
	w.Flush() // into memory: it cannot fail
	if len(r.Topics) == 0 {
		fmt.Fprintf(&b, "crawl %s in %s has no topics; a crawl file gives them: see 'orbweaver help crawl-file'\n", r.Crawl, p)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// spread writes priorities: all of a few, else their number.
func spread(priorities []int) string {
	if len(priorities) > 5 {
		return fmt.Sprintf("%d..%d", slices.Min(priorities), slices.Max(priorities))
	}
	sorted := slices.Clone(priorities)
	slices.Sort(sorted)
	slices.Reverse(sorted)
	var texts []string
	for _, n := range sorted {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// setTopicFlags are those of 'topics set'.
type setTopicFlags struct {
	looking
	priority priorityValue
	slice    sliceValue
	minimum  minimumValue
}

func newSetTopic() *cobra.Command {
	var f setTopicFlags
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Change a topic's priority, slice or minimum",
		Long: `Set changes what share of a crawl a topic has. In a folder a process that crawls obeys at
once; in a cloud steps at work do with their next commit, within a minute or so. A topic
whose seeds have priorities of their own has none to change.

A crawl file that is given later changes it again, to what that says.`,
		Example: `  orbweaver topics set news --priority 20
  orbweaver topics set news --slice 30s --minimum 2000/h --platform aws.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("'%s' takes the name of one topic\nSee '%[1]s --help'", cmd.CommandPath())
			}
			return f.run(cmd, args[0])
		},
	}
	f.register(cmd)
	cmd.Flags().Var(&f.priority, "priority", "higher goes first: -100 to 100")
	cmd.Flags().Var(&f.slice, "slice", "length of its turn among topics of its priority, such as 20s")
	cmd.Flags().Var(&f.minimum, "minimum", "pages that it is to have in a time, such as 1000/h; off for none")
	for _, name := range []string{"slice", "minimum"} {
		cmd.Flags().Lookup(name).DefValue = "" // what is left out stays as it is
	}
	return cmd
}

// change is what the flags given change.
func (f *setTopicFlags) change() (c crawl.TopicChange) {
	if f.set.Changed("priority") {
		n := int(f.priority)
		c.Priority = &n
	}
	if f.set.Changed("slice") {
		d := time.Duration(f.slice)
		c.Slice = &d
	}
	if f.set.Changed("minimum") {
		m := f.minimum
		c.Minimum, c.Period = &m.pages, &m.period
	}
	return c
}

// setTopic is what came of it.
type setTopic struct {
	Crawl    string  `json:"crawl"`
	Data     string  `json:"data,omitempty"`
	Cloud    string  `json:"platform,omitempty"`
	Topic    string  `json:"topic"`
	Changed  bool    `json:"changed"` // false: it was so already
	Priority int     `json:"priority"`
	Slice    float64 `json:"slice_seconds"`
	Minimum  int64   `json:"minimum"`
	Period   float64 `json:"period_seconds,omitempty"`
	PID      int     `json:"pid,omitempty"`                // of the process that was told
	AtWork   int     `json:"partitions_at_work,omitempty"` // in a cloud, that will obey

	now blobschema.Topic
}

func (f *setTopicFlags) run(cmd *cobra.Command, name string) error {
	if err := f.settle(); err != nil {
		return err
	}
	c := f.change()
	if c == (crawl.TopicChange{}) {
		return usagef("give what is to change: --priority, --slice or --minimum\nSee '%s --help'", cmd.CommandPath())
	}
	r := setTopic{Topic: name}
	var err error
	if f.inCloud() {
		r.Cloud = f.cloud
		err = f.work(cmd.Context(), func(v *visit) error { return r.here(cmd.Context(), v, c) })
	} else {
		r.Data = f.data
		err = r.inFolder(cmd.Context(), &f.place, c)
	}
	switch {
	case errors.Is(err, crawl.ErrNoTopic):
		return usagef("the crawl in %s has no topic %q; '%s' lists those that it has", &f.place, name, f.command("topics"))
	case errors.Is(err, crawl.ErrPriorities):
		return usagef("the URLs of topic %q have priorities of their own: a crawl file gives them to seeds (granularity: url)", name)
	case err != nil:
		return err
	}
	return r.tell(cmd.OutOrStdout(), f)
}

// here changes the topic where nobody has to be told but by the table.
func (r *setTopic) here(ctx context.Context, v *visit, c crawl.TopicChange) (err error) {
	r.Crawl = v.view.ID()
	if r.now, r.Changed, err = v.engine.ChangeTopic(r.Topic, c); err != nil {
		return err
	}
	s, err := v.view.Status(ctx)
	r.AtWork = s.Leased
	return err
}

// inFolder has the process that works on the folder change the topic, if there is one.
func (r *setTopic) inFolder(ctx context.Context, p *place, c crawl.TopicChange) error {
	return p.tell(ctx, func(v *view.View, pid int) (err error) {
		r.Crawl, r.PID = v.ID(), pid
		r.now, r.Changed, err = v.ChangeTopic(ctx, r.Topic, c)
		return err
	}, func(v *visit) error { return r.here(ctx, v, c) })
}

func (r *setTopic) tell(out io.Writer, f *setTopicFlags) error {
	t := view.TopicStatus{Slice: r.now.Slice, Minimum: r.now.Minimum, Period: r.now.Period}
	t.Fill()
	r.Priority, r.Slice, r.Minimum, r.Period = r.now.Priority, t.Slice.Seconds(), t.Minimum, t.Period.Seconds()
	if f.json {
		return writeJSON(out, r)
	}
	has := fmt.Sprintf("priority %d, slice %s", r.Priority, t.Slice)
	if t.Minimum > 0 {
		has += ", minimum " + crawlfile.FormatMinimum(t.Minimum, t.Period)
	}
	soon := ""
	switch {
	case !r.Changed:
		soon = "; it was so already"
	case r.PID > 0:
		soon = fmt.Sprintf("; process %d obeys at once", r.PID)
	case r.AtWork > 0:
		soon = fmt.Sprintf("; %s at work, which obey with their next commit, within a minute or so", plural(int64(r.AtWork), "partition"))
	}
	_, err := fmt.Fprintf(out, "topic %s of crawl %s in %s: %s%s\n", printable(r.Topic), r.Crawl, &f.place, has, soon)
	return err
}
