package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

func newDLQ() *cobra.Command {
	cmd := command("dlq", noSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.AddCommand(newDLQList(), newDLQReplay())
	return cmd
}

func newDLQList() *cobra.Command {
	var f reading
	return f.newCommand("dlq-list", noArguments, func(cmd *cobra.Command, _ []string) error {
		ctx := cmd.Context()
		if err := f.collect(ctx, &f.target); err != nil {
			return err
		}
		return f.read(ctx, func(v *view.View) error {
			list, err := lettersOf(ctx, v)
			if err != nil {
				return err
			}
			return f.report(cmd.OutOrStdout(), "dlq", letters(list))
		})
	})
}

// letter is a dead letter as programs see it.
type letter struct {
	ID       string           `json:"id"`
	At       time.Time        `json:"at"`
	Replayed time.Time        `json:"replayed,omitzero"`
	Kind     string           `json:"kind"` // mail, wake, request or notification, if this version can parse it
	Origin   string           `json:"origin"`
	Reason   string           `json:"reason"`
	Bytes    int              `json:"bytes"`
	URLs     []string         `json:"urls,omitempty"` // of mail and requests
	Body     []byte           `json:"body"`
	name     string           // of the object
	mail     *blobschema.Mail // if it is mail
}

// kindUnknown is the kind of a body that this version cannot parse.
const kindUnknown = "unknown"

func newLetter(d *view.DeadLetter) letter {
	l := letter{
		ID: d.ID, At: d.At, Replayed: d.Replayed, Kind: kindUnknown, Reason: d.Reason, Bytes: len(d.Body), Body: d.Body,
		name: d.Name, Origin: sender(d.Partition),
	}
	if m, err := blobschema.DecodeMail(d.Body); err == nil {
		l.Kind, l.mail = "mail", &m
		for i := range m.URLs {
			l.URLs = append(l.URLs, m.URLs[i].URL)
		}
	} else if _, p, err := blobschema.DecodeWake(d.Body); err == nil {
		l.Kind, l.Origin = "wake", sender(p)
	} else if r, err := blobschema.DecodeRequest(d.Body); err == nil {
		l.Kind, l.URLs = "request", append(r.Recrawl, r.Seeds...)
	} else if u, ok := blobschema.DecodeNotification(d.Body); ok && len(u) > 0 {
		l.Kind = "notification"
	}
	return l
}

// sender names who sent or read a message.
func sender(p partition.ID) string {
	switch p {
	case partition.Intake:
		return "the seeds"
	case partition.Requests:
		return "intake"
	}
	return fmt.Sprintf("partition %d", p)
}

func lettersOf(ctx context.Context, v *view.View) ([]letter, error) {
	dead, err := v.DeadLetters(ctx)
	list := make([]letter, len(dead)) // an empty list for programs, not null
	for i := range dead {
		list[i] = newLetter(&dead[i])
	}
	return list, err
}

// givenUp is the reason of a message that a queue gave up. It contains no number, so that the same
// message always becomes the same object.
const givenUp = "given up by its queue: every function that took it failed"

// fetchGivenUp stores each message that the queues of a deployment gave up as an object, and then deletes the message. A crash
// between the two leaves both; the next call writes the same object.
func (o *opened) fetchGivenUp(ctx context.Context) (err error) {
	q, err := o.platform.Queue(naming.DeadLettersQueue)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, q.Close(context.WithoutCancel(ctx))) }()
	for {
		got, err := q.Receive(ctx, 10, time.Second)
		if err != nil || len(got) == 0 {
			return err
		}
		for _, d := range got {
			l := crawl.DeadLetter{Crawl: o.view.ID(), Partition: partition.Requests, Reason: givenUp, Body: d.Body}
			if _, p, err := blobschema.DecodeWake(d.Body); err == nil {
				l.Partition = p
			}
			data, err := json.Marshal(l)
			if err != nil {
				return err
			}
			name := naming.Dead(l.Crawl, data)
			if err := engine.PutObject(ctx, o.platform, actor.PutObject{Name: name, Parts: [][]byte{data}}); err != nil {
				return fmt.Errorf("put %s: %w", name, err)
			}
			if err := q.Acknowledge(ctx, []platform.Receipt{d.Receipt}); err != nil {
				return err
			}
		}
	}
}

