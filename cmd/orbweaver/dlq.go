package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

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
	cmd := &cobra.Command{
		Use:   "dlq",
		Short: "Look at messages that could not be read, and send them again",
		Long: `Dlq works on a crawl's dead letters: mail between partitions and requests from outside
that could not be read. They were put aside with their reason, and nothing waits for
them: what a sender knows not to have arrived it sends again by itself.

In a cloud they are joined by what the queues gave up because no function came to its
end with it; that stays in a queue of its own until one of the commands below fetches it.`,
		Example: `  orbweaver dlq list
  orbweaver dlq show 8198d1ba
  orbweaver dlq replay --all
  orbweaver dlq list --platform aws.json --json | jq -r '.[].reason'`,
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newDLQList(), newDLQShow(), newDLQReplay())
	return cmd
}

func newDLQList() *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the messages that could not be read",
		Long: `List shows a crawl's dead letters, oldest first: an id, when it was put aside, what it
is, where it was read, and why it could not be.`,
		Example: "  orbweaver dlq list\n  orbweaver dlq list --platform aws.json --json | jq length",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.dead(cmd.Context(), func(_ *view.View, list []letter) error {
				if f.json {
					return writeJSON(cmd.OutOrStdout(), list)
				}
				return printLetters(cmd.OutOrStdout(), list)
			})
		},
	}
	f.register(cmd)
	return cmd
}

func newDLQShow() *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a message that could not be read, as far as it can be",
		Long: `Show writes all that is known of a dead letter, with its body: the URLs of mail, the
text of a request, and bytes of what makes no sense. The beginning of an id will do.`,
		Example: "  orbweaver dlq show 8198d1ba\n  orbweaver dlq show 8198d1ba --json | jq -r .body | base64 -d",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("'%s' takes one id\nSee '%[1]s --help'", cmd.CommandPath())
			}
			return f.dead(cmd.Context(), func(_ *view.View, list []letter) error {
				l, err := find(list, args[0])
				if err != nil {
					return err
				}
				if f.json {
					return writeJSON(cmd.OutOrStdout(), l)
				}
				return l.print(cmd.OutOrStdout())
			})
		},
	}
	f.register(cmd)
	return cmd
}

