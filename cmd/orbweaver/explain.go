package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

func newExplain() *cobra.Command {
	var f looking
	cmd := &cobra.Command{
		Use:   "explain URL|HOST",
		Short: "Say what became of a URL or a host, and why",
		Long: `Explain says where a URL belongs and what became of it:

  fetched   an answer is kept: its status, and where in which WARC file
  refused   no answer will be kept: for what reason, and after how many attempts
  pending   it will be asked for: when at the earliest, and what comes first
  unknown   it was never found, or is out of scope, looks like a trap, is over a cap, or
            was only found with nofollow

and which line of the host's robots.txt decides about it, and what came of it each time
it was asked for. Of a host it says how it is asked: its pace, robots.txt, failures, and
what came of its URLs.

For a URL that is unknown, and for a host, many commits are read.`,
		Example: `  orbweaver explain https://example.org/private/
  orbweaver explain example.org
  orbweaver explain example.org:8080
  orbweaver explain --platform aws.json example.org
  orbweaver explain --json https://example.org/ | jq -r .page.warc`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("'%s' takes one URL or host\nSee '%[1]s --help'", cmd.CommandPath())
			}
			return f.look(cmd.Context(), func(v *view.View) error { return runExplain(cmd, &f, v, args[0]) })
		},
	}
	f.register(cmd)
	return cmd
}

// runExplain takes what has a scheme, or a path, for a URL and all else for a host.
func runExplain(cmd *cobra.Command, f *looking, v *view.View, what string) error {
	out := cmd.OutOrStdout()
	if strings.Contains(what, "/") {
		u, err := oneURL(cmd, []string{what})
		if err != nil {
			return err
		}
		r, err := v.ExplainURL(cmd.Context(), u)
		if err != nil {
			return err
		}
		if f.json {
			return writeJSON(out, r)
		}
		return printURL(out, r)
	}
	h, err := weburl.ParseHost(what)
	if err != nil {
		return usagef("%.200q is neither a URL nor a host: %w", what, err)
	}
	r, err := v.ExplainHost(cmd.Context(), h)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(out, r)
	}
	return printHost(out, r)
}

// rows writes names and values below each other.
type rows struct{ w *tabwriter.Writer }

func newRows(out io.Writer) rows { return rows{tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)} }

func (r rows) add(name, format string, args ...any) {
	fmt.Fprintf(r.w, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...)))
}

// printable keeps what a server sent from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

func printURL(out io.Writer, r *view.URLReport) error {
	w := newRows(out)
	w.add("url", "%s", r.URL)
	w.add("state", "%s", r.State)
	for _, why := range r.Why {
		w.add("", "%s", why)
	}
	if r.State == "pending" {
		w.add("next", "%s", ahead(r.Next))
	}
	if r.State != view.Unknown {
		w.add("depth", "%d", r.Depth)
		if r.Generation > 0 {
			w.add("generation", "%d", r.Generation)
		}
		if r.Attempts > 0 {
			w.add("attempts", "%d", r.Attempts)
		}
	}
	if r.Topic != "" {
		w.add("topic", "%s", r.Topic)
	}
	if pg := r.Page; pg != nil {
		if pg.WARC == "" {
			w.add("since", "%s", at(pg.Time))
		} else {
			w.add("asked", "%s", at(pg.Time))
			w.add("answer", "%d %s, %s%s", pg.Status, pg.MIME, size(pg.BodyBytes), cutNote(pg.Truncated))
			w.add("stored", "%s at %d, %d bytes", pg.WARC, pg.Offset, pg.Length)
			if o := pg.Original; o != nil {
				w.add("payload", "%s at %d, %d bytes", o.WARC, o.Offset, o.Length)
			}
			w.add("digest", "%s", pg.Digest)
		}
		if pg.Links > 0 {
			w.add("links", "%d", pg.Links)
		}
	}
	name := "earlier"
	for i := range r.Earlier {
		if i == maxEarlier {
			w.add("", "and %s more; --json lists all", count(int64(len(r.Earlier)-i)))
			break
		}
		w.add(name, "%s", earlier(&r.Earlier[i]))
		name = ""
	}
	printRobots(w, "robots.txt", &r.Robots, allowed(r.Robots.Allowed))
	printPlace(w, r.Host, r.Unit, r.Slot, r.Partition, r.Move)
	return w.w.Flush()
}

// maxEarlier is how many earlier records of a URL people are told of.
const maxEarlier = 10

