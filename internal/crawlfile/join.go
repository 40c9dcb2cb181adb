package crawlfile

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// rows are those of one topic in the settings of a crawl: from first on, by index.
type rows struct {
	name  string
	first int
	list  []blobschema.Topic
}

// Rows groups the rows of a crawl's settings by topic: rows that follow one another and have
// one name are one topic.
func Rows(topics []blobschema.Topic) [][]blobschema.Topic {
	var out [][]blobschema.Topic
	for i := range topics {
		if i > 0 && topics[i].Name == topics[i-1].Name {
			last := &out[len(out)-1]
			*last = append(*last, topics[i])
			continue
		}
		out = append(out, []blobschema.Topic{topics[i]})
	}
	return out
}

// Join returns the topics that a crawl has with the file, and the file's seeds. set is what
// the crawl has so far, topics included: a new one has none. Topics of a crawl stay, in
// their order and with what they follow; their priorities, shares and words become those of
// the file, and new topics come after them. A topic whose URLs have priorities of their own
// keeps those it has. What contradicts that, and seeds that are excluded, are problems. A
// file that says nothing of topics leaves them as they are.
//
// What the file says of hosts is not part of it: see [File.Hosts].
func (f *File) Join(set *blobschema.Settings) (topics []blobschema.Topic, seeds []crawl.Seed, problems Problems) {
	j := joining{file: f, set: set}
	if f.lines["topics"] == 0 {
		j.topics = set.Topics
	}
	groups := j.groups()
	for i, t := range f.topics {
		var have rows
		if i < len(groups) {
			have = groups[i]
		}
		j.join(i, t, have, i >= len(groups)-1)
	}
	j.checkSeeds()
	if len(j.topics) > blobschema.MaxTopics {
		j.tell(f.lines["topics"], "topics and their priorities are %d, and there can be %d", len(j.topics), blobschema.MaxTopics)
	}
	if n := recordBytes(j.topics, f.Hosts); n > maxRecord {
		j.tell(f.lines["topics"], "topics, with the patterns and words of each of their priorities, and hosts take %d bytes, and there is room for %d", n, maxRecord)
	}
	for _, s := range f.seeds {
		if len(j.problems) > 0 {
			return nil, nil, j.problems
		}
		q := crawl.Seed{URL: s.url}
		if s.topic >= 0 {
			q.Topic = j.number(s.topic, s.priority)
		}
		seeds = append(seeds, q)
	}
	return j.topics, seeds, j.problems
}

// recordBytes is what topics and hosts take in the crawl's record.
func recordBytes(topics []blobschema.Topic, hosts []blobschema.HostRule) int {
	data, err := json.Marshal(blobschema.Settings{Topics: topics, Hosts: hosts})
	if err != nil {
		panic("crawlfile: " + err.Error()) // of texts and numbers: unreachable
	}
	return len(data)
}

type joining struct {
	file     *File
	set      *blobschema.Settings
	topics   []blobschema.Topic
	rows     []rows // of the file's topics
	problems Problems
}

func (j *joining) tell(line int, format string, args ...any) {
	j.problems = append(j.problems, Problem{File: j.file.Name, Line: line, Text: fmt.Sprintf(format, args...), at: line})
}

// groups are the topics that the crawl has, if those of the file begin with them.
func (j *joining) groups() (have []rows) {
	if j.topics != nil {
		return nil
	}
	n := 0
	for _, list := range Rows(j.set.Topics) {
		have = append(have, rows{list[0].Name, n, list})
		n += len(list)
	}
	for i, g := range have {
		at := slices.IndexFunc(j.file.topics, func(t *topic) bool { return t.Name == g.name })
		switch {
		case at == i:
			continue
		case at < 0:
			j.tell(j.file.lines["topics"], "topic %q of the crawl is missing: topics stay as long as their crawl", g.name)
		default:
			j.tell(j.file.topics[at].line, "topic %q is number %d here and %d in the crawl: topics keep their order, and new ones come after them", g.name, at+1, i+1)
		}
	}
	if len(j.problems) > 0 {
		return nil // what belongs to what is not known
	}
	return have
}

// number is the number of the row that a seed belongs to.
func (j *joining) number(topic, priority int) uint8 {
	r := &j.rows[topic]
	if !j.file.topics[topic].ownPriorities {
		return uint8(r.first + 1)
	}
	i := slices.IndexFunc(r.list, func(t blobschema.Topic) bool { return t.Priority == priority })
	return uint8(r.first + i + 1)
}