func newDLQReplay() *cobra.Command {
	var f looking
	var all bool
	cmd := &cobra.Command{
		Use:   "replay [ID...|--all]",
		Short: "Send messages again that could not be read",
		Long: `Replay sends dead letters again: mail to its mailbox, wakes to their queue, requests and
notifications to the intake queue. That helps where a newer version reads what an older
one could not. A message that was applied before has no effect.

A message that this version cannot parse is refused, and nothing is sent: it would only
become a dead letter again. --all skips those messages, and those that were replayed
before. No process may work on the folder.`,
		Example: "  orbweaver dlq replay 8198d1ba 04c2\n  orbweaver dlq replay --all --platform aws.json",
		RunE: func(cmd *cobra.Command, ids []string) error {
			if all == (len(ids) > 0) {
				return usagef("give ids of letters, or --all\nSee '%s --help'", cmd.CommandPath())
			}
			if err := f.settle(); err != nil {
				return err
			}
			if !f.inCloud() {
				if err := f.unowned(cmd.Context()); err != nil {
					return err
				}
			}
			return f.work(cmd.Context(), func(v *visit) error { return runReplay(cmd, &f, v, ids) })
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "all messages that this version can parse and that were not replayed before")
	return cmd
}

// letter is a dead letter as programs see it.
type letter struct {
	ID       string           `json:"id"`
	At       time.Time        `json:"at"`
	Replayed time.Time        `json:"replayed,omitzero"`
	Kind     letterKind       `json:"kind"`
	Origin   string           `json:"origin"`
	Reason   string           `json:"reason"`
	Bytes    int              `json:"bytes"`
	URLs     []string         `json:"urls,omitempty"` // of mail and requests
	Body     []byte           `json:"body"`
	name     string           // of the object
	mail     *blobschema.Mail // if it is mail
}

// letterKind is what a body is, as far as this version can tell.
type letterKind string

const (
	kindMail         letterKind = "mail"
	kindWake         letterKind = "wake"
	kindRequest      letterKind = "request"
	kindNotification letterKind = "notification"
	kindUnknown      letterKind = "unknown"
)

func newLetter(d *view.DeadLetter) letter {
	l := letter{
		ID: d.ID, At: d.At, Replayed: d.Replayed, Kind: kindUnknown, Reason: d.Reason, Bytes: len(d.Body), Body: d.Body,
		name: d.Name, Origin: fmt.Sprintf("partition %d", d.Partition),
	}
	if d.Partition == partition.Requests {
		l.Origin = "intake"
	}
	if m, err := blobschema.DecodeMail(d.Body); err == nil {
		l.Kind, l.mail = kindMail, &m
		for i := range m.URLs {
			l.URLs = append(l.URLs, m.URLs[i].URL)
		}
	} else if _, p, err := blobschema.DecodeWake(d.Body); err == nil {
		l.Kind, l.Origin = kindWake, fmt.Sprintf("partition %d", p)
	} else if r, err := blobschema.DecodeRequest(d.Body); err == nil {
		l.Kind, l.URLs = kindRequest, append(r.Recrawl, r.Seeds...)
	} else if u, ok := blobschema.DecodeNotification(d.Body); ok && len(u) > 0 {
		l.Kind = kindNotification
	}
	return l
}

// dead reads the dead letters of the crawl at the place, and calls f with them. In a cloud
// those that queues gave up are among them.
func (f *looking) dead(ctx context.Context, do func(*view.View, []letter) error) error {
	if err := f.settle(); err != nil {
		return err
	}
	if f.inCloud() {
		return f.visit(ctx, func(v *visit) error {
			list, err := v.letters(ctx)
			if err != nil {
				return err
			}
			return do(v.view, list)
		})
	}
	return f.look(ctx, func(v *view.View) error {
		list, err := lettersOf(ctx, v)
		if err != nil {
			return err
		}
		return do(v, list)
	})
}

func lettersOf(ctx context.Context, v *view.View) ([]letter, error) {
	dead, err := v.DeadLetters(ctx)
	list := make([]letter, len(dead)) // an empty list for programs, not null
	for i := range dead {
		list[i] = newLetter(&dead[i])
	}
	return list, err
}

// letters is lettersOf, with what queues gave up.
func (v *visit) letters(ctx context.Context) ([]letter, error) {
	if v.place.inCloud() {
		if err := v.fetchGivenUp(ctx); err != nil {
			return nil, err
		}
	}
	return lettersOf(ctx, v.view)
}

// givenUp is the reason of what a queue gave up. It says no number, so that the same
// message always makes the same object.
const givenUp = "given up by its queue: it was delivered again and again, and no function came to its end with it"

// fetchGivenUp makes dead letters of what queues gave up: an object first, then the message
// is deleted. A crash between leaves both, and the next time makes the same object.
func (v *visit) fetchGivenUp(ctx context.Context) (err error) {
	q, err := v.platform.Queue(naming.DeadLettersQueue)
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
			l := crawl.DeadLetter{Crawl: v.view.ID(), Partition: partition.Requests, Reason: givenUp, Body: d.Body}
			if _, p, err := blobschema.DecodeWake(d.Body); err == nil {
				l.Partition = p
			}
			data, err := json.Marshal(l)
			if err != nil {
				return err
			}
			name := naming.Dead(l.Crawl, data)
			if err := engine.PutObject(ctx, v.platform, actor.PutObject{Name: name, Parts: [][]byte{data}}); err != nil {
				return fmt.Errorf("put %s: %w", name, err)
			}
			if err := q.Acknowledge(ctx, []platform.Receipt{d.Receipt}); err != nil {
				return err
			}
		}
	}
}

// find finds the letter that an id, or the beginning of one, names.
func find(list []letter, id string) (*letter, error) {
	var found *letter
	for i := range list {
		if l := &list[i]; strings.HasPrefix(l.ID, id) && id != "" {
			if found != nil {
				return nil, usagef("%.40q is the beginning of several ids; give more of it", id)
			}
			found = l
		}
	}
	if found == nil {
		return nil, usagef("there is no dead letter %.40q; see 'orbweaver dlq list'", id)
	}
	return found, nil
}

func printLetters(out io.Writer, list []letter) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(out, "no dead letters: every message could be read")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprint(w, "id\tput aside\tkind\tfrom\tbytes\treason\n")
	again := 0
	for i := range list {
		l := &list[i]
		reason := l.Reason
		if !l.Replayed.IsZero() {
			again++
			reason = "replayed " + at(l.Replayed) + "; " + reason
		}
		fmt.Fprintf(w, "%.12s\t%s\t%s\t%s\t%s\t%s\n", l.ID, at(l.At), l.Kind, l.Origin, count(int64(l.Bytes)), printable(reason))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%s, %s replayed\n", plural(int64(len(list)), "dead letter"), count(int64(again)))
	return err
}

