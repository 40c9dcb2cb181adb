// Package crawlfile reads crawl files: YAML that describes a crawl. docs/crawl-file.md lists the keys.
//
// [Settings] is the table of the settings of a crawl as a whole; the flags of 'orbweaver crawl' and
// the crawl's record derive from it too. The other keys are hosts, seeds and topics, each with its
// scope, its share and its seeds. [Parse] decodes a file into nodes of YAML and validates their keys and
// values; it reports all problems together, each with its line. Then [File.Join] makes the topics and seeds of
// a new crawl, or of one that has topics already.
//
// Files are input that may be hostile. Their size, the number of their values with aliases expanded, and the
// numbers of topics and seeds are bounded. Parse opens only the lists of seeds that the file names, through a
// function of the caller.
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
	maxSeeds    = 1_000_000 // including those of lists
	maxNodes    = 1 << 20   // values, with aliases expanded
	maxNesting  = 20        // of values, with aliases expanded; the keys need 6
	maxProblems = 100       // reported
	maxWord     = 100       // bytes
	maxName     = 64        // bytes
	// maxRecord bounds the bytes of topics and hosts as JSON. They are in the crawl's record, which
	// some tables limit to 400 KB and which also names the batches of seeds.
	maxRecord = 200 << 10
)

// Problem is one error in a file.
type Problem struct {
	File string // as the user named it
	Line int    // 0 for none
	Text string
	at   int // line in the crawl file by which problems are sorted
}

func (p Problem) String() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// Problems are the errors in a file. As an error they have one line each.
type Problems []Problem

func (p Problems) Error() string {
	var lines []string
	for _, one := range p[:min(len(p), maxProblems)] {
		lines = append(lines, one.String())
	}
	if len(p) > maxProblems {
		lines = append(lines, "and perhaps more")
	}
	return strings.Join(lines, "\n")
}

// Err is nil if there are no problems; otherwise all of them, sorted by line.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b Problem) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.Line, b.Line)) })
	return p
}

// File is a crawl file.
type File struct {
	Name      string
	HostRanks string                // path of the file with ranks of hosts
	Values    map[string][]string   // of settings, by name
	Hosts     []blobschema.HostRule // nil if the file has no key hosts

	lines  map[string]int // of the keys at the top
	topics []*topic
	seeds  []seed
}

// Problem is a problem with a key at the top.
func (f *File) Problem(key, text string) Problem {
	line := f.lines[key]
	return Problem{File: f.Name, Line: line, Text: text, at: line}
}

// topic is a topic of the file.
type topic struct {
	blobschema.Topic // without the settings
	line             int
	settings         map[string][]string // settings that differ from the crawl's
	lines            map[string]int      // line of each setting
	ownPriorities    bool                // granularity: url
	seeds            int                 // number of its seeds
}

// seed is a URL to start from.
type seed struct {
	url      weburl.URL
	topic    int // index of its topic, -1 for none
	priority int
	file     string // "" for the crawl file
	line, at int
}

// Opener opens a list of seeds that a file names.
type Opener func(file string) (io.ReadCloser, error)

// Parse reads a file and applies its settings to a record, except those that are given on the command
// line. name is the file's name in problems; open opens a list of seeds. If anything is
// wrong the error is a [Problems].
func Parse(name string, data []byte, c *blobschema.Crawl, given func(setting string) bool, open Opener) (*File, error) {
	v := &validator{
		file:   &File{Name: name, Values: map[string][]string{}, lines: map[string]int{}},
		record: c, given: given, open: open, known: map[weburl.URL]int{}, budget: maxNodes,
	}
	if top := v.decode(data); top != nil {
		v.document(top)
	}
	if _, _, problems := v.file.Join(&c.Settings); len(v.problems) < maxProblems {
		v.problems = append(v.problems, problems...)
	}
	return v.file, v.problems.Err()
}

// decode returns the keys at the top of the only document of a file; nil if it has none.
func (v *validator) decode(data []byte) keys {
	if len(data) > MaxBytes {
		v.errorf(0, "the file is longer than %d bytes; long lists of seeds have a file of their own: seeds-file", MaxBytes)
		return nil
	}
	var root yaml.Node
	if err := yaml.Load(data, &root); err != nil {
		line, text := syntax(data, err)
		v.errorf(line, "%s", text)
		return nil
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		v.errorf(root.Line, "a crawl file must have keys, such as \"seeds:\"")
		return nil
	}
	if !v.fits(&root, maxNesting) {
		return nil
	}
	return v.mapping(root.Content[0], "a crawl file", topKeys(), v.file.lines)
}

// fits counts the values below a node, with aliases expanded. It returns false if there are too many.
func (v *validator) fits(n *yaml.Node, levels int) bool {
	if v.budget--; v.budget < 0 || levels == 0 {
		v.errorf(n.Line, "more than %d values or %d levels, with aliases expanded", maxNodes, maxNesting)
		return false
	}
	for _, c := range resolve(n).Content {
		if !v.fits(c, levels-1) {
			return false
		}
	}
	return true
}

// syntax returns why text is not YAML, and where.
func syntax(data []byte, err error) (line int, text string) {
	var e *yaml.LoadError
	if !errors.As(err, &e) {
		return 0, err.Error()
	}
	line, text = e.Mark.Line, strings.TrimPrefix(e.Message, "yaml: ")
	switch {
	case strings.HasPrefix(text, "no documents"):
		return 0, "the file is empty"
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

// tabbed reports whether a line begins with a tab, after spaces.
func tabbed(data []byte, line int) bool {
	n := 0
	for l := range bytes.Lines(data) {
		if n++; n == line {
			return bytes.HasPrefix(bytes.TrimLeft(l, " "), []byte("\t"))
		}
	}
	return false
}
