package crawlfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// The keys that are read here.
var (
	topKeys   = []string{"hosts", "seeds", "seeds-file", "topics"}
	hostKeys  = []string{"host", "connections", "delay"}
	topicKeys = []string{"name", "priority", "slice", "minimum", "granularity", "scope", "include", "exclude", "max-depth", "words", "seeds", "seeds-file"}
	seedKeys  = []string{"url", "priority"}
)

// top reads the keys at the top.
func (d *decoder) top(n *yaml.Node) {
	keys := slices.Concat(topKeys, d.options.Names())
	var last func() // topics come last, for their seeds to come after those of the crawl
	d.each(n, "a crawl file", keys, func(key string, line int, v *yaml.Node) {
		d.file.lines[key] = line
		switch key {
		case "hosts":
			d.hosts(line, v)
		case "seeds":
			d.seeds(-1, line, v)
		case "seeds-file":
			d.seedsFile(-1, line, v)
		case "topics":
			last = func() { d.topics(line, v) }
		default:
			d.option(key, line, v)
		}
	})
	if last != nil {
		last()
	}
}

func (d *decoder) option(key string, line int, v *yaml.Node) {
	values, ok := d.texts(key, line, v)
	if !ok {
		if v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
			d.tell(line, "%s has an empty list", key)
		}
		return
	}
	if err := d.options.Set(key, values); err != nil {
		d.tell(line, "%s %.200q: %v", key, strings.Join(values, " "), err)
	}
}

// value tells an error of a key's value.
func (d *decoder) value(key, value string, line int, err error) bool {
	if err != nil {
		d.tell(line, "%s %.200q: %v", key, value, err)
	}
	return err == nil
}

func (d *decoder) hosts(line int, n *yaml.Node) {
	lines := map[string]int{}
	d.file.Hosts = []blobschema.HostRule{}
	for _, item := range d.items("hosts", line, n) {
		if len(d.file.Hosts) == maxHosts {
			d.tell(item.Line, "these are more than %d hosts", maxHosts)
			return
		}
		var r blobschema.HostRule
		wrong := len(d.problems)
		d.each(item, "a host", hostKeys, func(key string, line int, v *yaml.Node) {
			text, ok := d.scalar(key, line, v)
			if !ok {
				return
			}
			var err error
			switch key {
			case "host":
				r.Host, err = parseHost(text)
			case "connections":
				r.Connections, err = parseConnections(text)
			case "delay":
				delay, derr := parseDelay(text)
				r.Delay, err = &delay, derr
			}
			d.value(key, text, line, err)
		})
		switch {
		case len(d.problems) > wrong:
			continue
		case r.Host == "":
			d.tell(item.Line, "a rule for hosts must say for which: host")
			continue
		case r.Connections == 0 && r.Delay == nil:
			d.tell(item.Line, "the rule for host %s says nothing: give it connections, delay or both", r.Host)
		case lines[r.Host] > 0:
			d.tell(item.Line, "host %s has two rules: see line %d", r.Host, lines[r.Host])
		}
		lines[r.Host] = item.Line
		d.file.Hosts = append(d.file.Hosts, r)
	}
}

func (d *decoder) topics(line int, n *yaml.Node) {
	names := map[string]int{}
	for _, item := range d.items("topics", line, n) {
		if len(d.file.topics) == blobschema.MaxTopics {
			d.tell(item.Line, "these are more than %d topics", blobschema.MaxTopics)
			return
		}
		t := &topic{line: item.Line, at: map[string]int{}}
		d.file.topics = append(d.file.topics, t)
		wrong := len(d.problems)
		d.topic(t, item)
		switch {
		case t.Name == "" && len(d.problems) == wrong:
			d.tell(item.Line, "a topic must have a name")
		case t.Name != "" && names[t.Name] > 0:
			d.tell(item.Line, "topic %q is there twice: see line %d", t.Name, names[t.Name])
		case t.Name != "":
			names[t.Name] = item.Line
		}
		if t.seeds == 0 && len(d.problems) == wrong {
			d.tell(item.Line, "topic %q has no seeds", t.Name)
		}
	}
}

