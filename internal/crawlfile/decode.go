package crawlfile

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// document is a crawl file as YAML decodes it. All values are texts with their lines; [validator]
// parses them.
type document struct {
	Hosts     items[hostKeys]  `yaml:"hosts"`
	Seeds     items[seedKeys]  `yaml:"seeds"`
	SeedsFile texts            `yaml:"seeds-file"`
	Topics    items[topicKeys] `yaml:"topics"`
	Settings  map[string]texts `yaml:",inline"` // and unknown keys
}

type hostKeys struct {
	Host        text `yaml:"host"`
	Connections text `yaml:"connections"`
	Delay       text `yaml:"delay"`
}

type topicKeys struct {
	Name        text            `yaml:"name"`
	Priority    text            `yaml:"priority"`
	Slice       text            `yaml:"slice"`
	Minimum     text            `yaml:"minimum"`
	Granularity text            `yaml:"granularity"`
	Scope       texts           `yaml:"scope"`
	Include     texts           `yaml:"include"`
	Exclude     texts           `yaml:"exclude"`
	MaxDepth    texts           `yaml:"max-depth"`
	Words       texts           `yaml:"words"`
	Seeds       items[seedKeys] `yaml:"seeds"`
	SeedsFile   texts           `yaml:"seeds-file"`
}

// seedKeys is a seed. A bare URL is one too.
type seedKeys struct {
	URL      text `yaml:"url"`
	Priority text `yaml:"priority"`
}

// text is a single value; line is 0 if the file leaves it out.
type text struct {
	string
	line int
}

func (t *text) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return errors.New("there must be one value here, not a list or keys")
	}
	*t = text{n.Value, n.Line}
	return nil
}

// texts are the values of a list. A single value is a list too.
type texts struct {
	list []text
	line int
}

func (t *texts) UnmarshalYAML(n *yaml.Node) error {
	t.line = n.Line
	switch n.Kind {
	case yaml.SequenceNode:
		return n.Load(&t.list)
	case yaml.ScalarNode:
		t.list = []text{{n.Value, n.Line}}
		return nil
	}
	return errors.New("there must be a value or a list here, not keys")
}

func (t *texts) strings() (out []string) {
	for _, v := range t.list {
		out = append(out, v.string)
	}
	return out
}

// items are the members of a list with keys of their own.
type items[T any] struct{ list []item[T] }

type item[T any] struct {
	keys T
	line int
}

func (l *items[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Load(&l.list)
	}
	if n.Kind != yaml.ScalarNode {
		return errors.New("there must be a list here, not keys")
	}
	l.list = make([]item[T], 1)
	return l.list[0].UnmarshalYAML(n)
}

func (i *item[T]) UnmarshalYAML(n *yaml.Node) error {
	i.line = n.Line
	if s, ok := any(&i.keys).(*seedKeys); ok && n.Kind == yaml.ScalarNode {
		s.URL = text{n.Value, n.Line}
		return nil
	}
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("there must be keys here, such as %q", keysOf[T]()[0]+":")
	}
	return n.Load(&i.keys, strict)
}

// keys are the keys of a struct of the document, and how messages call it.
var keys = map[string]struct {
	of   string
	keys []string
}{
	"hostKeys":  {"a host", keysOf[hostKeys]()},
	"topicKeys": {"a topic", keysOf[topicKeys]()},
	"seedKeys":  {"a seed", keysOf[seedKeys]()},
}

// keysOf lists the keys of a struct.
func keysOf[T any]() (keys []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		if key := f.Tag.Get("yaml"); key != ",inline" {
			keys = append(keys, key)
		}
	}
	return keys
}

var unknownField = regexp.MustCompile(`^field (.*) not found in type crawlfile\.(\w+)$`)

// plain translates an error of the YAML decoder into the words of crawl files.
func plain(message string) string {
	if m := unknownField.FindStringSubmatch(message); m != nil {
		return unknown(keys[m[2]].of, m[1], keys[m[2]].keys)
	}
	return message
}

// unknown returns the problem of an unknown key, with the known keys.
func unknown(of, key string, keys []string) string {
	return fmt.Sprintf("%s has no key %.40q; its keys are %s", of, key, strings.Join(keys, ", "))
}

// topKeys are the keys at the top.
func topKeys() []string {
	keys := append(keysOf[document](), "host-ranks")
	for i := range Settings {
		if !Settings[i].NoKey {
			keys = append(keys, Settings[i].Name)
		}
	}
	slices.Sort(keys)
	return keys
}
