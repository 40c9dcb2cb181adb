package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// newExplain takes an argument with a slash for a URL, and any other for a host.
func newExplain() *cobra.Command {
	var f reading
	return f.newCommand("explain", one("URL or host"), func(cmd *cobra.Command, args []string) error {
		return f.read(cmd.Context(), func(v *view.View) error {
			if strings.Contains(args[0], "/") {
				u, err := parseURL(args[0])
				if err != nil {
					return err
				}
				r, err := v.ExplainURL(cmd.Context(), u)
				if err != nil {
					return err
				}
				return f.report(cmd, r, func(out *output) { printURL(out, r) })
			}
			h, err := weburl.ParseHost(args[0])
			if err != nil {
				return usagef("%.200q is neither a URL nor a host: %w", args[0], err)
			}
			r, err := v.ExplainHost(cmd.Context(), h)
			if err != nil {
				return err
			}
			return f.report(cmd, r, func(out *output) { printHost(out, r) })
		})
	})
}

func printURL(out *output, r *view.URLReport) {
	out.row("url", "%s", r.URL)
	out.row("state", "%s", r.State)
	for _, why := range r.Why {
		out.row("", "%s", why)
	}
	out.rowIf(r.State == "pending", "next", "%s", ahead(r.Next))
	if r.State != view.Unknown {
		out.row("depth", "%d", r.Depth)
		out.rowIf(r.Generation > 0, "generation", "%d", r.Generation)
		out.rowIf(r.Attempts > 0, "attempts", "%d", r.Attempts)
	}
	out.rowIf(r.Topic != "", "topic", "%s", r.Topic)
	if pg := r.Page; pg != nil {
		printPage(out, pg)
	}
	name := "earlier"
	for i := range r.Earlier {
		if i == maxEarlier {
			out.row("", "and %s more; --json lists all", count(len(r.Earlier)-i))
			break
		}
		out.row(name, "%s", earlier(&r.Earlier[i]))
		name = ""
	}
	verdict := "forbidden"
	if r.Robots.Allowed {
		verdict = "allowed"
	}
	printRobots(out, "robots.txt", &r.Robots, verdict)
	printPlace(out, r.Host, r.Unit, r.Slot, r.Partition, r.Move)
}

// printPage writes where an answer is stored.
func printPage(out *output, pg *blobschema.Page) {
	if pg.WARC == "" {
		out.row("since", "%s", at(pg.Time))
	} else {
		cut := ""
		if pg.Truncated != "" {
			cut = ", cut (" + pg.Truncated + ")"
		}
		out.row("asked", "%s", at(pg.Time))
		out.row("answer", "%d %s, %s%s", pg.Status, pg.MIME, size(pg.BodyBytes), cut)
		out.row("stored", "%s at %d, %d bytes", pg.WARC, pg.Offset, pg.Length)
		if o := pg.Original; o != nil {
			out.row("payload", "%s at %d, %d bytes", o.WARC, o.Offset, o.Length)
		}
		out.row("digest", "%s", pg.Digest)
	}
	out.rowIf(pg.Links > 0, "links", "%d", pg.Links)
}

// maxEarlier is how many earlier records of a URL people are shown.
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
func printPlace(out *output, host, unit string, slot partition.Slot, p partition.ID, m *view.Move) {
	out.row("host", "%s, slot %d, partition %d", host, slot, p)
	switch {
	case m == nil:
	case m.Given:
		out.row("", "its slot is moving from partition %d to %d; none of its URLs is requested meanwhile", m.From, m.To)
	default:
		out.row("", "its slot will move from partition %d to %d", m.From, m.To)
	}
	out.rowIf(unit != host, "unit", "%s: its hosts share one pace", unit)
}

// printRobots says what a robots.txt says of a URL, by its verdict; of a host if that is empty.
func printRobots(out *output, name string, r *view.RobotsReport, verdict string) {
	switch {
	case !r.Read:
		out.row(name, "not read yet")
	case r.Line > 0:
		out.row(name, "%s by line %d: %s", verdict, r.Line, r.Rule)
	case r.Rule != "" && verdict != "":
		out.row(name, "%s: %s", verdict, r.Rule)
	case r.Rule != "":
		out.row(name, "%s", r.Rule)
	case verdict != "":
		out.row(name, "%s: no line matches", verdict)
	default:
		out.row(name, "read")
	}
	out.rowIf(r.Delay != "", "", "it asks for %s between requests", r.Delay)
	out.rowIf(r.Read && !r.Until.IsZero(), "", "good until %s", at(r.Until))
	out.rowIf(r.Failures > 0, "", "%d attempts without success, the next %s", r.Failures, ahead(r.Retry))
}

// ahead writes the earliest time of something to come.
func ahead(t time.Time) string {
	if !t.After(time.Now()) {
		return "at once"
	}
	return at(t)
}

func printHost(out *output, r *view.HostReport) {
	printPlace(out, r.Host, r.Unit, r.Slot, r.Partition, r.Move)
	out.rowIf(len(r.With) > 0, "", "with %s", strings.Join(r.With, ", "))
	if !r.Known {
		out.row("state", "unknown")
		for _, why := range r.Why {
			out.row("", "%s", why)
		}
		return
	}
	out.row("urls", "%s", kinds(r.Outcomes))
	out.row("known", "%s", plural(r.URLs, "URL"))
	out.rowIf(r.Capped > 0, "", "%s left out: it has too many", plural(r.Capped, "link"))
	out.row("pending", "%s", count(r.Pending))
	out.rowIf(r.Left != "", "", "at least %s at its pace", r.Left)
	out.row("pace", "%s between requests, the next %s", r.Delay, ahead(r.Next))
	out.rowIf(time.Until(r.Backoff) > 0, "", "left alone until %s, after %d failures in a row", at(r.Backoff), r.InARow)
	out.row("requests", "%d, %d of them failed", r.Requests, r.Failures)
	if r.Response != "" {
		out.row("estimates", "%s to connect, %s a request, %.0f requests a connection", r.Connect, r.Response, r.PerConn)
	}
	if r.RobotsHTTP.Read || !r.RobotsTLS.Read {
		printRobots(out, "http robots.txt", &r.RobotsHTTP, "")
	}
	if r.RobotsTLS.Read {
		printRobots(out, "https robots.txt", &r.RobotsTLS, "")
	}
}