// topic reads a topic, which is the last of the file's.
func (d *decoder) topic(t *topic, n *yaml.Node) {
	number := len(d.file.topics) - 1
	var last []func() // seeds have the priority of the topic, wherever that is said
	d.each(n, "a topic", topicKeys, func(key string, line int, v *yaml.Node) {
		t.at[key] = line
		switch key {
		case "include", "exclude", "words":
			d.topicList(t, key, line, v)
		case "seeds":
			last = append(last, func() { d.seeds(number, line, v) })
		case "seeds-file":
			last = append(last, func() { d.seedsFile(number, line, v) })
		default:
			if text, ok := d.scalar(key, line, v); ok {
				d.value(key, text, line, t.set(key, text))
			}
		}
	})
	for _, f := range last {
		f()
	}
}

// set gives a key of a topic its value.
func (t *topic) set(key, text string) (err error) {
	switch key {
	case "name":
		t.Name, err = text, checkName(text)
	case "priority":
		t.Priority, err = ParsePriority(text)
	case "slice":
		t.Slice, err = ParseSlice(text)
	case "minimum":
		t.Minimum, t.Period, err = ParseMinimum(text)
	case "granularity":
		if text != "topic" && text != "url" {
			return fmt.Errorf("it must be topic or url")
		}
		t.ownPriorities = text == "url"
	case "scope":
		scope, serr := ParseScope(text)
		t.scope, err = &scope, serr
	case "max-depth":
		depth, derr := parseDepth(text)
		t.maxDepth, err = &depth, derr
	}
	return err
}

func checkName(s string) error {
	first, _ := utf8.DecodeRuneInString(s)
	fits := func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) || strings.ContainsRune("-_. ", r)
	}
	if len(s) > maxName || !unicode.IsLetter(first) && !unicode.IsDigit(first) || strings.ContainsFunc(s, func(r rune) bool { return !fits(r) }) || strings.HasSuffix(s, " ") {
		return fmt.Errorf(`it must begin with a letter or a digit, and have only these, "-", "_", "." and spaces; at most %d bytes`, maxName)
	}
	return nil
}

// topicList reads patterns or words.
func (d *decoder) topicList(t *topic, key string, line int, n *yaml.Node) {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 { // none, whatever the crawl has
		t.setList(key, []string{})
		return
	}
	texts, ok := d.texts(key, line, n)
	if !ok {
		return
	}
	most := maxPatterns
	if key == "words" {
		most = maxWords
	}
	if len(texts) > most {
		d.tell(line, "these are more than %d: %s", most, key)
		return
	}
	for i, text := range texts {
		var err error
		if key != "words" {
			err = checkPattern(text)
		} else if texts[i] = strings.ToLower(text); text == "" || len(text) > maxWord || strings.ContainsFunc(text, unicode.IsSpace) {
			err = fmt.Errorf("it must be one word, of at most %d bytes", maxWord)
		}
		if !d.value(key, text, line, err) {
			return
		}
	}
	t.setList(key, texts)
}

func (t *topic) setList(key string, texts []string) {
	switch key {
	case "include":
		t.include = &texts
	case "exclude":
		t.exclude = &texts
	case "words":
		t.Words = texts
	}
}

// seeds reads the list of seeds of a topic, or of none: -1.
func (d *decoder) seeds(topic, line int, n *yaml.Node) {
	for _, item := range d.items("seeds", line, n) {
		if d.budget < 0 || !d.room(item.Line) {
			return
		}
		s := seed{topic: topic, line: item.Line, at: item.Line}
		if topic >= 0 {
			s.priority = d.file.topics[topic].Priority
		}
		if item.Kind == yaml.ScalarNode {
			if text, ok := d.scalar("a seed", item.Line, item); ok {
				d.seed(s, text)
			}
			continue
		}
		text, wrong := "", len(d.problems)
		d.each(item, "a seed", seedKeys, func(key string, line int, v *yaml.Node) {
			value, ok := d.scalar(key, line, v)
			switch {
			case !ok:
			case key == "url":
				text = value
			case topic < 0 || !d.file.topics[topic].ownPriorities:
				d.tell(line, "seeds have priorities of their own only in a topic with granularity: url")
			default:
				var err error
				s.priority, err = ParsePriority(value)
				d.value(key, value, line, err)
			}
		})
		if len(d.problems) == wrong {
			d.seed(s, text)
		}
	}
}

