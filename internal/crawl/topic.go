package crawl

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/schedule"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// topics returns the scheduler's view of a crawl's topics, by number. shrunk holds the slices that the watcher has
// shortened.
func topics(s *blobschema.Settings, shrunk map[uint8]time.Duration) []schedule.Topic {
	list := make([]schedule.Topic, 1, 1+len(s.Topics))
	for i := range s.Topics {
		t := schedule.Topic{Priority: s.Topics[i].Priority, Slice: s.Topics[i].Slice}
		if shorter, ok := shrunk[uint8(i+1)]; ok {
			t.Slice = shorter
		}
		list = append(list, t)
	}
	return list
}

// HostRules returns the operators' rules by politeness key. A key with several hosts has the rule of the first host that
// has one.
func HostRules(s *blobschema.Settings) map[string]schedule.HostRule {
	rules := map[string]schedule.HostRule{}
	for _, r := range s.Hosts {
		h, err := weburl.ParseHost(r.Host)
		if err != nil {
			continue // such a host is refused when the record is made
		}
		key, _ := s.PartitionBy.Key(string(h))
		if _, ok := rules[key]; ok {
			continue
		}
		rule := schedule.HostRule{Connections: r.Connections, Delay: s.Delay}
		if r.Delay != nil {
			rule.Delay = *r.Delay
		}
		rules[key] = rule
	}
	return rules
}

// takeTopics adopts changes of a crawl's topics. New topics may have been added; the caller then reads the hosts of their
// seeds.
func (st *state) takeTopics(list []blobschema.Topic, shrunk map[uint8]time.Duration) error {
	st.cfg.Crawl.Settings.Topics = list
	if reflect.DeepEqual(list, st.topics) {
		return nil
	}
	sc, err := newScopes(&st.cfg.Crawl.Settings)
	if err != nil {
		return err
	}
	sc.adopt(st.scopes)
	more := len(sc) > len(st.scopes)
	st.scopes, st.topics = sc, list
	st.f.SetTopics(topics(&st.cfg.Crawl.Settings, shrunk))
	if more { // entries for the new topics were ignored until now
		for _, entry := range slices.Concat(st.man.Scope, st.man.NewScope, st.desired.Scope) {
			sc.add(entry)
		}
	}
	return nil
}

// alignTopics makes the topics of the crawl record and of a warm state agree. Either may be older; topics are only ever
// added.
func (st *state) alignTopics() error {
	if known := st.topics; len(known) > len(st.cfg.Crawl.Settings.Topics) {
		st.cfg.Crawl.Settings.Topics = known
		return nil
	}
	return st.takeTopics(st.cfg.Crawl.Settings.Topics, st.desired.Slices)
}

// relevant reports whether a link has a word of its topic in its URL or anchor text.
func (st *state) relevant(topic uint8, l *actor.Link) bool {
	if topic == 0 || int(topic) > len(st.cfg.Crawl.Settings.Topics) {
		return false
	}
	words := st.cfg.Crawl.Settings.Topics[topic-1].Words
	if len(words) == 0 {
		return false
	}
	url, anchor := strings.ToLower(l.URL.String()), strings.ToLower(l.Anchor)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(url, w) || strings.Contains(anchor, w) })
}

// topicTotals returns the current figures of the topics.
func (st *state) topicTotals() map[uint8]blobschema.TopicTotals {
	n := len(st.cfg.Crawl.Settings.Topics)
	if n == 0 {
		return nil
	}
	out := make(map[uint8]blobschema.TopicTotals, n)
	for i := range n {
		topic := uint8(i + 1)
		t := st.totals.Topics[topic]
		if t.Pending = st.f.PendingOf(topic); t != (blobschema.TopicTotals{}) {
			out[topic] = t
		}
	}
	return out
}

func (st *state) countTopic(topic uint8, pages, bytes int64) {
	if topic == 0 {
		return
	}
	if st.totals.Topics == nil {
		st.totals.Topics = map[uint8]blobschema.TopicTotals{}
	}
	t := st.totals.Topics[topic]
	t.Pages += pages
	t.Bytes += bytes
	st.totals.Topics[topic] = t
}
