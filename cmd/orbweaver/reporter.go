package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
)

// reporter reports what a crawl does: as JSON, for people on a terminal or in lines, or warnings
// only. All its methods but Write are called by one goroutine at a time.
type reporter struct {
	io.Writer           // takes warnings, one line each
	out       io.Writer // takes results
	json      bool
	quiet     bool
	screen    *screen // nil without a terminal
	last      float64 // seconds when progress was reported last
	key       string  // of that progress
}

func newReporter(json, quiet bool, out, errOut io.Writer) *reporter {
	r := &reporter{Writer: errOut, out: out, json: json, quiet: quiet}
	if s := newScreen(errOut); s != nil && !json && !quiet {
		r.Writer, r.screen = s, s
	}
	return r
}

// reporting returns the command of a name, whose run reports with a reporter.
func reporting(name string, args cobra.PositionalArgs, f *reportFlags,
	run func(cmd *cobra.Command, rep *reporter, args []string) error,
) *cobra.Command {
	cmd := command(name, args, func(cmd *cobra.Command, args []string) error {
		rep := newReporter(f.json, f.quiet, cmd.OutOrStdout(), cmd.ErrOrStderr())
		err := run(cmd, rep, args)
		rep.failed(err)
		return err
	})
	cmd.Flags().SortFlags = false
	return cmd
}

// reportFlags choose how to report.
type reportFlags struct{ json, quiet bool }

func (f *reportFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "report events as JSON, one object a line")
	fs.BoolVar(&f.quiet, "quiet", false, "report only warnings and errors")
}

// begun reports that something begins.
func (r *reporter) begun(event string, what fmt.Stringer) {
	switch {
	case r.json:
		r.event(event, what)
	case !r.quiet:
		fmt.Fprintln(r, what)
	}
}

// told reports a result that has no summary.
func (r *reporter) told(event string, what fmt.Stringer) {
	switch {
	case r.json:
		r.event(event, what)
	case !r.quiet:
		r.clear()
		fmt.Fprintln(r.out, what)
	}
}

// shown is something that progresses. As JSON it has its figures.
type shown interface{ progress() *progress }

// Least times between two lines of progress, in seconds.
const (
	eventSeconds = 1
	lineSeconds  = 5
	idleSeconds  = 60 // without news
)

// progress reports how far something is. Call it several times a second.
func (r *reporter) progress(of shown) {
	p := of.progress()
	passed := p.seconds - r.last
	switch {
	case r.quiet:
		return
	case r.screen != nil:
		r.screen.show(p.block())
		return
	case r.json && passed >= eventSeconds:
		r.event("progress", of)
	case !r.json && (passed >= lineSeconds && (p.key == "" || p.key != r.key) || p.key != "" && (r.key == "" || passed >= idleSeconds)):
		fmt.Fprintln(r, p)
	default:
		return
	}
	r.last, r.key = p.seconds, p.key
}

// clear removes the live block.
func (r *reporter) clear() {
	if r.screen != nil {
		r.screen.show(nil)
	}
}

// ended reports the end of a run.
func (r *reporter) ended(s *summary) {
	switch {
	case r.json:
		event := "finished"
		if s.Status == exitStopped {
			event = "stopped"
		}
		r.event(event, struct {
			Summary *summary `json:"summary"`
		}{s})
	case !r.quiet:
		r.clear()
		_, _ = io.WriteString(r.out, s.text())
	}
}

// failed reports an error, unless it has been reported.
func (r *reporter) failed(err error) {
	if f := (*failure)(nil); err == nil || errors.As(err, &f) && f.err == nil {
		return
	}
	r.clear()
	if r.json {
		r.event("error", struct {
			Error  string `json:"error"`
			Status exit   `json:"status"`
		}{err.Error(), statusOf(err)})
	}
}

// event writes an event as JSON, with the fields of body in the same object.
func (r *reporter) event(event string, body any) {
	head, _ := json.Marshal(struct {
		Event string    `json:"event"` // started, joined, progress, handed, left, finished, stopped or error
		Time  time.Time `json:"time"`
	}{event, time.Now().UTC()})
	fields, _ := json.Marshal(body)
	fmt.Fprintf(r.out, "%s,%s\n", head[:len(head)-1], fields[1:])
}

// beginning is reported when a crawl begins or is resumed.
type beginning struct {
	where
	Resumed bool                `json:"resumed"`
	Ordered bool                `json:"ordered,omitempty"` // it was stopped or paused by an order
	Seeds   int                 `json:"seeds_added"`
	Retried int                 `json:"seeds_retried,omitempty"` // that could not be fetched before
	Pages   int64               `json:"pages"`                   // of earlier runs
	Set     blobschema.Settings `json:"settings"`
}

func (b *beginning) String() string {
	if !b.Resumed {
		s := fmt.Sprintf("crawl %s begins in %s with %s", b.Crawl, b.at, plural(b.Seeds, "URL"))
		if n := len(crawlfile.Rows(b.Set.Topics)); n > 0 {
			s += " and " + plural(n, "topic")
		}
		return s
	}
	s := fmt.Sprintf("%s goes on after %s", &b.where, plural(b.Pages, "page"))
	if b.Ordered {
		s += ", no longer stopped or paused"
	}
	if b.Seeds > 0 {
		s += fmt.Sprintf(", with %s more", plural(b.Seeds, "URL"))
	}
	if b.Retried > 0 {
		s += fmt.Sprintf(", and tries %s again", plural(b.Retried, "seed"))
	}
	for i, net := range b.Set.AllowNet {
		s += map[bool]string{true: "; it may connect to ", false: ", "}[i == 0] + net.String()
	}
	return s
}

// handed is reported when a request was left to the process that crawls, or to the next one.
type handed struct {
	where
	PID    int    `json:"pid,omitempty"` // of the process; 0 for the next one
	URLs   int    `json:"urls"`
	ID     string `json:"id"`
	Resume string `json:"resume,omitempty"` // the command that takes the request
}

func (h *handed) String() string {
	urls := plural(h.URLs, "URL")
	switch {
	case h.Resume != "":
		return fmt.Sprintf("%s in %s, for the next crawl: '%s'", urls, h.at, h.Resume)
	case h.PID > 0:
		return fmt.Sprintf("process %d, which crawls in %s, was given %s to ask for next; see 'orbweaver explain'", h.PID, h.at, urls)
	}
	return fmt.Sprintf("%s in the intake queue of %s; see 'orbweaver explain'", urls, h.at)
}

// departure is reported when a command leaves a crawl in a deployment to itself.
type departure struct {
	where
	Pages int64  `json:"pages"`
	Look  string `json:"look"` // the command that shows the progress
}

func (d *departure) String() string {
	return fmt.Sprintf("crawl %s goes on in %s; look again with '%s'", d.Crawl, d.at, d.Look)
}
