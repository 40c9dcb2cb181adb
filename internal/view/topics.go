package view

import (
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// TopicStatus is the progress of a topic.
type TopicStatus struct {
	Name    string  `json:"name,omitempty"` // empty for URLs of no topic
	Numbers []uint8 `json:"-"`              // of its rows in the settings, in their order; 0 of no topic
	// Priorities are those of its rows: one, or several where URLs have their own.
	Priorities []int                  `json:"priorities,omitempty"`
	Slice      time.Duration          `json:"-"`                 // of its turns, as it was given
	Shrunk     time.Duration          `json:"-"`                 // present slice, after the topic has had its minimum; 0 for Slice
	Minimum    int64                  `json:"minimum,omitempty"` // least pages in each Period; 0 for no minimum
	Period     time.Duration          `json:"-"`
	Had        int64                  `json:"had,omitempty"`        // pages in the current period
	Until      time.Time              `json:"period_ends,omitzero"` // end of the period; zero if no coordinator run has begun one
	Totals     blobschema.TopicTotals `json:"-"`
}

// Topics returns the topics in their order, and at the end the URLs of no topic.
func (s *Status) Topics() (out []TopicStatus) {
	none := TopicStatus{Numbers: []uint8{0}, Totals: blobschema.TopicTotals{
		Pages: s.Totals.Pages, Pending: s.Totals.Pending + s.Totals.Unexamined, Bytes: s.Totals.Bytes,
	}}
	for i := range s.Crawl.Settings.Topics {
		row := &s.Crawl.Settings.Topics[i]
		if i == 0 || row.Name != s.Crawl.Settings.Topics[i-1].Name {
			out = append(out, TopicStatus{Name: row.Name, Slice: row.Slice, Minimum: row.Minimum, Period: row.Period})
		}
		t := &out[len(out)-1]
		t.Priorities = append(t.Priorities, row.Priority)
		if d := s.Desired.Slices[uint8(i+1)]; d > 0 && d != row.Slice {
			t.Shrunk = d
		}
		t.Fill()
		t.Numbers = append(t.Numbers, uint8(i+1))
		n := s.Totals.Topics[uint8(i+1)]
		t.Totals = blobschema.TopicTotals{Pages: t.Totals.Pages + n.Pages, Pending: t.Totals.Pending + n.Pending, Bytes: t.Totals.Bytes + n.Bytes}
		none.Totals.Pages -= n.Pages
		none.Totals.Pending = max(0, none.Totals.Pending-n.Pending) // the counts of topics are from other moments
		none.Totals.Bytes -= n.Bytes
	}
	for i := range out {
		if t, p := &out[i], s.Tick.Topics[out[i].Name]; t.Minimum > 0 && time.Since(p.Since) < t.Period {
			t.Had, t.Until = max(0, t.Totals.Pages-p.Pages), p.Since.Add(t.Period)
		}
	}
	return append(out, none)
}

// Fill sets the defaults of settings that are left out.
func (t *TopicStatus) Fill() {
	if t.Slice == 0 {
		t.Slice = blobschema.DefaultSlice
	}
	if t.Minimum > 0 && t.Period == 0 {
		t.Period = blobschema.DefaultPeriod
	}
}

// TopicName returns the name of the topic with a number; "" for no topic.
func TopicName(set *blobschema.Settings, number uint8) string {
	if number == 0 || int(number) > len(set.Topics) {
		return ""
	}
	return set.Topics[number-1].Name
}

// TopicNumbers returns the numbers of the topics with a name.
func TopicNumbers(set *blobschema.Settings, name string) (numbers []uint8) {
	for i := range set.Topics {
		if set.Topics[i].Name == name {
			numbers = append(numbers, uint8(i+1))
		}
	}
	return numbers
}
