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

// topics is what the scheduler knows of a crawl's topics, by number; shrunk are slices that the
// watcher has made shorter.
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

// HostRules returns what operators allow, by politeness key. A key of several hosts has the
// rule of the first that has one.
func HostRules(s *blobschema.Settings) map[string]schedule.HostRule {
	rules := map[string]schedule.HostRule{}
	for _, r := range s.Hosts {
		h, err := weburl.ParseHost(r.Host)
		if err != nil {
			continue // whoever made the record has refused it
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

// takeTopics takes over what has changed of a crawl's topics. There may be more than before: the
// hosts of their seeds come with these.
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
	if more { // what was told of them was not understood
		for _, entry := range slices.Concat(st.man.Scope, st.man.NewScope, st.wish.Scope) {
			sc.add(entry)
		}
	}
	return nil
}

// alignTopics has the topics of a step's crawl record and of the state that it goes on with
// agree: either may be older, and topics only come.
func (st *state) alignTopics() error {
	if known := st.topics; len(known) > len(st.cfg.Crawl.Settings.Topics) {
		st.cfg.Crawl.Settings.Topics = known
		return nil
	}
	return st.takeTopics(st.cfg.Crawl.Settings.Topics, st.wish.Slices)
}

// relevant reports whether a link has a word of its topic, in its URL or its anchor.
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

// topicTotals are the figures of topics as of now.
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

// countTopic adds to the figures of a topic.
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
