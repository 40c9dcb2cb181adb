// Package crawlfile reads crawl files: YAML that says what a crawl begins with, and how it
// goes on. docs/crawl-file.md lists the keys.
//
// A file has keys of three kinds. Those of the crawl as a whole are taken by an [Options],
// which is the command line's flags: a key accepts what the flag of the same name does. The
// others are read here: hosts, seeds, and topics, each with its scope, its share and its
// seeds. [Parse] tells all that is wrong with a file at once, each with its line; then
// [File.Join] makes rows of [blobschema.Settings] and seeds of it, for a new crawl or for one
// that has topics already.
//
// Files are trusted no more than other input: their size, the number of nodes that aliases
// make of them, of topics and of seeds are bounded, whatever they hold. Nothing is read but
// lists of seeds that the file names, by a function of the caller.
package crawlfile

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Bounds of a file.
const (
	MaxBytes    = 1 << 20
	maxSeeds    = 1_000_000 // with those of lists
	maxNodes    = 1 << 20   // looked at, aliases followed
	maxProblems = 100       // told
	maxHosts    = 1000      // rules
	maxPatterns = 1000      // of one list
	maxWords    = 1000
	maxWord     = 100 // bytes
	maxName     = 64
	// maxRecord is how many bytes topics and hosts may take, as JSON: they are in the crawl's
	// record, which some tables bound by 400 KB, and which names the batches of seeds too.
	maxRecord = 200 << 10
)

// Options takes the keys of a crawl as a whole.
type Options interface {
	// Names are the keys that there are, sorted.
	Names() []string
	// Set gives a key its values: one, or those of a list in its order. The error says what
	// they must be, in words that follow `key "value": `.
	Set(name string, values []string) error
	// Done returns what new crawls have, and says what is wrong with keys that only shows
	// now that all are known, in words such as those of Set.
	Done() (set blobschema.Settings, wrong map[string]error)
}

// Problem is one thing that is wrong with a file.
type Problem struct {
	File string // as it was named
	Line int    // 0 where there is none
	Text string
	at   int // where it is told: the line in the crawl file
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems are what is wrong with a file, in the order of its lines. As an error it has a
// line for each.
type Problems []Problem

func (p Problems) Error() string {
	var b strings.Builder
	for i := range p {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == maxProblems {
			b.WriteString("and perhaps more")
			break
		}
		b.WriteString(p[i].String())
	}
	return b.String()
}

// Err is nil if there are none; else all of them, sorted.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Line, b.Line)) })
	return p
}

// File is a crawl file that was read.
type File struct {
	Name  string
	Hosts []blobschema.HostRule // nil if it says nothing of hosts

	lines  map[string]int // of the keys at the top
	topics []*topic
	seeds  []seed
}

// Line is the line of a key at the top; 0 if it is not there.
func (f *File) Line(key string) int { return f.lines[key] }

// Problem is something that is wrong with a key at the top.
func (f *File) Problem(key, text string) Problem {
	line := f.lines[key]
	return Problem{File: f.Name, Line: line, Text: text, at: line}
}

// topic is one of the file's, and what it says of itself. What it does not say is nil.
type topic struct {
	blobschema.Topic // but for what is below
	line             int
	at               map[string]int // lines of its keys
	ownPriorities    bool           // granularity: url
	scope            *blobschema.Scope
	maxDepth         *int
	include, exclude *[]string
	seeds            int // it has
}

// seed is a URL to begin with.
type seed struct {
	url      weburl.URL
	topic    int // index of its topic, -1 for none
	priority int
	file     string // "" for the crawl file
	line, at int
}

// Parse reads a file. name is what it is called in problems; open opens a list of seeds that
// the file names. If anything is wrong the error is a [Problems].
func Parse(name string, data []byte, o Options, open func(file string) (io.ReadCloser, error)) (*File, error) {
	d := &decoder{file: &File{Name: name, lines: map[string]int{}}, options: o, open: open, budget: maxNodes, known: map[weburl.URL]int{}}
	if root := d.root(data); root != nil {
		d.top(root)
	}
	set, wrong := o.Done()
	for key, err := range wrong {
		d.problems = append(d.problems, d.file.Problem(key, fmt.Sprintf("%s: %v", key, err)))
	}
	if _, _, problems := d.file.Join(&set); len(d.problems) < maxProblems {
		d.problems = append(d.problems, problems...)
	}
	return d.file, d.problems.Err()
}

// root is what the only document of the file holds.
func (d *decoder) root(data []byte) *yaml.Node {
	if len(data) > MaxBytes {
		d.tell(0, "the file is longer than %d bytes; long lists of seeds have a file of their own: seeds-file", MaxBytes)
		return nil
	}
	var doc yaml.Node
	if err := yaml.Load(data, &doc); err != nil {
		line, text := syntax(data, err)
		d.tell(line, "%s", text)
		return nil
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		d.tell(0, "there is nothing in the file")
		return nil
	}
	return doc.Content[0]
}

// syntax is what the parser says of text that is no YAML.
func syntax(data []byte, err error) (line int, text string) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return 0, err.Error()
	}
	line, text = e.Mark.Line, strings.TrimPrefix(e.Message, "yaml: ")
	switch {
	case strings.HasPrefix(text, "no documents"):
		return 0, "there is nothing in the file"
	case strings.Contains(text, "found multiple"):
		return 0, `there is more than one document: leave out the line "---"`
	case strings.HasPrefix(text, "found character that cannot start any token") && line > 0 && tabbed(data, line):
		return line, "lines are indented by spaces, not by tabs"
	}
	if e.ContextMsg != "" {
		text += " " + e.ContextMsg
	}
	return line, "this is not YAML: " + text
}

// tabbed reports whether a line begins with a tab, spaces apart.
func tabbed(data []byte, line int) bool {
	n := 0
	for l := range bytes.Lines(data) {
		if n++; n == line {
			return bytes.HasPrefix(bytes.TrimLeft(l, " "), []byte("\t"))
		}
	}
	return false
}
