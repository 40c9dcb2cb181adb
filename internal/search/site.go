package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// span is a range of documents, first to end-1.
type span struct{ first, end uint32 }

// spans returns the documents of some sites, in order.
func (e *evaluation) spans(ctx context.Context, t *terms, sites []string) ([]span, error) {
	var out []span
	for _, site := range sites {
		host := weburl.Host(site)
		exact := host.Port() != ""
		slots, err := e.slots(ctx, t, host, exact)
		if err != nil {
			return nil, err
		}
		for _, slot := range slots {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			var s span
			if exact {
				s.first, s.end, err = t.opened.Site(site, slot)
			} else {
				s.first, s.end, err = t.opened.Domain(site, slot)
			}
			if err != nil {
				return nil, err
			}
			if s.first < s.end {
				out = append(out, s)
			}
		}
	}
	slices.SortFunc(out, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	return out, nil
}

// slots returns the slots that may have documents of a site. The slot of the name itself follows from the name. Names
// below it, and other ports, may have slots of their own: slots finds them by the documents that have the name in
// their URL.
func (e *evaluation) slots(ctx context.Context, t *terms, host weburl.Host, exact bool) ([]partition.Slot, error) {
	// The name's own slot is enough if a port is given, or if all names below the name share its politeness key.
	by := e.ix.record.Settings.PartitionBy
	key, _ := by.Key(string(host))
	out := []partition.Slot{e.ix.hash.Slot(key)}
	other := "a." + host
	if host.IsIP() { // an address has no names below it
		other = host + ":1"
	}
	if another, _ := by.Key(string(other)); exact || another == key {
		return out, nil
	}
	// Otherwise take the slots of all documents that have the words of the name in a row in their URL, or of all documents
	// if the name has no words.
	cols, err := e.columns(ctx, t.seg)
	if err != nil {
		return nil, err
	}
	add := func(doc uint32) { // in order
		if slot := cols.Slot(doc); slot != out[len(out)-1] {
			out = append(out, slot)
		}
	}
	name := host.Name()
	if name[0] >= '0' && name[0] <= '9' && !host.IsIP() { // it may be one word with what is before it, as in a1.2.example
		_, name, _ = strings.Cut(name, ".")
	}
	words := token.Query(name, []string{})
	if len(words) == 0 {
		for doc := range t.seg.ref.Documents {
			add(doc)
		}
	} else if err := e.eachOfURL(ctx, t, words, add); err != nil {
		return nil, err
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// eachOfURL calls f for each document of a segment that has words in a row in its URL, in order.
func (e *evaluation) eachOfURL(ctx context.Context, t *terms, words []token.Word, f func(doc uint32)) error {
	for _, term := range (&leaf{words: words}).terms {
		infos, err := t.opened.Lookup(term)
		if err != nil {
			return err
		}
		t.infos[term] = infos
	}
	lists := e.lister(ctx, t)
	c := lists.words(words, segment.URL)
	if c == nil {
		return nil
	}
	if err := lists.read(); err != nil {
		return err
	}
	for c.seek(0); c.at() != end; c.seek(c.at() + 1) {
		f(c.at())
	}
	if lists.meter.out {
		e.cut.Store(true)
	}
	return lists.err()
}