// find finds the letter of an id, or of the beginning of one.
func find(list []letter, id string) (found *letter, err error) {
	for i := range list {
		if l := &list[i]; strings.HasPrefix(l.ID, id) && id != "" {
			if found != nil {
				return nil, usagef("%.40q is the beginning of several ids; give more of it", id)
			}
			found = l
		}
	}
	if found == nil {
		err = usagef("there is no dead letter %.40q; see 'orbweaver dlq list'", id)
	}
	return found, err
}

// letters is a list of dead letters.
type letters []letter

// Replayed is the number of letters that were sent again.
func (l letters) Replayed() (n int) {
	for i := range l {
		if !l[i].Replayed.IsZero() {
			n++
		}
	}
	return n
}

// Short is the beginning of the id.
func (l letter) Short() string { return l.ID[:min(len(l.ID), 12)] }

// replayed is the result of replay.
type replayed struct {
	Sent    []string `json:"sent"`
	Skipped []string `json:"skipped,omitempty"` // with --all: messages that this version cannot parse either
}

func newDLQReplay() *cobra.Command {
	var f reading
	all := false
	cmd := f.newCommand("dlq-replay", nil, func(cmd *cobra.Command, ids []string) error {
		if all == (len(ids) > 0) {
			return usagef("give ids of letters, or --all\nSee '%s --help'", cmd.CommandPath())
		}
		r := &replayed{Sent: []string{}}
		replay := func(o *opened) error {
			if o.pid > 0 { // its queues are in that process
				return fail(exitInUse, fmt.Errorf("process %d works on the folder %s; stop it first, as with '%s'", o.pid, f.data, f.command("stop")))
			}
			return r.run(cmd.Context(), o, ids)
		}
		if err := f.collect(cmd.Context(), &f.target); err != nil {
			return err
		}
		if err := f.change(cmd.Context(), replay); err != nil {
			return err
		}
		return f.report(cmd.OutOrStdout(), "replayed", r)
	})
	cmd.Flags().BoolVar(&all, "all", false, "all messages that this version can parse and that were not replayed before")
	return cmd
}

// run replays letters: those of some ids, or all without any.
func (r *replayed) run(ctx context.Context, o *opened, ids []string) error {
	list, err := lettersOf(ctx, o.view)
	if err != nil {
		return err
	}
	var chosen []*letter
	for _, id := range ids {
		l, err := find(list, id)
		if err != nil {
			return err
		}
		if l.Kind == kindUnknown {
			return fmt.Errorf("message %.12s cannot be parsed, so nothing was sent: it is neither mail nor a wake, a request or a notification of "+
				"this version.\nSee '%s', or replay the others by their ids or with --all", l.ID, o.command("dlq list", "--json"))
		}
		chosen = append(chosen, l)
	}
	for i := range list {
		switch l := &list[i]; {
		case len(ids) > 0 || !l.Replayed.IsZero():
		case l.Kind == kindUnknown:
			r.Skipped = append(r.Skipped, l.ID)
		default:
			chosen = append(chosen, l)
		}
	}
	for _, l := range chosen {
		if err := o.replay(ctx, l); err != nil {
			return fmt.Errorf("replay %s: %w", l.ID, err)
		}
		r.Sent = append(r.Sent, l.ID)
	}
	if len(chosen) > 0 {
		_, err = o.engine.Tick() // it wakes the partitions that have mail now
	}
	return err
}

// replay sends a letter's body again and then records that. After a crash between the two, the next replay
// sends it twice, which has no effect.
func (o *opened) replay(ctx context.Context, l *letter) error {
	r, err := o.view.MapRecord(ctx)
	if err != nil {
		return err
	}
	name := naming.IntakeQueue
	switch m := l.mail; {
	case m != nil && m.Crawl != o.view.ID():
		return fmt.Errorf("it is mail of crawl %s, the active one is %s", m.Crawl, o.view.ID())
	case m != nil && int(m.To) >= r.Partitions:
		return fmt.Errorf("it is for partition %d, and there are %d", m.To, r.Partitions)
	case m != nil:
		name = naming.MailboxQueue(m.To)
	case l.Kind == "wake":
		name = naming.WakesQueue
	}
	q, err := o.platform.Queue(name)
	if err != nil {
		return err
	}
	if err := errors.Join(q.Send(ctx, [][]byte{l.Body}, 0), q.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return engine.PutObject(ctx, o.platform, actor.PutObject{Name: naming.Replayed(l.name)})
}
