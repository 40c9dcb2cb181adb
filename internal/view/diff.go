package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// Change is the kind of a difference between two crawls.
type Change string

// The kinds. A page is an answer with status 2xx.
const (
	PageNew       Change = "new"     // a page only in the later crawl, and not one that moved there
	PageGone      Change = "gone"    // a page only in the earlier crawl: now 404, 410, or without a record
	PageChanged   Change = "changed" // a page in both, with another payload
	PageMoved     Change = "moved"   // a page that redirects now, or is gone while a new URL has its payload; or a redirect to another URL
	StatusChanged Change = "status"  // another outcome or status
)

// Changes lists all kinds.
var Changes = []Change{PageNew, PageGone, PageChanged, PageMoved, StatusChanged}

// Difference is a URL that differs between two crawls.
type Difference struct {
	Change Change `json:"change"`
	URL    string `json:"url"`
	To     string `json:"to,omitempty"` // new URL of what moved
	Before *Seen  `json:"before,omitempty"`
	After  *Seen  `json:"after,omitempty"` // of what moved: the record of URL
}

// Seen is the last record of a URL in a crawl.
type Seen struct {
	Outcome  blobschema.Outcome `json:"outcome"`
	Status   uint16             `json:"status,omitempty"`
	Digest   string             `json:"digest,omitempty"`
	Bytes    int64              `json:"body_bytes,omitempty"`
	Redirect string             `json:"redirect,omitempty"`
	Time     time.Time          `json:"time"`
	// Generation decides which record is the last one.
	Generation uint32 `json:"generation,omitempty"`
}

// page reports whether s is a page.
func (s *Seen) page() bool {
	return s != nil && (s.Outcome == blobschema.OutcomeOK || s.Outcome == blobschema.OutcomeUnchanged)
}

// missing reports whether there is nothing.
func (s *Seen) missing() bool { return s == nil || s.Status == 404 || s.Status == 410 }

// Diff holds the differences between two crawls, sorted by URL. The caller closes it.
type Diff struct {
	Counts map[Change]int64
	Same   int64 // URLs without a difference
	Other  int64 // URLs that only one crawl knows, without a page

	only    []Change
	records *sorter // records of both crawls by URL
	places  *sorter // pages that are new or gone, by payload
	found   *sorter // differences by URL
}

// diffMemory is how many bytes of records are sorted at once; two more sorters have half of it each.
const diffMemory = 24 << 20

// maxTwins bounds the URLs of one payload that are looked for at new URLs.
const maxTwins = 1000

// Diff compares the crawl with a later one. It counts all differences and keeps those of some kinds, nil for all. It reads
// each page record once and uses some 200 MB of memory; the rest is sorted in files in tmp, "" for the usual folder.
func (v *View) Diff(ctx context.Context, later *View, only []Change, tmp string) (d *Diff, err error) {
	d = newDiff(only, tmp, diffMemory)
	defer func() {
		if err = errors.Join(err, d.records.close(), d.places.close()); err != nil {
			err = errors.Join(err, d.Close())
		}
	}()
	for side, crawl := range []*View{v, later} {
		for pg, err := range crawl.Pages(ctx, EveryRecord) {
			if err != nil {
				return nil, fmt.Errorf("crawl %s: %w", crawl.id, err)
			}
			if pg.Robots {
				continue
			}
			if err := d.add(side, &pg); err != nil {
				return nil, err
			}
		}
	}
	if err := d.compare(); err != nil {
		return nil, err
	}
	return d, d.match()
}

func newDiff(only []Change, tmp string, memory int) *Diff {
	newSorter := func(memory int) *sorter { return &sorter{tmp: tmp, memory: memory} }
	return &Diff{Counts: map[Change]int64{}, only: only, records: newSorter(memory), places: newSorter(memory / 2), found: newSorter(memory / 2)}
}

// add adds a record of the earlier crawl, side 0, or of the later one, side 1.
func (d *Diff) add(side int, pg *blobschema.Page) error {
	s := Seen{pg.Outcome, pg.Status, pg.Digest, pg.BodyBytes, pg.Redirect, pg.Time, pg.Generation}
	return d.records.add(line(s, pg.URL, strconv.Itoa(side)))
}

// line makes a line of keys, which have no control characters, and a value. Lines sort by the keys.
func line(v any, keys ...string) []byte {
	var b bytes.Buffer
	for _, k := range keys {
		b.WriteString(k)
		b.WriteByte('\t')
	}
	_ = json.NewEncoder(&b).Encode(v) // into memory, of plain data: it cannot fail
	return b.Bytes()
}