// print writes a letter for people.
func (l *letter) print(out io.Writer) error {
	w := newRows(out)
	w.add("id", "%s", l.ID)
	w.add("put aside", "%s", at(l.At))
	if !l.Replayed.IsZero() {
		w.add("replayed", "%s", at(l.Replayed))
	}
	w.add("from", "%s", l.Origin)
	w.add("reason", "%s", l.Reason)
	w.add("kind", "%s, %s", l.Kind, plural(int64(l.Bytes), "byte"))
	if m := l.mail; m != nil {
		w.add("mail", "number %d from %s to partition %d of crawl %s, epoch %d", m.Number, sender(m.From), m.To, m.Crawl, m.Epoch)
	}
	for i, u := range l.URLs {
		w.add(map[bool]string{true: "urls"}[i == 0], "%s", u)
	}
	if err := w.w.Flush(); err != nil || l.Kind == kindMail {
		return err
	}
	text := hex.Dump(l.Body[:min(len(l.Body), maxHex)])
	if utf8.Valid(l.Body) {
		text = printable(string(l.Body)) + "\n"
	} else if len(l.Body) > maxHex {
		text += fmt.Sprintf("... and %s more; --json has all\n", plural(int64(len(l.Body)-maxHex), "byte"))
	}
	_, err := fmt.Fprintf(out, "\n%s", text)
	return err
}

const maxHex = 4 << 10 // bytes that people are shown

func sender(p partition.ID) string {
	switch p {
	case partition.Intake:
		return "the seeds"
	case partition.Requests:
		return "intake"
	}
	return fmt.Sprintf("partition %d", p)
}

// unowned refuses a folder that a process works on: messages are sent in its queues.
func (f *looking) unowned(ctx context.Context) error {
	return f.look(ctx, func(v *view.View) error {
		if live := v.Live(ctx); live != nil {
			return fail(exitInUse, fmt.Errorf("process %d works on the folder %s; stop it first, as with '%s'", live.PID, f.data, f.command("stop")))
		}
		return nil
	})
}

// replayed is what replay did.
type replayed struct {
	Sent    []string `json:"sent"`
	Skipped []string `json:"skipped,omitempty"` // with --all: messages that this version cannot parse either
}

func runReplay(cmd *cobra.Command, f *looking, v *visit, ids []string) error {
	ctx := cmd.Context()
	list, err := v.letters(ctx)
	if err != nil {
		return err
	}
	var chosen []*letter
	r := replayed{Sent: []string{}}
	for _, id := range ids {
		l, err := find(list, id)
		if err != nil {
			return err
		}
		if l.Kind == kindUnknown {
			return fmt.Errorf("message %.12s cannot be parsed, so nothing was sent: it is neither mail nor a wake, a request or a notification of this version.\n"+
				"See '%s', or replay the others by their ids or with --all", l.ID, f.command("dlq show", l.ID[:min(len(l.ID), 12)]))
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
		if err := v.replay(ctx, l); err != nil {
			return fmt.Errorf("replay %s: %w", l.ID, err)
		}
		r.Sent = append(r.Sent, l.ID)
	}
	if v.place.inCloud() && len(chosen) > 0 {
		if _, err := v.engine.Tick(); err != nil { // it wakes the partitions that have mail now
			return err
		}
	}
	if f.json {
		return writeJSON(cmd.OutOrStdout(), r)
	}
	text := fmt.Sprintf("%s sent again", plural(int64(len(r.Sent)), "message"))
	if n := len(r.Skipped); n > 0 {
		text += fmt.Sprintf("; %s not sent, which this version cannot parse either", count(int64(n)))
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

// replay sends a letter's body again, and then notes it: a crash between sends it twice,
// which does nothing.
func (v *visit) replay(ctx context.Context, l *letter) (err error) {
	c, err := v.view.Crawl(ctx)
	if err != nil {
		return err
	}
	r, err := v.view.MapRecord(ctx)
	if err != nil {
		return err
	}
	name, err := l.destination(&c, r.Partitions)
	if err != nil {
		return err
	}
	q, err := v.platform.Queue(name)
	if err != nil {
		return err
	}
	if err := errors.Join(q.Send(ctx, [][]byte{l.Body}, 0), q.Close(context.WithoutCancel(ctx))); err != nil {
		return err
	}
	return engine.PutObject(ctx, v.platform, actor.PutObject{Name: naming.Replayed(l.name)})
}

// destination is the queue that a letter belongs into.
func (l *letter) destination(c *blobschema.Crawl, partitions int) (queue string, err error) {
	switch {
	case l.mail != nil && l.mail.Crawl != c.ID:
		return "", fmt.Errorf("it is mail of crawl %s, the active one is %s", l.mail.Crawl, c.ID)
	case l.mail != nil:
		return mailbox(partitions, l.mail.To)
	case l.Kind == kindWake:
		return naming.WakesQueue, nil
	}
	return naming.IntakeQueue, nil
}

func mailbox(partitions int, p partition.ID) (string, error) {
	if int(p) >= partitions {
		return "", fmt.Errorf("it is for partition %d, and there are %d", p, partitions)
	}
	return naming.MailboxQueue(p), nil
}
