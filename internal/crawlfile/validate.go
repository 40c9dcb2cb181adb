package crawlfile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// validator converts a document into a [File].
type validator struct {
	file     *File
	record   *blobschema.Crawl
	given    func(setting string) bool // on the command line
	open     Opener
	known    map[weburl.URL]int // seeds, by their index in the file's
	problems Problems
	budget   int // number of values that may still be read
}

func (v *validator) errorf(line int, format string, args ...any) {
	if len(v.problems) <= maxProblems {
		v.problems = append(v.problems, Problem{File: v.file.Name, Line: line, Text: fmt.Sprintf(format, args...), at: line})
	}
}

// parse parses a value, unless the file leaves it out.
func parse[T any](v *validator, key string, n *yaml.Node, to *T, f func(string) (T, error)) {
	if left(n) || !v.single(n) {
		return
	}
	got, err := f(n.Value)
	if err != nil {
		v.errorf(n.Line, "%s %.200q: %v", key, n.Value, err)
		return
	}
	*to = got
}

func (v *validator) document(top keys) {
	v.settings(top)
	v.hosts(top["hosts"])
	v.seeds(-1, 0, top["seeds"])
	v.seedsFile(-1, 0, top["seeds-file"])
	topics := v.list(top["topics"])
	if len(topics) > blobschema.MaxTopics {
		v.errorf(topics[blobschema.MaxTopics].Line, "more than %d topics", blobschema.MaxTopics)
		return
	}
	lines := map[string]int{}
	for _, n := range topics {
		v.topic(n, lines)
	}
}

// settings applies the keys of the crawl as a whole.
func (v *validator) settings(top keys) {
	for _, key := range slices.Sorted(maps.Keys(top)) {
		if key != "host-ranks" && slices.Contains(otherKeys, key) {
			continue
		}
		record := v.record
		if v.given(key) {
			record = &blobschema.Crawl{} // only checked
		}
		values := v.set(record, key, top[key])
		if len(values) == 0 {
			v.errorf(v.file.lines[key], "%s has no value", key)
			continue
		}
		v.file.Values[key] = values
		if key == "host-ranks" { // the command line reads that file
			v.file.HostRanks = values[0]
		}
	}
	if name, err := Check(v.record); err != nil && v.file.lines[name] > 0 && len(v.problems) == 0 {
		v.problems = append(v.problems, v.file.Problem(name, fmt.Sprintf("%s: %v", name, err)))
	}
}

// set gives a setting of a record its values, and returns them.
func (v *validator) set(record *blobschema.Crawl, key string, n *yaml.Node) (values []string) {
	values = v.texts(n)
	if s := Find(key); s != nil {
		if err := s.Replace(record, values); err != nil {
			v.errorf(n.Line, "%s %.200q: %v", key, strings.Join(values, " "), err)
		}
	}
	return values
}

func (v *validator) hosts(hosts *yaml.Node) {
	if v.file.lines["hosts"] == 0 {
		return
	}
	v.file.Hosts = []blobschema.HostRule{}
	lines := map[string]int{}
	for _, n := range v.list(hosts) {
		wrong, line := len(v.problems), n.Line
		k := v.mapping(n, "a host", hostKeys, map[string]int{})
		var r blobschema.HostRule
		parse(v, "host", k["host"], &r.Host, parseHost)
		parse(v, "connections", k["connections"], &r.Connections, parseConnections)
		parse(v, "delay", k["delay"], &r.Delay, func(s string) (*time.Duration, error) {
			d, err := parseDelay(s)
			return &d, err
		})
		switch {
		case len(v.problems) > wrong:
		case r.Host == "":
			v.errorf(line, `a host rule must have the key "host"`)
		case r.Connections == 0 && r.Delay == nil:
			v.errorf(line, "the rule for host %s is empty: give connections, delay or both", r.Host)
		case lines[r.Host] > 0:
			v.errorf(line, "host %s has two rules: see line %d", r.Host, lines[r.Host])
		default:
			lines[r.Host] = line
			v.file.Hosts = append(v.file.Hosts, r)
		}
	}
	if !v.given("host-rule") {
		v.record.Settings.Hosts = v.file.Hosts
	}
}

// topic adds a topic; lines has the lines of the names so far.
func (v *validator) topic(n *yaml.Node, lines map[string]int) {
	t := &topic{line: n.Line, settings: map[string][]string{}, lines: map[string]int{}}
	number := len(v.file.topics)
	v.file.topics = append(v.file.topics, t)
	wrong := len(v.problems)
	k := v.mapping(n, "a topic", topicKeys, map[string]int{})
	parse(v, "name", k["name"], &t.Name, checkName)
	parse(v, "priority", k["priority"], &t.Priority, ParsePriority)
	parse(v, "slice", k["slice"], &t.Slice, ParseSlice)
	parse(v, "granularity", k["granularity"], &t.ownPriorities, func(s string) (bool, error) {
		if s != "topic" && s != "url" {
			return false, errors.New("it must be topic or url")
		}
		return s == "url", nil
	})
	parse(v, "minimum", k["minimum"], &t.Minimum, func(s string) (n int64, err error) {
		n, t.Period, err = ParseMinimum(s)
		return n, err
	})
	for _, key := range ofTopics {
		if n := k[key]; !left(n) {
			t.settings[key], t.lines[key] = v.set(&blobschema.Crawl{}, key, n), n.Line
		}
	}
	for _, n := range v.list(k["words"]) {
		var w string
		if parse(v, "words", n, &w, checkWord); w != "" {
			t.Words = append(t.Words, w)
		}
	}
	v.seeds(number, t.Priority, k["seeds"])
	v.seedsFile(number, t.Priority, k["seeds-file"])
	switch {
	case t.Name == "" && len(v.problems) == wrong:
		v.errorf(n.Line, "a topic must have a name")
	case t.Name != "" && lines[t.Name] > 0:
		v.errorf(n.Line, "topic %q is given twice: see line %d", t.Name, lines[t.Name])
	case t.Name != "":
		lines[t.Name] = n.Line
	}
	if t.seeds == 0 && len(v.problems) == wrong {
		v.errorf(n.Line, "topic %q has no seeds", t.Name)
	}
}