// join adds the rows of a topic. last says that no topic of the crawl comes after it.
func (j *joining) join(i int, t *topic, have rows, last bool) {
	now := t.resolve(j.set)
	r := rows{name: t.Name, first: len(j.topics)}
	if len(have.list) > 0 {
		j.frozen(t, &have.list[0], &now)
	}
	switch {
	case t.ownPriorities:
		priorities := j.priorities(i, have)
		if more := priorities[len(have.list):]; len(have.list) > 0 && len(more) > 0 && !last {
			j.tell(j.lineOf(i, more[0]), "priority %d is new in topic %q: a topic that others follow in the crawl keeps the priorities it has: %s",
				more[0], t.Name, list(priorities[:len(have.list)]))
		}
		for _, p := range priorities {
			now.Priority = p
			r.list = append(r.list, now)
		}
	case len(have.list) > 1:
		j.tell(t.line, "topic %q was begun with granularity: url, and keeps it", t.Name)
	default:
		r.list = []blobschema.Topic{now}
	}
	j.topics = append(j.topics, r.list...)
	j.rows = append(j.rows, r)
}

// resolve is the topic with what the crawl says where it says nothing.
func (t *topic) resolve(set *blobschema.Settings) blobschema.Topic {
	now := t.Topic
	now.Scope, now.Include, now.Exclude, now.MaxDepth = set.Scope, set.Include, set.Exclude, set.MaxDepth
	if t.scope != nil {
		now.Scope = *t.scope
	}
	if t.include != nil {
		now.Include = *t.include
	}
	if t.exclude != nil {
		now.Exclude = *t.exclude
	}
	if t.maxDepth != nil {
		now.MaxDepth = *t.maxDepth
	}
	return now
}

// frozen refuses changes of what a topic follows.
func (j *joining) frozen(t *topic, was, now *blobschema.Topic) {
	for _, c := range []struct {
		key  string
		same bool
		was  string
	}{
		{"scope", was.Scope == now.Scope, string(was.Scope)},
		{"include", slices.Equal(was.Include, now.Include), patterns(was.Include)},
		{"exclude", slices.Equal(was.Exclude, now.Exclude), patterns(was.Exclude)},
		{"max-depth", was.MaxDepth == now.MaxDepth, strconv.Itoa(was.MaxDepth)},
	} {
		if c.same {
			continue
		}
		line := t.at[c.key]
		if line == 0 {
			line = t.line
		}
		j.tell(line, "%s of topic %q contradicts the crawl, which was begun with %s and keeps it", c.key, t.Name, c.was)
	}
}

func patterns(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return fmt.Sprintf("%.200q", list)
}

// priorities are those of a topic's rows: those that the crawl has, and then those that are
// new, the highest first.
func (j *joining) priorities(topic int, have rows) (all []int) {
	for _, row := range have.list {
		all = append(all, row.Priority)
	}
	var more []int
	for i := range j.file.seeds {
		if s := &j.file.seeds[i]; s.topic == topic && !slices.Contains(all, s.priority) && !slices.Contains(more, s.priority) {
			more = append(more, s.priority)
		}
	}
	slices.SortFunc(more, func(a, b int) int { return b - a })
	return append(all, more...)
}

// lineOf is where a priority is first met.
func (j *joining) lineOf(topic, priority int) int {
	for _, s := range j.file.seeds {
		if s.topic == topic && s.priority == priority {
			return s.at
		}
	}
	return j.file.topics[topic].line
}

func list(numbers []int) string {
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ", ")
}

// checkSeeds refuses seeds that are excluded. That they match no include is as it should
// be: pages that lists of what is wanted begin at are often not wanted themselves.
func (j *joining) checkSeeds() {
	by := map[int][]*regexp.Regexp{}
	for i := range j.file.seeds {
		s := &j.file.seeds[i]
		exclude, ok := by[s.topic]
		if !ok {
			list := j.set.Exclude
			if s.topic >= 0 {
				list = j.file.topics[s.topic].resolve(j.set).Exclude
			}
			for _, expr := range list {
				if re, err := regexp.Compile(expr); err == nil { // one that is wrong is told elsewhere
					exclude = append(exclude, re)
				}
			}
			by[s.topic] = exclude
		}
		for _, re := range exclude {
			if !re.MatchString(s.url.String()) {
				continue
			}
			file := j.file.Name
			if s.file != "" {
				file = s.file
			}
			j.problems = append(j.problems, Problem{File: file, Line: s.line, at: s.at,
				Text: fmt.Sprintf("seed %s is excluded by %.200q: leave out one of them", s.url, re)})
			break
		}
		if len(j.problems) >= maxProblems {
			return
		}
	}
}
