package crawlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// The keys of the members of lists.
var (
	hostKeys  = []string{"host", "connections", "delay"}
	seedKeys  = []string{"url", "priority"}
	topicKeys = []string{
		"name", "priority", "slice", "minimum", "granularity", "scope", "include", "exclude", "max-depth", "requisites",
		"words", "seeds", "seeds-file",
	}
)

// otherKeys are the keys at the top that are no settings.
var otherKeys = []string{"host-ranks", "hosts", "seeds", "seeds-file", "topics"}

// topKeys are the keys at the top.
func topKeys() []string {
	all := slices.Clone(otherKeys)
	for i := range Settings {
		if !Settings[i].NoKey {
			all = append(all, Settings[i].Name)
		}
	}
	slices.Sort(all)
	return all
}

// keys are the values of a mapping.
type keys map[string]*yaml.Node

// mapping returns the values of a mapping whose keys are known, and adds their lines to lines. It adds the keys of
// merged mappings. Unknown and repeated keys are problems. of names the mapping in messages.
func (v *validator) mapping(n *yaml.Node, of string, known []string, lines map[string]int) keys {
	if n.Kind != yaml.MappingNode {
		v.errorf(n.Line, "there must be keys here, such as %q", known[0]+":")
		return nil
	}
	out := keys{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		switch first := lines[key.Value]; {
		case key.ShortTag() == "!!merge":
			merged := []*yaml.Node{value}
			if value.Kind == yaml.SequenceNode {
				merged = v.list(value)
			}
			for _, m := range merged {
				for k, n := range v.mapping(m, of, known, map[string]int{}) {
					out[k] = cmp.Or(out[k], n)
				}
			}
		case first > 0:
			v.errorf(key.Line, "%s is given twice: see line %d", key.Value, first)
		case !slices.Contains(known, key.Value):
			v.errorf(key.Line, "%s", unknown(of, key.Value, known))
			lines[key.Value] = key.Line
		default:
			lines[key.Value], out[key.Value] = key.Line, value
		}
	}
	return out
}

// unknown returns the problem of an unknown key, with the known keys.
func unknown(of, key string, known []string) string {
	return fmt.Sprintf("%s has no key %.40q; its keys are %s", of, key, strings.Join(known, ", "))
}

// list returns the members of a list. A single value is a list too.
func (v *validator) list(n *yaml.Node) (members []*yaml.Node) {
	switch {
	case left(n):
		return nil
	case n.Kind == yaml.ScalarNode:
		return []*yaml.Node{n}
	case n.Kind == yaml.MappingNode:
		v.errorf(n.Line, "there must be a value or a list here, not keys")
		return nil
	}
	for _, m := range n.Content {
		members = append(members, resolve(m))
	}
	return members
}

// texts returns the values of a list.
func (v *validator) texts(n *yaml.Node) (texts []string) {
	for _, m := range v.list(n) {
		if v.single(m) {
			texts = append(texts, m.Value)
		}
	}
	return texts
}

// single reports whether a node is a single value, which is a problem if it is not.
func (v *validator) single(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		v.errorf(n.Line, "there must be one value here, not a list or keys")
	}
	return n.Kind == yaml.ScalarNode
}

// left reports whether the file leaves a value out.
func left(n *yaml.Node) bool { return n == nil || n.ShortTag() == "!!null" }

// resolve follows an alias to its node.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}