func checkName(s string) (string, error) {
	first, _ := utf8.DecodeRuneInString(s)
	misfit := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_. ", r)
	}
	begins := unicode.IsLetter(first) || unicode.IsDigit(first)
	if len(s) > maxName || !begins || strings.ContainsFunc(s, misfit) || strings.HasSuffix(s, " ") {
		return "", fmt.Errorf(`it must begin with a letter or a digit, and have only these, "-", "_", "." and spaces; at most %d bytes`, maxName)
	}
	return s, nil
}

func checkWord(s string) (string, error) {
	if s == "" || len(s) > maxWord || strings.ContainsFunc(s, unicode.IsSpace) {
		return "", fmt.Errorf("it must be one word, of at most %d bytes", maxWord)
	}
	return strings.ToLower(s), nil
}

// seeds adds the seeds of a topic; topic is -1 for seeds without one.
func (v *validator) seeds(topic, priority int, list *yaml.Node) {
	for _, n := range v.list(list) {
		s := seed{topic: topic, priority: priority, line: n.Line, at: n.Line}
		wrong := len(v.problems)
		k := keys{"url": n}
		if n.Kind != yaml.ScalarNode { // a bare URL is a seed too
			k = v.mapping(n, "a seed", seedKeys, map[string]int{})
		}
		if own := k["priority"]; !left(own) && (topic < 0 || !v.file.topics[topic].ownPriorities) {
			v.errorf(own.Line, "seeds have priorities of their own only in a topic with granularity: url")
		}
		parse(v, "priority", k["priority"], &s.priority, ParsePriority)
		raw := ""
		parse(v, "url", k["url"], &raw, func(s string) (string, error) { return s, nil })
		if !v.room(n.Line) {
			return
		}
		if len(v.problems) == wrong {
			v.seed(s, raw)
		}
	}
}

// room reports whether another seed is allowed.
func (v *validator) room(line int) bool {
	if len(v.file.seeds) >= maxSeeds {
		v.errorf(line, "more than %d seeds", maxSeeds)
		return false
	}
	return len(v.problems) <= maxProblems
}

// seed adds a seed.
func (v *validator) seed(s seed, raw string) {
	tell := func(format string, args ...any) {
		v.problems = append(v.problems, v.file.problemOf(&s, fmt.Sprintf(format, args...)))
	}
	if s.topic >= 0 {
		v.file.topics[s.topic].seeds++ // a wrong one counts
	}
	u, err := weburl.Parse(raw)
	if err != nil {
		tell("seed %.200q: %v%s", raw, err, Suggestion(raw))
		return
	}
	s.url = u
	if i, ok := v.known[u]; ok {
		switch o := &v.file.seeds[i]; {
		case o.topic != s.topic && o.topic < 0:
			tell("seed %s is also listed without a topic: see %s", u, o.where())
		case o.topic != s.topic:
			tell("seed %s is also in topic %q: see %s", u, v.file.topics[o.topic].Name, o.where())
		case o.priority != s.priority:
			tell("seed %s also has priority %d: see %s", u, o.priority, o.where())
		}
		return
	}
	v.known[u] = len(v.file.seeds)
	v.file.seeds = append(v.file.seeds, s)
}

// problemOf is a problem with a seed.
func (f *File) problemOf(s *seed, text string) Problem {
	p := Problem{File: f.Name, Line: s.line, Text: text, at: s.at}
	if s.file != "" {
		p.File = s.file
	}
	return p
}

// where is the place of a seed.
func (s *seed) where() string {
	if s.file != "" {
		return fmt.Sprintf("%s:%d", s.file, s.line)
	}
	return fmt.Sprintf("line %d", s.line)
}

// seedsFile reads lists of seeds from files.
func (v *validator) seedsFile(topic, priority int, names *yaml.Node) {
	for _, n := range v.list(names) {
		if !v.single(n) {
			continue
		}
		name, line := n.Value, n.Line
		f, err := v.open(name)
		if err != nil {
			v.errorf(line, "seeds-file %q: %v", name, err)
			continue
		}
		some := false
		err = ReadList(f, func(n int, raw string) bool {
			some = true
			if v.room(line) {
				v.seed(seed{topic: topic, priority: priority, file: name, line: n, at: line}, raw)
			}
			return len(v.problems) <= maxProblems
		})
		_ = f.Close() // nothing was written
		switch {
		case err != nil:
			v.errorf(line, "seeds-file %q: %v", name, err)
		case !some:
			v.errorf(line, "seeds-file %q: it has no URL; write one per line", name)
		}
	}
}
