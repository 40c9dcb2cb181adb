package crawlfile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
)

// Rows groups the rows of a crawl's settings by topic: consecutive rows with one name are one topic.
func Rows(topics []blobschema.Topic) (out [][]blobschema.Topic) {
	for i := range topics {
		if i > 0 && topics[i].Name == topics[i-1].Name {
			out[len(out)-1] = append(out[len(out)-1], topics[i])
		} else {
			out = append(out, []blobschema.Topic{topics[i]})
		}
	}
	return out
}

// Join returns the topics of a crawl with the file, and the file's seeds. set holds the settings of
// the crawl so far; a new one has no topics. Topics of the crawl keep their order and their scopes.
// Their priorities, slices, minima and words become those of the file. New topics come
// after them. A topic whose seeds have priorities of their own keeps these priorities. Contradictions
// and excluded seeds are problems. A file without topics changes no topic.
func (f *File) Join(set *blobschema.Settings) (topics []blobschema.Topic, seeds []crawl.Seed, problems Problems) {
	j := joining{file: f, set: set}
	if len(f.topics) == 0 && f.lines["topics"] == 0 {
		j.topics = set.Topics
	} else {
		have := j.groups()
		for i, t := range f.topics {
			var rows []blobschema.Topic
			if i < len(have) {
				rows = have[i]
			}
			j.join(i, t, rows, i >= len(have)-1)
		}
	}
	j.checkSeeds()
	if len(j.topics) > blobschema.MaxTopics {
		j.errorf(f.lines["topics"], "%d topics and priorities are more than %d", len(j.topics), blobschema.MaxTopics)
	}
	if n := recordBytes(j.topics, f.Hosts); n > maxRecord {
		j.errorf(f.lines["topics"], "topics and hosts take %d bytes, more than %d: each priority of a topic repeats its patterns and words", n, maxRecord)
	}
	if len(j.problems) > 0 {
		return nil, nil, j.problems
	}
	for _, s := range f.seeds {
		seeds = append(seeds, crawl.Seed{URL: s.url, Topic: j.number(&s)})
	}
	return j.topics, seeds, nil
}

// recordBytes is the size of topics and hosts in the crawl's record.
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
	first    []int // row of each topic of the file
	problems Problems
}

func (j *joining) errorf(line int, format string, args ...any) {
	j.problems = append(j.problems, Problem{File: j.file.Name, Line: line, Text: fmt.Sprintf(format, args...), at: line})
}

// groups are the rows of the crawl by topic, if the topics of the file begin with those of the crawl.
func (j *joining) groups() [][]blobschema.Topic {
	have := Rows(j.set.Topics)
	for i, rows := range have {
		name := rows[0].Name
		at := slices.IndexFunc(j.file.topics, func(t *topic) bool { return t.Name == name })
		switch {
		case at == i:
			continue
		case at < 0:
			j.errorf(j.file.lines["topics"], "topic %q of the crawl is missing: topics stay as long as their crawl", name)
		default:
			j.errorf(j.file.topics[at].line, "topic %q is number %d here and %d in the crawl: topics keep their order, "+
				"and new ones come after them", name, at+1, i+1)
		}
	}
	if len(j.problems) > 0 {
		return nil // the rows cannot be matched with topics
	}
	return have
}

// number returns the number of the row that a seed belongs to; 0 for no topic.
func (j *joining) number(s *seed) uint8 {
	if s.topic < 0 {
		return 0
	}
	first := j.first[s.topic]
	if !j.file.topics[s.topic].ownPriorities {
		return uint8(first + 1)
	}
	i := slices.IndexFunc(j.topics[first:], func(t blobschema.Topic) bool { return t.Priority == s.priority })
	return uint8(first + i + 1)
}

// join adds the rows of a topic. last reports that no topic of the crawl comes after it.
func (j *joining) join(i int, t *topic, have []blobschema.Topic, last bool) {
	now := t.resolve(j.set)
	j.first = append(j.first, len(j.topics))
	if len(have) > 0 {
		j.frozen(t, &have[0], &now)
	}
	if !t.ownPriorities {
		if len(have) > 1 {
			j.errorf(t.line, "topic %q was created with granularity: url, and keeps it", t.Name)
		}
		j.topics = append(j.topics, now)
		return
	}
	var kept, more []int
	for _, row := range have {
		kept = append(kept, row.Priority)
	}
	for _, s := range j.file.seeds {
		if s.topic == i && !slices.Contains(kept, s.priority) && !slices.Contains(more, s.priority) {
			if more = append(more, s.priority); len(have) > 0 && !last {
				j.errorf(s.at, "priority %d is new in topic %q: a topic that others follow in the crawl keeps the priorities it has: %s",
					s.priority, t.Name, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(kept)), ", "), "[]"))
			}
		}
	}
	slices.SortFunc(more, func(a, b int) int { return b - a })
	for _, now.Priority = range append(kept, more...) {
		j.topics = append(j.topics, now)
	}
}

// resolve returns the topic with the settings of the crawl for those that the topic leaves out.
func (t *topic) resolve(set *blobschema.Settings) blobschema.Topic {
	c := blobschema.Crawl{Settings: *set}
	for key, values := range t.settings {
		_ = Find(key).Replace(&c, values) // an error is a problem already
	}
	now := t.Topic
	now.Scope, now.Include, now.Exclude, now.MaxDepth = c.Settings.Scope, c.Settings.Include, c.Settings.Exclude, c.Settings.MaxDepth
	now.Requisites = c.Settings.Requisites
	return now
}

// ofTopics names the settings that a topic may have of its own.
var ofTopics = []string{"scope", "include", "exclude", "max-depth", "requisites"}

// frozen refuses changes to these settings of a topic.
func (j *joining) frozen(t *topic, was, now *blobschema.Topic) {
	record := func(t *blobschema.Topic) *blobschema.Crawl {
		return &blobschema.Crawl{Settings: blobschema.Settings{
			Scope: t.Scope, Include: t.Include, Exclude: t.Exclude, MaxDepth: t.MaxDepth, Requisites: t.Requisites,
		}}
	}
	for _, key := range ofTopics {
		if s := Find(key); s.Get(record(was)) != s.Get(record(now)) {
			j.errorf(cmp.Or(t.lines[key], t.line), "%s of topic %q contradicts the crawl, which was created with %.200s and keeps it",
				key, t.Name, s.Get(record(was)))
		}
	}
}

// checkSeeds refuses seeds that are excluded. A seed need not match an include: a list of the wanted pages is
// often a good seed, and not a wanted page itself.
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
				if re, err := regexp.Compile(expr); err == nil { // a wrong one is a problem of its own
					exclude = append(exclude, re)
				}
			}
			by[s.topic] = exclude
		}
		for _, re := range exclude {
			if re.MatchString(s.url.String()) {
				j.problems = append(j.problems, j.file.problemOf(s, fmt.Sprintf("seed %s is excluded by %.200q: leave out one of them", s.url, re)))
				break
			}
		}
		if len(j.problems) >= maxProblems {
			return
		}
	}
}
