package blobschema

import "reflect"

// Totals are a partition's figures since the crawl began.
type Totals struct {
	Known      int64            `json:"known,omitempty" cbor:"1,keyasint,omitempty"`   // URLs
	Pending    int64            `json:"pending,omitempty" cbor:"2,keyasint,omitempty"` // URLs known and not settled
	Unexamined int64            `json:"unexamined,omitempty" cbor:"3,keyasint,omitempty"`
	Buffered   int64            `json:"held,omitempty" cbor:"4,keyasint,omitempty"` // links for other partitions that are in no mail yet
	Hosts      int64            `json:"hosts,omitempty" cbor:"5,keyasint,omitempty"`
	Pages      int64            `json:"pages,omitempty" cbor:"6,keyasint,omitempty"`    // OutcomeOK without robots.txt: the pages that limits count
	Outcomes   map[string]int64 `json:"outcomes,omitempty" cbor:"7,keyasint,omitempty"` // by Outcome name, without robots.txt
	Bytes      int64            `json:"bytes,omitempty" cbor:"8,keyasint,omitempty"`    // received
	Stored     int64            `json:"stored,omitempty" cbor:"9,keyasint,omitempty"`   // in WARC objects
	Duplicates int64            `json:"duplicates,omitempty" cbor:"10,keyasint,omitempty"`
	DeadMail   int64            `json:"dead_mail,omitempty" cbor:"11,keyasint,omitempty"`
	OutOfScope int64            `json:"out_of_scope,omitempty" cbor:"12,keyasint,omitempty"`
	WaitMillis int64            `json:"wait_ms,omitempty" cbor:"13,keyasint,omitempty"` // politeness: sum over hosts of the time between a ready URL and permission
	Retries    int64            `json:"retries,omitempty" cbor:"14,keyasint,omitempty"`
	Robots     int64            `json:"robots,omitempty" cbor:"15,keyasint,omitempty"`    // robots.txt answers stored
	Urgent     int64            `json:"urgent,omitempty" cbor:"16,keyasint,omitempty"`    // of Pending: requested by the operator, or requisites
	Capped     int64            `json:"capped,omitempty" cbor:"17,keyasint,omitempty"`    // links skipped because their host or domain has too many URLs
	Trapped    int64            `json:"trapped,omitempty" cbor:"18,keyasint,omitempty"`   // links skipped because their path looks like a trap
	Revisits   int64            `json:"revisits,omitempty" cbor:"19,keyasint,omitempty"`  // answers stored as a reference to an earlier payload
	Forwarded  int64            `json:"forwarded,omitempty" cbor:"20,keyasint,omitempty"` // URLs forwarded to the slot of their address
	// Topics are the figures of topics by number, without number 0.
	Topics map[uint8]TopicTotals `json:"topics,omitempty" cbor:"21,keyasint,omitempty"`
	Again  int64                 `json:"again,omitempty" cbor:"22,keyasint,omitempty"` // pages fetched again because they may have changed
	// Changed counts the pages of Again that had changed.
	Changed     int64 `json:"changed,omitempty" cbor:"23,keyasint,omitempty"`
	Connections int64 `json:"connections,omitempty" cbor:"24,keyasint,omitempty"` // opened to web servers
	Requisites  int64 `json:"requisites,omitempty" cbor:"25,keyasint,omitempty"`  // OutcomeOK that are only requisites of pages; not in Pages
}

// TopicTotals are a topic's figures.
type TopicTotals struct {
	Pages   int64 `json:"pages,omitempty" cbor:"1,keyasint,omitempty"`
	Pending int64 `json:"pending,omitempty" cbor:"2,keyasint,omitempty"` // in memory
	Bytes   int64 `json:"bytes,omitempty" cbor:"3,keyasint,omitempty"`   // received
}

// Add adds another partition's figures.
func (t *Totals) Add(o *Totals) {
	addFields(t, o, 1)
	for k, n := range o.Topics {
		if t.Topics == nil {
			t.Topics = map[uint8]TopicTotals{}
		}
		sum := t.Topics[k]
		t.Topics[k] = TopicTotals{sum.Pages + n.Pages, sum.Pending + n.Pending, sum.Bytes + n.Bytes}
	}
	for k, n := range o.Outcomes {
		if t.Outcomes == nil {
			t.Outcomes = map[string]int64{}
		}
		t.Outcomes[k] += n
	}
}

// addFields adds the integer fields of one struct, times a factor, to those of another. Both
// arguments point to structs of the same type.
func addFields(to, from any, times int64) {
	t, f := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range t.NumField() {
		if field := t.Field(i); field.CanInt() {
			field.SetInt(field.Int() + times*f.Field(i).Int())
		}
	}
}

// Toward returns the figures between t and later ones: those of t if share is 0, the later ones if it is 1. It leaves out
// those of topics.
func (t Totals) Toward(later *Totals, share float64) Totals {
	out := t
	out.Topics, out.Outcomes = nil, make(map[string]int64, len(later.Outcomes))
	mix(&out, later, share)
	for k, n := range later.Outcomes {
		out.Outcomes[k] = t.Outcomes[k] + int64(share*float64(n-t.Outcomes[k]))
	}
	return out
}

// mix moves the integer fields of one struct toward those of another. Both arguments point to structs of the same type.
func mix(to, later any, share float64) {
	t, l := reflect.ValueOf(to).Elem(), reflect.ValueOf(later).Elem()
	for i := range t.NumField() {
		if field := t.Field(i); field.CanInt() {
			field.SetInt(field.Int() + int64(share*float64(l.Field(i).Int()-field.Int())))
		}
	}
}
