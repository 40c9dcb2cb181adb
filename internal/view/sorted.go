package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// Record is a page record in its place.
type Record struct {
	blobschema.Page
	Partition partition.ID `json:"-"`
	Key       string       `json:"-"` // of its URL in the capture index
	// Referrer is the page with a link to it that was fetched first, if it was wanted.
	Referrer string `json:"first_referrer,omitempty"`
}

// Sorted yields page records by partition, and in each partition in the order of the capture index, with their referrers if
// they are wanted. An error ends it. Memory, tmp and sorted are as for [View.Links].
func (v *View) Sorted(ctx context.Context, which Records, referrers bool, tmp string, sorted func(n int64)) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		s := &sorter{tmp: tmp, memory: sortMemory / 2}
		err := v.addRecords(ctx, which, s, referrers, tmp, sorted)
		if err == nil {
			err = s.each(func(line []byte) error {
				r, err := recordOf(line)
				if err = errors.Join(err, ctx.Err()); err != nil {
					return err
				}
				if !yield(r, nil) {
					return errStop
				}
				return nil
			})
		}
		if err = errors.Join(err, s.close()); err != nil && !errors.Is(err, errStop) {
			yield(Record{}, err)
		}
	}
}

// recordOf parses a line of addRecords: partition, key, number, JSON.
func recordOf(line []byte) (r Record, err error) {
	f := bytes.SplitN(line, []byte("\t"), 4)
	if err := json.Unmarshal(f[len(f)-1], &r); err != nil || len(f) != 4 {
		return r, fmt.Errorf("sort records: a line of %d fields: %w", len(f), err)
	}
	id, err := strconv.ParseUint(string(f[0]), 10, 32)
	r.Partition, r.Key = partition.ID(id), string(f[1])
	return r, err
}

// addRecords adds a line for each record. Where referrers are wanted, it joins them by fingerprint first.
func (v *View) addRecords(ctx context.Context, which Records, s *sorter, referrers bool, tmp string, sorted func(n int64)) (err error) {
	if !referrers {
		return v.eachRecord(ctx, which, func(r *Record, n int) error { return s.add(r.line(n)) })
	}
	byURL := &sorter{tmp: tmp, memory: sortMemory / 2}
	defer func() { err = errors.Join(err, byURL.close()) }()
	var first Link // of those to one target
	flush := func() error {
		if first.Target == "" {
			return nil
		}
		return byURL.add(fmt.Appendf(nil, "%016x\t%s%s\n", v.hash.Fingerprint(first.Target), nameMark, first.Source))
	}
	all := v.Since(time.Time{}) // a referrer may be older than the pages that are wanted
	err = all.linksByTarget(ctx, tmp, sorted, func(l *Link) error {
		if l.Target == first.Target {
			if l.Fetched.Before(first.Fetched) {
				first = *l
			}
			return nil
		}
		err := flush()
		first = *l
		return err
	})
	if err = errors.Join(err, flush()); err != nil {
		return err
	}
	err = v.eachRecord(ctx, which, func(r *Record, n int) error {
		return byURL.add(fmt.Appendf(nil, "%016x\t%s%s", v.hash.Fingerprint(r.URL), linkMark, r.line(n)))
	})
	if err != nil {
		return err
	}
	var target, source string
	return byURL.each(func(line []byte) error {
		fp, rest, _ := strings.Cut(string(line), "\t")
		if of, isName := strings.CutPrefix(rest, nameMark); isName {
			target, source = fp, strings.TrimSuffix(of, "\n")
			return nil
		}
		rest = rest[len(linkMark):]
		if fp != target {
			return s.add([]byte(rest))
		}
		r, err := recordOf([]byte(rest))
		if err != nil {
			return err
		}
		r.Referrer = source
		return s.add(r.line(0))
	})
}

func (r *Record) line(n int) []byte {
	data, err := json.Marshal(r)
	if err != nil {
		panic(err) // numbers and texts always encode
	}
	return fmt.Appendf(nil, "%05d\t%s\t%09d\t%s\n", r.Partition, r.Key, n, data)
}

// eachRecord calls use for each record, with its number.
func (v *View) eachRecord(ctx context.Context, which Records, use func(r *Record, n int) error) error {
	superseded, err := v.superseded(ctx, which)
	if err != nil {
		return err
	}
	heads, err := v.Heads(ctx)
	if err != nil {
		return err
	}
	n := 0
	for i := range heads {
		id := heads[i].Partition
		for pg, err := range v.PagesSince(ctx, []partition.ID{id}, nil) {
			if err != nil {
				return err
			}
			if superseded(&pg) {
				continue
			}
			u, err := weburl.Parse(pg.URL)
			if err != nil {
				return fmt.Errorf("page record: %w", err)
			}
			if err := use(&Record{Page: pg, Partition: id, Key: u.Key()}, n); err != nil {
				return err
			}
			n++
		}
	}
	return nil
}
