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
	"github.com/orbweaver/orbweaver/internal/platform"
)

// reporter tells what a crawl does. All its methods but Write are called by one
// goroutine at a time; progress several times a second.
type reporter interface {
	io.Writer // warnings, one line each
	started(*beginning)
	progress(*figures)
	handed(*handed)
	left(*departure)
	ended(*summary)
	failed(err error)

	joined(*joining) // of a worker
	works(*workFigures)
	went(*leaving)
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

func (h *handed) String() string {
	if h.Cloud != "" {
		return fmt.Sprintf("%s in the intake queue of %s; see 'orbweaver explain'", plural(int64(h.URLs), "URL"), platform.ShortName(h.Cloud))
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
	Pages   int64               `json:"pages"` // of earlier runs
	Set     blobschema.Settings `json:"settings"`
}

func (b *beginning) String() string {
	where := b.Data
	if b.Cloud != "" {
		where = platform.ShortName(b.Cloud)
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
	return s
}

// departure is told when a command leaves a crawl in a cloud to itself.
type departure struct {
	Crawl string `json:"crawl"`
	Cloud string `json:"platform"`
	Pages int64  `json:"pages"`
	Look  string `json:"look"` // the command that looks again
}

func (d *departure) String() string {
	return fmt.Sprintf("crawl %s goes on in %s; look again with '%s'", d.Crawl, platform.ShortName(d.Cloud), d.Look)
}

// newReporter chooses how to tell: as JSON on out, nothing, or for people, live where
// errOut is a terminal that can, in lines otherwise.
func newReporter(f *runFlags, out, errOut io.Writer) reporter {
	switch tty, live := terminal(errOut); {
	case f.json:
		return &events{Writer: errOut, enc: json.NewEncoder(out), quiet: f.quiet}
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
func (v *liveView) handed(h *handed)    { fmt.Fprintln(v.out, h) }
func (v *liveView) failed(error)        { v.show(nil) }

func (v *liveView) left(d *departure) {
	v.show(nil)
	fmt.Fprintln(v.out, d)
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
func (v *lineView) handed(h *handed)     { fmt.Fprintln(v.out, h) }
func (v *lineView) left(d *departure)    { fmt.Fprintln(v.out, d) }
func (v *lineView) failed(error)         {}
func (v *lineView) ended(s *summary)     { _, _ = io.WriteString(v.out, s.text()) }

func (v *lineView) progress(f *figures) {
	if f.Seconds-v.last >= lineSeconds {
		v.last = f.Seconds
		fmt.Fprintln(v, line(f))
	}
}

// silent tells nothing but warnings.
type silent struct{ io.Writer }

func (silent) started(*beginning) {}
func (silent) progress(*figures)  {}
func (silent) handed(*handed)     {}
func (silent) left(*departure)    {}
func (silent) ended(*summary)     {}
func (silent) failed(error)       {}

// events writes one JSON object a line.
type events struct {
	io.Writer
	enc   *json.Encoder
	quiet bool // no progress
	last  float64
}

// stamp begins every event.
type stamp struct {
	Event string    `json:"event"` // started, joined, progress, handed, left, finished, stopped or error
	Time  time.Time `json:"time"`
}

func stamped(event string) stamp { return stamp{event, time.Now().UTC()} }

func (v *events) started(b *beginning) {
	_ = v.enc.Encode(struct {
		stamp
		*beginning
	}{stamped("started"), b})
}

func (v *events) progress(f *figures) {
	if v.quiet || f.Seconds-v.last < 1 {
		return
	}
	v.last = f.Seconds
	_ = v.enc.Encode(struct {
		stamp
		*figures
	}{stamped("progress"), f})
}

func (v *events) handed(h *handed) {
	_ = v.enc.Encode(struct {
		stamp
		*handed
	}{stamped("handed"), h})
}

func (v *events) left(d *departure) {
	_ = v.enc.Encode(struct {
		stamp
		*departure
	}{stamped("left"), d})
}

func (v *events) ended(s *summary) {
	event := "finished"
	if s.Status == exitStopped {
		event = "stopped"
	}
	_ = v.enc.Encode(struct {
		stamp
		Summary *summary `json:"summary"`
	}{stamped(event), s})
}

func (v *events) failed(err error) {
	_ = v.enc.Encode(struct {
		stamp
		Error  string `json:"error"`
		Status exit   `json:"status"`
	}{stamped("error"), err.Error(), statusOf(err)})
}
