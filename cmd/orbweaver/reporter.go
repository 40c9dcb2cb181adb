package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
)

// reporter reports the progress and the results of a command: as JSON, on a terminal or in lines, or
// warnings only. One goroutine at a time calls its methods, except Write.
type reporter struct {
	io.Writer           // takes warnings, one line each
	out       io.Writer // takes results
	json      bool
	quiet     bool
	answers   answers
	screen    *screen // nil without a terminal
	last      float64 // seconds when progress was reported last
	key       string  // of that progress
}

func newReporter(f *reportFlags, out, errOut io.Writer) *reporter {
	r := &reporter{Writer: errOut, out: out, json: f.json, quiet: f.quiet, answers: answers{verbose: f.verbose && (f.json || !f.quiet)}}
	if s := newScreen(errOut); s != nil && !f.json && !f.quiet {
		r.Writer, r.screen = s, s
	}
	return r
}

// reporting returns the command of a name, whose run reports with a reporter.
func reporting(name string, args cobra.PositionalArgs, f *reportFlags,
	run func(cmd *cobra.Command, rep *reporter, args []string) error,
) *cobra.Command {
	cmd := command(name, args, func(cmd *cobra.Command, args []string) error {
		rep := newReporter(f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		err := run(cmd, rep, args)
		rep.failed(err)
		return err
	})
	cmd.Flags().SortFlags = false
	return cmd
}

// reportFlags choose how to report.
type reportFlags struct{ json, quiet, verbose bool }

func (f *reportFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.json, "json", false, "report events as JSON, one object a line")
	fs.BoolVar(&f.quiet, "quiet", false, "report only warnings and errors")
	fs.BoolVar(&f.verbose, "verbose", false, "report each URL with its status, bytes and time, or why it is refused")
}

// begun reports that something begins, by the template that has the name of the event.
func (r *reporter) begun(event string, what any) { r.say(r, event, event, what) }

// told reports a result with a template, or as an event.
func (r *reporter) told(event, template string, what any) { r.say(r.out, event, template, what) }

func (r *reporter) say(w io.Writer, event, template string, what any) {
	switch {
	case r.json:
		r.event(event, what)
	case !r.quiet:
		if r.screen != nil {
			r.screen.show(nil)
		}
		_, _ = io.WriteString(w, text(template, what)) // a terminal that is gone is no reason to stop
	}
}

// shown is the progress of something. Its JSON has the figures.
type shown interface {
	// progress returns the names of two templates, one for a block of lines and one for a line, the
	// seconds since the beginning, and a key; another line is written when the key has changed, or if it is "".
	progress() (block, line string, seconds float64, key string)
}

// Least times between two lines of progress, in seconds.
const (
	eventSeconds = 1
	lineSeconds  = 5
	idleSeconds  = 60 // without news
)

// progress reports the progress of something. Call it several times a second.
func (r *reporter) progress(of shown) {
	block, line, seconds, key := of.progress()
	passed := seconds - r.last
	switch {
	case r.quiet:
		return
	case r.screen != nil:
		r.screen.show(strings.Split(strings.TrimSuffix(text(block, of), "\n"), "\n"))
		return
	case r.json && passed >= eventSeconds:
		r.event("progress", of)
	case !r.json && (passed >= lineSeconds && (key == "" || key != r.key) || key != "" && (r.key == "" || passed >= idleSeconds)):
		_, _ = io.WriteString(r, text(line, of))
	default:
		return
	}
	r.last, r.key = seconds, key
}

// urls reports what became of each URL since the last call, if --verbose is given, and adds the last ones to the live view.
func (r *reporter) urls(to *pulse) {
	all := r.answers.take(to)
	var b strings.Builder
	for i := range all {
		if r.json {
			r.event("url", &all[i])
		} else {
			b.WriteString(all[i].String() + "\n")
		}
	}
	if b.Len() > 0 {
		_, _ = io.WriteString(r, b.String())
	}
}

// ended reports the end of a run.
func (r *reporter) ended(s *summary) {
	event := "finished"
	if s.Status == exitStopped {
		event = "stopped"
	}
	if r.json {
		r.event(event, map[string]*summary{"summary": s})
		return
	}
	r.told(event, "summary", s)
}

// failed reports an error, unless it has been reported.
func (r *reporter) failed(err error) {
	if f := (*failure)(nil); err == nil || errors.As(err, &f) && f.err == nil {
		return
	}
	if r.screen != nil {
		r.screen.show(nil)
	}
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
		Event string    `json:"event"` // started, joined, progress, url, handed, left, finished, stopped or error
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
	Retried int                 `json:"seeds_retried,omitempty"`          // seeds that failed before
	Pages   int64               `json:"pages"`                            // of earlier runs
	Frozen  int64               `json:"pages_without_revisits,omitempty"` // fetched before --recrawl was given
	Set     blobschema.Settings `json:"settings"`
}

// Topics counts the topics of the crawl.
func (b *beginning) Topics() int { return len(crawlfile.Rows(b.Set.Topics)) }

// handed is reported when a request was left to the process that crawls, or to the next one.
type handed struct {
	where
	PID    int    `json:"pid,omitempty"` // of the process; 0 for the next one
	URLs   int    `json:"urls"`
	ID     string `json:"id"`
	Resume string `json:"resume,omitempty"` // the command that takes the request
}

// departure is reported when a command leaves a crawl in a deployment to itself.
type departure struct {
	where
	Pages    int64  `json:"pages"`
	Progress string `json:"progress"` // the command that shows the progress
}