// split undoes line: it decodes the value and returns n keys.
func split(text []byte, n int, v any) ([]string, error) {
	parts := bytes.SplitN(text, []byte("\t"), n+1)
	if len(parts) != n+1 {
		return nil, wire.Damaged("a sorted line has %d parts", len(parts))
	}
	keys := make([]string, n)
	for i := range keys {
		keys[i] = string(parts[i])
	}
	return keys, json.Unmarshal(parts[n], v)
}

// compare compares the last records of each URL.
func (d *Diff) compare() error {
	var url string
	var seen [2]*Seen
	next := func() error {
		if seen[0] == nil && seen[1] == nil {
			return nil
		}
		return d.judge(url, seen[0], seen[1])
	}
	err := d.records.each(func(text []byte) error {
		s := &Seen{}
		keys, err := split(text, 2, s)
		if err != nil {
			return err
		}
		if keys[0] != url {
			if err := next(); err != nil {
				return err
			}
			url, seen = keys[0], [2]*Seen{}
		}
		side := &seen[keys[1][0]-'0']
		if old := *side; old == nil || s.Generation > old.Generation || s.Generation == old.Generation && s.Time.After(old.Time) {
			*side = s
		}
		return nil
	})
	if err != nil {
		return err
	}
	return next()
}

// judge decides how the last records of a URL differ. A page that is new or gone may have moved: match decides.
func (d *Diff) judge(url string, a, b *Seen) error {
	diff := &Difference{URL: url, Before: a, After: b}
	switch {
	case a.page() && b.page():
		if diff.Change = PageChanged; a.Digest == b.Digest || a.Digest == "" || b.Digest == "" {
			diff.Change = ""
		}
	case a.page() && b.missing():
		return d.place(PageGone, a.Digest, a.Bytes, diff)
	case b.page() && a.missing():
		return d.place(PageNew, b.Digest, b.Bytes, diff)
	case a == nil || b == nil:
		d.Other++
		return nil
	case b.Outcome == blobschema.OutcomeRedirect && (a.page() || a.Outcome == b.Outcome && a.Redirect != b.Redirect):
		diff.Change, diff.To = PageMoved, b.Redirect
	case a.Outcome != b.Outcome || a.Status != b.Status:
		diff.Change = StatusChanged
	}
	return d.keep(diff)
}

// place keeps a page that is new or gone for match, unless it has no payload to compare.
func (d *Diff) place(c Change, digest string, size int64, diff *Difference) error {
	if diff.Change = c; digest == "" || size == 0 {
		return d.keep(diff)
	}
	return d.places.add(line(diff, digest, string(c), diff.URL)) // of a payload, "gone" sorts before "new"
}

// match finds new URLs with the payloads of URLs that are gone.
func (d *Diff) match() error {
	payload, gone := "", []*Difference(nil)
	rest := func() error {
		for _, g := range gone {
			if err := d.keep(g); err != nil {
				return err
			}
		}
		gone = nil
		return nil
	}
	err := d.places.each(func(text []byte) error {
		diff := &Difference{}
		keys, err := split(text, 3, diff)
		if err != nil {
			return err
		}
		if keys[0] != payload {
			if err := rest(); err != nil {
				return err
			}
			payload = keys[0]
		}
		switch {
		case diff.Change == PageGone && len(gone) < maxTwins:
			gone = append(gone, diff)
			return nil
		case diff.Change == PageNew && len(gone) > 0:
			gone[0].Change, gone[0].To = PageMoved, diff.URL
			diff, gone = gone[0], gone[1:]
		}
		return d.keep(diff)
	})
	if err != nil {
		return err
	}
	return rest()
}

// keep counts a difference, and keeps it if it is of a kind that is wanted.
func (d *Diff) keep(diff *Difference) error {
	if diff.Change == "" {
		d.Same++
		return nil
	}
	d.Counts[diff.Change]++
	if d.only != nil && !slices.Contains(d.only, diff.Change) {
		return nil
	}
	return d.found.add(line(diff, diff.URL))
}

// Each calls f with each kept difference, by URL. It can be called once.
func (d *Diff) Each(f func(*Difference) error) error {
	return d.found.each(func(text []byte) error {
		diff := &Difference{}
		if _, err := split(text, 1, diff); err != nil {
			return err
		}
		return f(diff)
	})
}

// Close deletes the files of d.
func (d *Diff) Close() error { return d.found.close() }
