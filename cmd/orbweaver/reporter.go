package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/drivers"
)

// reporter tells what a crawl does. All its methods but Write are called by one
// goroutine at a time; progress several times a second.
type reporter interface {
	io.Writer // warnings, one line each
	started(*beginning)
	progress(*figures)
	told(news)
	ended(*summary)
	failed(err error)

	joined(*joining) // of a worker
	works(*workFigures)
}

// news is what is told at the end, where there is no summary.
type news interface {
	fmt.Stringer
	event() string // its name in JSON
}

// handed is told when a request was left to a process that crawls, or will.
type handed struct {
	Crawl  string `json:"crawl"`
	Data   string `json:"data,omitempty"`
	Cloud  string `json:"platform,omitempty"`
	PID    int    `json:"pid,omitempty"` // of the process; 0 for the next one
	URLs   int    `json:"urls"`
	ID     string `json:"id"`
	Resume string `json:"resume,omitempty"` // the command that takes the request
}

func (h *handed) event() string { return "handed" }

func (h *handed) String() string {
	if h.Cloud != "" {
		return fmt.Sprintf("%s in the intake queue of %s; see 'orbweaver explain'", plural(int64(h.URLs), "URL"), drivers.ShortName(h.Cloud))
	}
	if h.PID == 0 {
		return fmt.Sprintf("%s in %s, for the next crawl: '%s'", plural(int64(h.URLs), "URL"), h.Data, h.Resume)
	}
	return fmt.Sprintf("process %d, which crawls in %s, was given %s to ask for next; see 'orbweaver explain'", h.PID, h.Data, plural(int64(h.URLs), "URL"))
}

// beginning is what is told when a crawl begins or goes on.
type beginning struct {
	Crawl   string              `json:"crawl"`
	Data    string              `json:"data,omitempty"`
	Cloud   string              `json:"platform,omitempty"`
	Resumed bool                `json:"resumed"`
	Ordered bool                `json:"ordered,omitempty"` // it was stopped or paused by an order
	Seeds   int                 `json:"seeds_added"`
	Retried int                 `json:"seeds_retried,omitempty"` // that could not be fetched before
	Pages   int64               `json:"pages"`                   // of earlier runs
	Set     blobschema.Settings `json:"settings"`
}

func (b *beginning) String() string {
	where := b.Data
	if b.Cloud != "" {
		where = drivers.ShortName(b.Cloud)
	}
	if !b.Resumed {
		s := fmt.Sprintf("crawl %s begins in %s with %s", b.Crawl, where, plural(int64(b.Seeds), "URL"))
		if n := len(crawlfile.Rows(b.Set.Topics)); n > 0 {
			s += " and " + plural(int64(n), "topic")
		}
		return s
	}
	s := fmt.Sprintf("crawl %s in %s goes on after %s", b.Crawl, where, plural(b.Pages, "page"))
	if b.Ordered {
		s += ", no longer stopped or paused"
	}
	if b.Seeds > 0 {
		s += fmt.Sprintf(", with %s more", plural(int64(b.Seeds), "URL"))
	}
	if b.Retried > 0 {
		s += fmt.Sprintf(", and tries %s again", plural(int64(b.Retried), "seed"))
	}
	if nets := b.Set.AllowNet; len(nets) > 0 {
		s += "; it may connect to " + netList(nets)
	}
	return s
}

// departure is told when a command leaves a crawl in a cloud to itself.
type departure struct {
	Crawl string `json:"crawl"`
	Cloud string `json:"platform"`
	Pages int64  `json:"pages"`
	Look  string `json:"look"` // the command that looks again
}

func (d *departure) event() string { return "left" }

func (d *departure) String() string {
	return fmt.Sprintf("crawl %s goes on in %s; look again with '%s'", d.Crawl, drivers.ShortName(d.Cloud), d.Look)
}

// newReporter chooses how to tell: as JSON on out, nothing, or for people, live where
// errOut is a terminal that can, in lines otherwise.
func newReporter(f *runFlags, out, errOut io.Writer) reporter {
	switch tty, live := terminal(errOut); {
	case f.json:
		return &events{Writer: errOut, out: out, quiet: f.quiet}
	case f.quiet:
		return silent{errOut}
	case live:
		return &liveView{screen: screen{out: errOut, size: tty}, out: out}
	}
	return &lineView{Writer: errOut, out: out}
}

