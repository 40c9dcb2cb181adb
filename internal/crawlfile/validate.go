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

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// validator converts a document into a [File].
type validator struct {
	file     *File
	record   *blobschema.Crawl
	given    map[string]bool
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

// parse parses a value, unless the file leaves it out. It returns true if there is a valid value.
func parse[T any](v *validator, key string, t text, to *T, f func(string) (T, error)) bool {
	if t.line == 0 {
		return false
	}
	got, err := f(t.string)
	if err != nil {
		v.errorf(t.line, "%s %.200q: %v", key, t.string, err)
		return false
	}
	*to = got
	return true
}

func (v *validator) document(doc *document) {
	v.settings(doc.Settings)
	v.hosts(doc.Hosts)
	v.seeds(-1, 0, doc.Seeds)
	v.seedsFile(-1, 0, doc.SeedsFile)
	if len(doc.Topics.list) > blobschema.MaxTopics {
		v.errorf(doc.Topics.list[blobschema.MaxTopics].line, "more than %d topics", blobschema.MaxTopics)
		return
	}
	lines := map[string]int{}
	for i := range doc.Topics.list {
		v.topic(&doc.Topics.list[i].keys, doc.Topics.list[i].line, lines)
	}
}

// settings applies the keys of the crawl as a whole.
func (v *validator) settings(settings map[string]texts) {
	keys := topKeys()
	for _, key := range slices.Sorted(maps.Keys(settings)) {
		values := settings[key]
		line := v.file.lines[key]
		s := Find(key)
		switch {
		case !slices.Contains(keys, key):
			v.errorf(line, "%s", unknown("a crawl file", key, keys))
			continue
		case len(values.list) == 0:
			v.errorf(line, "%s has no value", key)
			continue
		}
		v.file.Values[key] = values.strings()
		if s == nil { // host-ranks: the command line reads that file
			v.file.HostRanks = values.list[0].string
			continue
		}
		record := v.record
		if v.given[key] {
			record = &blobschema.Crawl{} // only checked
		}
		v.set(record, key, values)
	}
	if name, err := Check(v.record); err != nil && v.file.lines[name] > 0 && len(v.problems) == 0 {
		v.problems = append(v.problems, v.file.Problem(name, fmt.Sprintf("%s: %v", name, err)))
	}
}

// set gives a setting of a record its values.
func (v *validator) set(record *blobschema.Crawl, key string, values texts) {
	if err := Find(key).Replace(record, values.strings()); err != nil {
		v.errorf(values.line, "%s %.200q: %v", key, strings.Join(values.strings(), " "), err)
	}
}

func (v *validator) hosts(hosts items[hostKeys]) {
	if v.file.lines["hosts"] == 0 {
		return
	}
	v.file.Hosts = []blobschema.HostRule{}
	lines := map[string]int{}
	for i := range hosts.list {
		h, line := &hosts.list[i].keys, hosts.list[i].line
		wrong := len(v.problems)
		var r blobschema.HostRule
		parse(v, "host", h.Host, &r.Host, parseHost)
		parse(v, "connections", h.Connections, &r.Connections, parseConnections)
		parse(v, "delay", h.Delay, &r.Delay, func(s string) (*time.Duration, error) {
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
	if !v.given["host-rule"] {
		v.record.Settings.Hosts = v.file.Hosts
	}
}

// topic adds a topic; lines has the lines of the names so far.
func (v *validator) topic(k *topicKeys, line int, lines map[string]int) {
	t := &topic{line: line, settings: map[string]texts{}}
	number := len(v.file.topics)
	v.file.topics = append(v.file.topics, t)
	wrong := len(v.problems)
	parse(v, "name", k.Name, &t.Name, checkName)
	parse(v, "priority", k.Priority, &t.Priority, ParsePriority)
	parse(v, "slice", k.Slice, &t.Slice, ParseSlice)
	parse(v, "granularity", k.Granularity, &t.ownPriorities, func(s string) (bool, error) {
		if s != "topic" && s != "url" {
			return false, errors.New("it must be topic or url")
		}
		return s == "url", nil
	})
	parse(v, "minimum", k.Minimum, &t.Minimum, func(s string) (n int64, err error) {
		n, t.Period, err = ParseMinimum(s)
		return n, err
	})
	for key, values := range map[string]texts{"scope": k.Scope, "include": k.Include, "exclude": k.Exclude, "max-depth": k.MaxDepth} {
		if values.line > 0 {
			t.settings[key] = values
			v.set(&blobschema.Crawl{}, key, values)
		}
	}
	for _, word := range k.Words.list {
		var w string
		if parse(v, "words", word, &w, checkWord) {
			t.Words = append(t.Words, w)
		}
	}
	v.seeds(number, t.Priority, k.Seeds)
	v.seedsFile(number, t.Priority, k.SeedsFile)
	switch {
	case t.Name == "" && len(v.problems) == wrong:
		v.errorf(line, "a topic must have a name")
	case t.Name != "" && lines[t.Name] > 0:
		v.errorf(line, "topic %q is given twice: see line %d", t.Name, lines[t.Name])
	case t.Name != "":
		lines[t.Name] = line
	}
	if t.seeds == 0 && len(v.problems) == wrong {
		v.errorf(line, "topic %q has no seeds", t.Name)
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
func (v *validator) seeds(topic, priority int, list items[seedKeys]) {
	for _, i := range list.list {
		s := seed{topic: topic, priority: priority, line: i.line, at: i.line}
		wrong := len(v.problems)
		if i.keys.Priority.line > 0 && (topic < 0 || !v.file.topics[topic].ownPriorities) {
			v.errorf(i.keys.Priority.line, "seeds have priorities of their own only in a topic with granularity: url")
		}
		parse(v, "priority", i.keys.Priority, &s.priority, ParsePriority)
		if !v.room(i.line) {
			return
		}
		if len(v.problems) == wrong {
			v.seed(s, i.keys.URL.string)
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
func (v *validator) seedsFile(topic, priority int, names texts) {
	for _, name := range names.list {
		f, err := v.open(name.string)
		if err != nil {
			v.errorf(name.line, "seeds-file %q: %v", name.string, err)
			continue
		}
		some := false
		err = ReadList(f, func(n int, raw string) bool {
			some = true
			if v.room(name.line) {
				v.seed(seed{topic: topic, priority: priority, file: name.string, line: n, at: name.line}, raw)
			}
			return len(v.problems) <= maxProblems
		})
		_ = f.Close() // nothing was written
		switch {
		case err != nil:
			v.errorf(name.line, "seeds-file %q: %v", name.string, err)
		case !some:
			v.errorf(name.line, "seeds-file %q: it has no URL; write one per line", name.string)
		}
	}
}