// earlier writes a page record in a line.
func earlier(pg *blobschema.Page) string {
	s := fmt.Sprintf("generation %d, %s: %s", pg.Generation, at(pg.Time), pg.Outcome)
	if pg.Status != 0 {
		s += fmt.Sprintf(" %d", pg.Status)
	}
	if pg.Original != nil {
		s += ", a revisit of " + at(pg.Original.Time)
		if pg.Original.URL != pg.URL {
			s += " of " + pg.Original.URL
		}
	}
	if pg.Detail != "" {
		s += " (" + pg.Detail + ")"
	}
	return s
}

// printPlace says where a host belongs.
func printPlace(w rows, host, unit string, slot partition.Slot, p partition.ID, m *view.Move) {
	w.add("host", "%s, slot %d, partition %d", host, slot, p)
	switch {
	case m == nil:
	case m.Given:
		w.add("", "its slot is on its way from partition %d to %d, and nothing of it is asked for", m.From, m.To)
	default:
		w.add("", "its slot is to go from partition %d to %d", m.From, m.To)
	}
	if unit != host {
		w.add("unit", "%s: its hosts share one pace", unit)
	}
}

func cutNote(reason string) string {
	if reason == "" {
		return ""
	}
	return ", cut (" + reason + ")"
}

// printRobots says what a robots.txt says of a URL, by its verdict; of a host if that
// is empty.
func printRobots(w rows, name string, r *view.RobotsReport, verdict string) {
	switch {
	case !r.Read:
		w.add(name, "not read yet")
	case r.Line > 0:
		w.add(name, "%s by line %d: %s", verdict, r.Line, r.Rule)
	case r.Rule != "" && verdict != "":
		w.add(name, "%s: %s", verdict, r.Rule)
	case r.Rule != "":
		w.add(name, "%s", r.Rule)
	case verdict != "":
		w.add(name, "%s: no line matches", verdict)
	default:
		w.add(name, "read")
	}
	if r.Delay != "" {
		w.add("", "it asks for %s between requests", r.Delay)
	}
	if r.Read && !r.Until.IsZero() {
		w.add("", "good until %s", at(r.Until))
	}
	if r.Failures > 0 {
		w.add("", "%d attempts in vain, the next %s", r.Failures, ahead(r.Retry))
	}
}

func allowed(yes bool) string {
	if yes {
		return "allowed"
	}
	return "forbidden"
}

// at writes a time, and how far ahead it is.
func at(t time.Time) string {
	s := t.UTC().Format("2006-01-02 15:04:05 UTC")
	if time.Until(t) > 0 {
		s += " (" + when(t) + ")"
	}
	return s
}

// ahead writes the earliest time of something to come.
func ahead(t time.Time) string {
	if !t.After(time.Now()) {
		return "at once"
	}
	return at(t)
}

func printHost(out io.Writer, r *view.HostReport) error {
	w := newRows(out)
	printPlace(w, r.Host, r.Unit, r.Slot, r.Partition, r.Move)
	if len(r.With) > 0 {
		w.add("", "with %s", strings.Join(r.With, ", "))
	}
	if !r.Known {
		w.add("state", "unknown")
		for _, why := range r.Why {
			w.add("", "%s", why)
		}
		return w.w.Flush()
	}
	w.add("urls", "%s", kinds(r.Outcomes))
	w.add("known", "%s", plural(r.URLs, "URL"))
	if r.Capped > 0 {
		w.add("", "%s left out: it has too many", plural(int64(r.Capped), "link"))
	}
	w.add("pending", "%s", count(r.Pending))
	if r.Left != "" {
		w.add("", "at least %s at its pace", r.Left)
	}
	w.add("pace", "%s between requests, the next %s", r.Delay, ahead(r.Next))
	if time.Until(r.Backoff) > 0 {
		w.add("", "left alone until %s, after %d failures in a row", at(r.Backoff), r.InARow)
	}
	w.add("requests", "%d, %d of them failed", r.Requests, r.Failures)
	if r.Response != "" {
		w.add("estimates", "%s to connect, %s a request, %.0f requests a connection", r.Connect, r.Response, r.PerConn)
	}
	if r.RobotsHTTP.Read || !r.RobotsTLS.Read {
		printRobots(w, "http robots.txt", &r.RobotsHTTP, "")
	}
	if r.RobotsTLS.Read {
		printRobots(w, "https robots.txt", &r.RobotsTLS, "")
	}
	return w.w.Flush()
}
