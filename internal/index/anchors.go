package index

import (
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// maxCopies bounds how often a text counts. It counts once per host with such links, because the links of one
// host usually have one author.
const maxCopies = 4

// textGap is the distance of two texts, in positions, so that no phrase spans both.
const textGap = 16

// takeAnchors replaces the texts of links by those of the last finished rank job, given the records of the job and
// of the partition.
func (s *Step) takeAnchors(t *actor.Task, job, head actor.Record) error {
	if !job.Found {
		return nil
	}
	j, err := actor.Decode[ranks.Job](job, "rank job")
	if err != nil {
		return err
	}
	done := j.Finished()
	if done == nil || done.Number <= s.man.AnchorJob {
		return nil
	}
	h, err := actor.DecodeFound[ranks.Head](head, "rank head")
	if err != nil {
		return err
	}
	result, ok := h.Result(done.Number) // a partition that is newer than the job has none
	if !ok && h.Job == done.Number {
		return nil // the head was read before the job was done
	}
	if s.late(t) {
		s.report.Behind = true
		return nil
	}
	var data []byte
	if result.Anchors != "" {
		if data, err = t.Object(result.Anchors, 0, -1); errors.Is(err, actor.ErrNotFound) {
			return nil // a later job has finished since
		} else if err != nil {
			return err
		}
	}
	v, err := t.Do(actor.Work{Do: func() (any, error) { return s.anchorSegments(data) }})
	if err != nil {
		return fmt.Errorf("%s: %w", result.Anchors, err)
	}
	m := s.next(t)
	for _, ref := range m.Anchors {
		m.Dropped = append(m.Dropped, blobschema.DroppedSegment{Object: ref.Object, Time: m.Time})
	}
	m.Anchors, m.AnchorJob = nil, done.Number
	for _, out := range v.([]segment.Output) {
		ref, err := s.put(t, m, out)
		if err != nil {
			return err
		}
		m.Anchors = append(m.Anchors, ref)
	}
	return s.commit(t, m)
}

// anchorSegments returns the segments of an anchors object. Without an object there are no targets.
func (s *Step) anchorSegments(data []byte) (out []segment.Output, err error) {
	if data == nil {
		return nil, nil
	}
	targets, err := ranks.DecodeAnchors(data)
	if err != nil {
		return nil, err
	}
	var r pageReader
	b := segment.NewBuilder()
	for i := range targets {
		a := &targets[i]
		doc := segment.Document{Host: a.Host, Fingerprint: a.Fingerprint, Slot: s.slotOf(a.Host)}
		var fields [segment.NumFields][]segment.TermPosition
		at := int32(0)
		for _, text := range a.Texts {
			terms := r.terms(text.Text, "")
			for range min(max(text.Hosts, 1), maxCopies) {
				for _, term := range terms {
					fields[segment.Anchor] = append(fields[segment.Anchor], segment.TermPosition{Term: term.Term, Position: at + term.Position})
				}
				if n := len(terms); n > 0 {
					at += terms[n-1].Position + textGap
				}
			}
		}
		// A target that does not fit is left out: it has too many tokens, or another one has its fingerprint.
		if err := b.Add(doc, fields); err != nil && !errors.Is(err, segment.ErrDocument) {
			return nil, err
		}
		if b.Size() >= s.cfg.Memory || i == len(targets)-1 {
			out = append(out, b.Finish())
			b = segment.NewBuilder()
		}
	}
	return out, nil
}