// room reports whether another seed is allowed.
func (d *decoder) room(line int) bool {
	if len(d.file.seeds) >= maxSeeds {
		d.tell(line, "these are more than %d seeds", maxSeeds)
		return false
	}
	return len(d.problems) <= maxProblems
}

// seed takes a seed.
func (d *decoder) seed(s seed, raw string) {
	tell := func(format string, args ...any) {
		p := Problem{File: d.file.Name, Line: s.line, Text: fmt.Sprintf(format, args...), at: s.at}
		if s.file != "" {
			p.File = s.file
		}
		d.problems = append(d.problems, p)
	}
	if s.topic >= 0 {
		d.file.topics[s.topic].seeds++ // one that is wrong is one
	}
	u, err := weburl.Parse(raw)
	if err != nil {
		tell("seed %.200q: %v%s", raw, err, Suggestion(raw))
		return
	}
	s.url = u
	if i, ok := d.known[u]; ok {
		switch o := &d.file.seeds[i]; {
		case o.topic != s.topic:
			tell("seed %s is of %s already: see %s", u, d.file.called(o.topic), d.file.place(o))
		case o.priority != s.priority:
			tell("seed %s has priority %d already: see %s", u, o.priority, d.file.place(o))
		}
		return
	}
	d.known[u] = len(d.file.seeds)
	d.file.seeds = append(d.file.seeds, s)
}

// called names a topic by its index.
func (f *File) called(topic int) string {
	if topic < 0 {
		return "no topic"
	}
	return fmt.Sprintf("topic %q", f.topics[topic].Name)
}

// place says where a seed is.
func (f *File) place(s *seed) string {
	if s.file != "" {
		return fmt.Sprintf("%s:%d", s.file, s.line)
	}
	return fmt.Sprintf("line %d", s.line)
}

// seedsFile reads lists of seeds from files.
func (d *decoder) seedsFile(topic, line int, n *yaml.Node) {
	names, ok := d.texts("seeds-file", line, n)
	if !ok {
		return
	}
	for _, name := range names {
		if d.open == nil {
			d.tell(line, "seeds-file %q: no other files are read here", name)
			return
		}
		f, err := d.open(name)
		if err != nil {
			d.tell(line, "seeds-file %q: %v", name, err)
			continue
		}
		s, some := seed{topic: topic, file: name, at: line}, false
		if topic >= 0 {
			s.priority = d.file.topics[topic].Priority
		}
		err = ReadList(f, func(n int, raw string) bool {
			s.line, some = n, true
			if !d.room(line) {
				return false
			}
			d.seed(s, raw)
			return true
		})
		_ = f.Close() // nothing was written
		switch {
		case err != nil:
			d.tell(line, "seeds-file %q: %v", name, err)
		case !some:
			d.tell(line, "seeds-file %q: it holds no URL; it should have one a line", name)
		}
	}
}

// maxListLine is how many bytes of a line of a list are read: more than any URL has.
const maxListLine = 64 << 10

// ReadList reads a list of URLs, one a line, with comments after #, and calls add with each
// and its line until that returns false. The list is in UTF-8, or in what its byte order mark says.
func ReadList(r io.Reader, add func(line int, url string) bool) error {
	lines := bufio.NewReaderSize(transform.NewReader(r, utf.BOMOverride(transform.Nop)), maxListLine)
	for n := 1; ; n++ {
		b, long, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := strings.TrimSpace(string(b))
		for long && err == nil { // an error comes again with the next line
			_, long, err = lines.ReadLine()
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, _, _ := strings.Cut(line, " #") // no URL holds a space
		if !add(n, raw) {
			return nil
		}
	}
}

// Suggestion guesses what was meant by a URL without a scheme; "" for no idea.
func Suggestion(raw string) string {
	if strings.Contains(raw, "://") {
		return ""
	}
	u, err := weburl.Parse("https://" + raw)
	if err != nil || !strings.Contains(u.Host().Name(), ".") {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s ?)", u)
}
