package crawlfile

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// decoder walks the nodes of a file. It goes as deep as the keys do, whatever the file.
type decoder struct {
	file     *File
	options  Options
	open     func(string) (io.ReadCloser, error)
	problems Problems
	budget   int                // nodes that may still be looked at
	known    map[weburl.URL]int // seeds, by their index in the file's
}

func (d *decoder) tell(line int, format string, args ...any) {
	if len(d.problems) <= maxProblems {
		d.problems = append(d.problems, Problem{File: d.file.Name, Line: line, Text: fmt.Sprintf(format, args...), at: line})
	}
}

// follow is the node that an alias stands for. It is nil, once told, when too many were
// looked at: aliases of aliases multiply.
func (d *decoder) follow(n *yaml.Node) *yaml.Node {
	if d.budget--; d.budget < 0 {
		if d.budget == -1 {
			d.tell(n.Line, "there is too much of this: more than %d values, aliases followed", maxNodes)
		}
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return n.Alias // of an alias there is none
	}
	return n
}

// what names the kind of a node.
func what(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	return fmt.Sprintf("%.40q", n.Value)
}

// each calls f with the keys of a mapping, and the lines that they are in. Keys that are
// unknown or there twice are told.
func (d *decoder) each(n *yaml.Node, of string, keys []string, f func(key string, line int, v *yaml.Node)) {
	if n = d.follow(n); n == nil {
		return
	}
	if n.Kind != yaml.MappingNode {
		d.tell(n.Line, "%s must have keys, such as %q, but here is %s", of, keys[0]+":", what(n))
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content) && d.budget >= 0; i += 2 {
		line := n.Content[i].Line
		k, v := d.follow(n.Content[i]), d.follow(n.Content[i+1])
		switch {
		case k == nil || v == nil:
		case k.Kind != yaml.ScalarNode:
			d.tell(line, "a key of %s must be a word, but here is %s", of, what(k))
		case k.ShortTag() == "!!merge":
			d.tell(line, "keys are not merged here (<<); what a topic does not say is as the crawl says, and a list can be an alias")
		case lines[k.Value] > 0:
			d.tell(line, "%s is said twice: in line %d already", k.Value, lines[k.Value])
		case !slices.Contains(keys, k.Value):
			d.tell(line, "%s has no key %.40q%s", of, k.Value, nearest(k.Value, keys))
		default:
			lines[k.Value] = line
			f(k.Value, line, v)
		}
	}
}

// scalar is the text of a single value.
func (d *decoder) scalar(key string, line int, n *yaml.Node) (text string, ok bool) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.tell(line, "%s must have one value, but here is %s", key, what(n))
		return "", false
	}
	return n.Value, true
}

// items are those of a list. A single value is a list too.
func (d *decoder) items(key string, line int, n *yaml.Node) (items []*yaml.Node) {
	switch {
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			if item = d.follow(item); item == nil {
				return nil
			}
			items = append(items, item)
		}
		return items
	case n.Kind == yaml.ScalarNode && n.ShortTag() != "!!null":
		return []*yaml.Node{n}
	}
	d.tell(line, "%s must be a list, but here is %s", key, what(n))
	return nil
}

// texts are the values of a list of single ones.
func (d *decoder) texts(key string, line int, n *yaml.Node) (texts []string, ok bool) {
	ok = true
	for _, item := range d.items(key, line, n) {
		text, fine := d.scalar(key, item.Line, item)
		texts, ok = append(texts, text), ok && fine
	}
	return texts, ok && len(texts) > 0
}

// nearest suggests a key for one that is unknown.
func nearest(word string, keys []string) string {
	best, least := "", 2+min(len(word), 12)/4
	if len(word) <= 40 {
		for _, k := range keys {
			if n := distance(strings.ToLower(strings.ReplaceAll(word, "_", "-")), k); n < least {
				best, least = k, n
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", best)
}

// distance is how many bytes must be inserted, deleted or changed to make one word of
// another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
