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
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/view"
)

func newTopics() *cobra.Command {
	var f reading
	cmd := f.newReport("topics", noSuchCommand, func(ctx context.Context, v *view.View, _ []string) (string, any, error) {
		s, err := v.Status(ctx)
		return "topics", newTopicsReport(f.where(v.ID()), &s), err
	})
	cmd.AddCommand(newSetTopic())
	return cmd
}

// topicsReport describes all topics.
type topicsReport struct {
	where
	State  view.State    `json:"state"`
	Topics []topicReport `json:"topics"`
	None   topicReport   `json:"no_topic"`
}

type topicReport struct {
	view.TopicStatus
	Slice    float64 `json:"slice_seconds,omitempty"`
	SliceNow float64 `json:"slice_now_seconds,omitempty"`
	Period   float64 `json:"period_seconds,omitempty"`
	Pages    int64   `json:"pages"`
	Share    float64 `json:"share"` // of all pages, 0 to 1
	Pending  int64   `json:"pending"`
	Bytes    int64   `json:"bytes"`
}

func newTopicsReport(w where, s *view.Status) *topicsReport {
	r := &topicsReport{where: w, State: s.State, Topics: []topicReport{}}
	for _, t := range s.Topics() {
		r.Topics = append(r.Topics, topicReport{
			TopicStatus: t, Slice: t.Slice.Seconds(), SliceNow: cmp.Or(t.Shrunk, t.Slice).Seconds(), Period: t.Period.Seconds(),
			Pages: t.Totals.Pages, Share: float64(t.Totals.Pages) / float64(max(s.Totals.Pages, 1)),
			Pending: t.Totals.Pending, Bytes: t.Totals.Bytes,
		})
	}
	last := len(r.Topics) - 1
	r.None, r.Topics = r.Topics[last], r.Topics[:last]
	return r
}

// All are the topics, and at the end the URLs of no topic.
func (r *topicsReport) All() []topicReport { return append(r.Topics, r.None) }

// Due is the minimum of a topic, and how much of it the topic has had.
func (t topicReport) Due() string {
	due := "-"
	if t.Minimum > 0 {
		due = crawlfile.FormatMinimum(t.Minimum, t.TopicStatus.Period)
	}
	if !t.Until.IsZero() {
		due = count(t.Had) + " of " + due
	}
	return due
}

// Percent is the share of all pages.
func (t topicReport) Percent() string { return fmt.Sprintf("%.1f%%", 100*t.Share) }

// Turn is the length of a topic's turn.
func (t topicReport) Turn() string {
	turn := t.TopicStatus.Slice.String()
	if t.Shrunk > 0 {
		turn += " (now " + t.Shrunk.String() + ")"
	}
	return turn
}

// Spread writes priorities: all of a few, or their range.
func (t topicReport) Spread() string {
	if len(t.Priorities) > 5 {
		return fmt.Sprintf("%d..%d", slices.Min(t.Priorities), slices.Max(t.Priorities))
	}
	var texts []string
	for _, n := range slices.Backward(slices.Sorted(slices.Values(t.Priorities))) {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// setTopic is the result of a change of a topic.
type setTopic struct {
	where
	Topic    string           `json:"topic"`
	Changed  bool             `json:"changed"` // false: it was so already
	Priority int              `json:"priority"`
	Slice    float64          `json:"slice_seconds"`
	Minimum  int64            `json:"minimum"`
	Period   float64          `json:"period_seconds,omitempty"`
	Status   view.TopicStatus `json:"-"`
	obeying
}

func newSetTopic() *cobra.Command {
	var f reading
	var c crawl.TopicChange
	cmd := f.newCommand("topics-set", one("name of one topic"), func(cmd *cobra.Command, args []string) error {
		if c == (crawl.TopicChange{}) {
			return usagef("nothing to change: give --priority, --slice or --minimum\nSee '%s --help'", cmd.CommandPath())
		}
		r := setTopic{Topic: args[0]}
		var now blobschema.Topic
		err := f.change(cmd.Context(), func(o *opened) (err error) {
			r.where = f.where(o.view.ID())
			if now, r.Changed, err = o.ChangeTopic(cmd.Context(), r.Topic, c); err != nil {
				return err
			}
			return r.await(cmd.Context(), o)
		})
		switch {
		case errors.Is(err, crawl.ErrNoTopic):
			return usagef("the crawl in %s has no topic %q; '%s' lists those that it has", &f.target, r.Topic, f.command("topics"))
		case errors.Is(err, crawl.ErrPriorities):
			return usagef("the URLs of topic %q have priorities of their own: a crawl file gives them to seeds (granularity: url)", r.Topic)
		case err != nil:
			return err
		}
		t := view.TopicStatus{Slice: now.Slice, Minimum: now.Minimum, Period: now.Period}
		t.Fill()
		r.Priority, r.Slice, r.Minimum, r.Period = now.Priority, t.Slice.Seconds(), t.Minimum, t.Period.Seconds()
		r.Status = t
		return f.report(cmd.OutOrStdout(), "topic", &r)
	})
	// What is left out stays as it is.
	cmd.Flags().Func("priority", "higher goes first: -100 to 100", func(s string) error {
		n, err := crawlfile.ParsePriority(s)
		c.Priority = &n
		return err
	})
	cmd.Flags().Func("slice", "length of its turn among topics of its priority, such as 20s", func(s string) error {
		d, err := crawlfile.ParseSlice(s)
		c.Slice = &d
		return err
	})
	cmd.Flags().Func("minimum", "pages that it should get in a period, such as 1000/h; off for none", func(s string) error {
		c.Minimum, c.Period = new(int64), new(time.Duration)
		if s == "off" {
			return nil
		}
		pages, period, err := crawlfile.ParseMinimum(s)
		*c.Minimum, *c.Period = pages, period
		if err != nil {
			err = fmt.Errorf("%w, or off", err)
		}
		return err
	})
	return cmd
}

// Due is the minimum of the topic; "" for none.
func (r *setTopic) Due() string {
	if r.Minimum == 0 {
		return ""
	}
	return crawlfile.FormatMinimum(r.Minimum, r.Status.Period)
}