// terminal tells whether w is a terminal that understands the usual sequences.
func terminal(w io.Writer) (size func() (width, height int), ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, false
	}
	return func() (int, int) {
		width, height, err := term.GetSize(int(f.Fd()))
		if err != nil || width < 1 {
			return 80, 24
		}
		return width, height
	}, true
}

// liveView shows a block that keeps changing.
type liveView struct {
	screen
	out   io.Writer
	title string
}

func (v *liveView) started(b *beginning) {
	fmt.Fprintln(v, b)
	v.title = "orbweaver " + b.Crawl
}

func (v *liveView) progress(f *figures) { v.show(frame(v.title, f)) }
func (v *liveView) failed(error)        { v.show(nil) }

func (v *liveView) joined(j *joining)    { fmt.Fprintln(v, j) }
func (v *liveView) works(f *workFigures) { v.show(f.frame()) }

func (v *liveView) told(n news) {
	v.show(nil)
	fmt.Fprintln(v.out, n)
}

func (v *liveView) ended(s *summary) {
	v.show(nil)
	_, _ = io.WriteString(v.out, s.text())
}

// lineView writes a line every few seconds.
type lineView struct {
	io.Writer
	out   io.Writer
	last  float64
	pages int64 // of a worker, and its crawl's state, when told last
	state string
}

const lineSeconds = 5

func (v *lineView) started(b *beginning) { fmt.Fprintln(v, b) }
func (v *lineView) joined(j *joining)    { fmt.Fprintln(v, j) }
func (v *lineView) told(n news)          { fmt.Fprintln(v.out, n) }
func (v *lineView) failed(error)         {}
func (v *lineView) ended(s *summary)     { _, _ = io.WriteString(v.out, s.text()) }

func (v *lineView) progress(f *figures) {
	if f.Seconds-v.last >= lineSeconds {
		v.last = f.Seconds
		fmt.Fprintln(v, line(f))
	}
}

// workQuiet is how long a log has no line of a worker with nothing new to tell, in seconds.
const workQuiet = 60

func (v *lineView) works(f *workFigures) {
	news := f.Active > 0 || f.Pages != v.pages || f.State != v.state
	if passed := f.Seconds - v.last; passed >= lineSeconds && news || passed >= workQuiet || v.state == "" {
		v.last, v.pages, v.state = f.Seconds, f.Pages, f.State
		fmt.Fprintln(v, f)
	}
}

// silent tells nothing but warnings.
type silent struct{ io.Writer }

func (silent) started(*beginning) {}
func (silent) joined(*joining)    {}
func (silent) progress(*figures)  {}
func (silent) works(*workFigures) {}
func (silent) told(news)          {}
func (silent) ended(*summary)     {}
func (silent) failed(error)       {}

// events writes one JSON object a line.
type events struct {
	io.Writer
	out   io.Writer
	quiet bool // no progress
	last  float64
}

// tell writes an event, and the fields of body in the same object.
func (v *events) tell(event string, body any) {
	head, _ := json.Marshal(struct {
		Event string    `json:"event"` // started, joined, progress, handed, left, finished, stopped or error
		Time  time.Time `json:"time"`
	}{event, time.Now().UTC()})
	fields, _ := json.Marshal(body)
	fmt.Fprintf(v.out, "%s,%s\n", head[:len(head)-1], fields[1:])
}

func (v *events) started(b *beginning) { v.tell("started", b) }
func (v *events) joined(j *joining)    { v.tell("joined", j) }
func (v *events) progress(f *figures)  { v.now(f.Seconds, f) }
func (v *events) works(f *workFigures) { v.now(f.Seconds, f) }
func (v *events) told(n news)          { v.tell(n.event(), n) }

// now tells of progress, once a second.
func (v *events) now(seconds float64, figures any) {
	if !v.quiet && seconds-v.last >= 1 {
		v.last = seconds
		v.tell("progress", figures)
	}
}

func (v *events) ended(s *summary) {
	event := "finished"
	if s.Status == exitStopped {
		event = "stopped"
	}
	v.tell(event, struct {
		Summary *summary `json:"summary"`
	}{s})
}

func (v *events) failed(err error) {
	v.tell("error", struct {
		Error  string `json:"error"`
		Status exit   `json:"status"`
	}{err.Error(), statusOf(err)})
}
