package blobschema

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// EncodeJob encodes a job: there may be something to do for a partition. Like a wake it
// may be lost, late or repeated: what there is to do, the records say.
func EncodeJob(crawl string, p partition.ID) []byte { return EncodeWake(crawl, p) }

// DecodeJob decodes a job.
func DecodeJob(b []byte) (crawl string, p partition.ID, err error) { return DecodeWake(b) }

// IndexHead is the record that names what is searchable of a partition's commits. It is
// replaced by compare-and-set; whoever loses has done its work for nothing, and no harm.
type IndexHead struct {
	Partition partition.ID `json:"partition"`
	Number    uint64       `json:"number"` // of the manifest; grows by one each time
	Manifest  string       `json:"manifest"`
	Seq       uint64       `json:"seq"`               // the commits up to this one are in the index
	Anchors   uint64       `json:"anchors,omitempty"` // number of the rank job whose anchor texts are
	Documents int64        `json:"documents"`
	Bytes     int64        `json:"bytes"` // of the segments
	Totals    IndexTotals  `json:"totals,omitzero"`
	Calls     Calls        `json:"calls,omitzero"`
	// Until is when the step that works on the partition must have ended; other steps leave it alone before that.
	Until time.Time `json:"until,omitzero"`
}

// IndexManifest is what makes up the index of a partition: an object, CBOR.
type IndexManifest struct {
	Version   int          `cbor:"1,keyasint"`
	Crawl     string       `cbor:"2,keyasint"`
	Partition partition.ID `cbor:"3,keyasint"`
	Number    uint64       `cbor:"4,keyasint"`
	Seq       uint64       `cbor:"5,keyasint"`
	Time      time.Time    `cbor:"6,keyasint"`
	// Segments hold the documents, oldest first. Of a document's versions in several the one
	// that no Deleted names is the current one.
	Segments []SegmentRef `cbor:"7,keyasint,omitempty"`
	// Anchors hold the texts of links to the documents, as documents of one field. They are
	// replaced all together.
	Anchors   []SegmentRef `cbor:"8,keyasint,omitempty"`
	AnchorJob uint64       `cbor:"9,keyasint,omitempty"` // rank job they are of
	// Dropped are objects that former manifests named, to be deleted once nobody reads by them
	// any more.
	Dropped []DroppedSegment `cbor:"10,keyasint,omitempty"`
	Totals  IndexTotals      `cbor:"11,keyasint"`
	// Removed are documents of slots that have moved that are gone: the index of another partition that
	// had the slot may still hold them. Sorted.
	Removed []RemovedDocument `cbor:"12,keyasint,omitempty"`
	// Terms is the version of the terms in all segments (token.Version): words of another would not be
	// found, and nobody would know.
	Terms int `cbor:"13,keyasint"`
	// Part is how many page records of the commit after Seq are in the index too, without those of robots.txt: the step's
	// time was up.
	Part uint64 `cbor:"14,keyasint,omitempty"`
}

// ErrTerms says that an index was made by another version of the program. 'orbweaver index' makes it again.
var ErrTerms = errors.New("the index was made by another version")

// CheckTerms reports whether the terms are of a version; else the error is [ErrTerms] and [wire.ErrVersion].
func (m *IndexManifest) CheckTerms(version int) error {
	if m.Terms == version {
		return nil
	}
	return fmt.Errorf("%w: its terms have version %d, this program's have version %d; 'orbweaver index' makes it again: %w", ErrTerms, m.Terms, version, wire.ErrVersion)
}

// RemovedDocument says that a document is gone as of a generation of its URL.
type RemovedDocument struct {
	_           struct{} `cbor:",toarray"`
	Fingerprint uint64
	Slot        partition.Slot
	Generation  uint32
}

// Compare orders by slot and fingerprint.
func (d RemovedDocument) Compare(e RemovedDocument) int {
	return cmp.Or(cmp.Compare(d.Slot, e.Slot), cmp.Compare(d.Fingerprint, e.Fingerprint))
}

// SegmentRef names a segment, and says what of it counts.
type SegmentRef struct {
	Object    string         `cbor:"1,keyasint"`
	Bytes     int64          `cbor:"2,keyasint"`
	Documents uint32         `cbor:"3,keyasint"`           // deleted ones included
	Deleted   []byte         `cbor:"4,keyasint,omitempty"` // set of documents, as package segment encodes it; empty: none
	Gone      uint32         `cbor:"5,keyasint,omitempty"` // how many those are
	First     partition.Slot `cbor:"6,keyasint"`
	Last      partition.Slot `cbor:"7,keyasint"`
	// Lengths are the sums over all documents of the tokens of each field.
	Lengths []uint64 `cbor:"8,keyasint,omitempty"`
	Tier    uint8    `cbor:"9,keyasint,omitempty"` // how often it was merged
}

// DroppedSegment is an object that is not named any more.
type DroppedSegment struct {
	Object string    `cbor:"1,keyasint"`
	Time   time.Time `cbor:"2,keyasint"` // since when
}

// IndexTotals are the figures of a partition's index.
type IndexTotals struct {
	Documents int64 `cbor:"1,keyasint,omitempty" json:"documents,omitempty"` // current ones
	Text      int64 `cbor:"2,keyasint,omitempty" json:"text,omitempty"`      // bytes of text that were indexed, former versions too
	Pages     int64 `cbor:"3,keyasint,omitempty" json:"pages,omitempty"`     // page records looked at, robots.txt apart
	NoIndex   int64 `cbor:"4,keyasint,omitempty" json:"noindex,omitempty"`   // that ask to be left out
	NoText    int64 `cbor:"5,keyasint,omitempty" json:"no_text,omitempty"`   // answers without text, as images
	Damaged   int64 `cbor:"6,keyasint,omitempty" json:"damaged,omitempty"`   // whose record could not be read: a fault of the archive
	Replaced  int64 `cbor:"7,keyasint,omitempty" json:"replaced,omitempty"`  // former versions of documents
	Deleted   int64 `cbor:"8,keyasint,omitempty" json:"deleted,omitempty"`   // documents that are gone, or may not be shown any more
	Merges    int64 `cbor:"9,keyasint,omitempty" json:"merges,omitempty"`
}

// Add adds another partition's figures.
func (t *IndexTotals) Add(o *IndexTotals) { addFields(t, o, 1) }

// EncodeIndexManifest encodes m, with its version set.
func EncodeIndexManifest(m *IndexManifest) ([]byte, error) {
	c := *m
	c.Version, c.Time = wire.Version, storedTime(m.Time)
	raw, err := cborEnc.Marshal(&c)
	if err != nil {
		return nil, fmt.Errorf("encode index manifest: %w", err)
	}
	return wire.Append(nil, []wire.Section{{Name: sectionManifest, Data: wire.AppendPacked(nil, raw)}}), nil
}

// DecodeIndexManifest decodes an index manifest. The errors are [wire.ErrDamaged] and [wire.ErrVersion].
func DecodeIndexManifest(data []byte) (m IndexManifest, err error) {
	err = decodePacked(data, sectionManifest, &m)
	if err == nil && m.Version != wire.Version {
		err = fmt.Errorf("%w: %d", wire.ErrVersion, m.Version)
	}
	if err != nil {
		return IndexManifest{}, fmt.Errorf("decode index manifest: %w", err)
	}
	return m, nil
}

// decodePacked decodes the CBOR of a pack's section.
func decodePacked(data []byte, section string, to any) error {
	p, err := wire.Open(data)
	if err != nil {
		return err
	}
	b, err := p.Section(section)
	if err == nil {
		b, err = wire.Unpack(b, wire.MaxSection)
	}
	if err != nil {
		return err
	}
	if err := cborDec.Unmarshal(b, to); err != nil {
		return wire.Damaged("CBOR: %v", err)
	}
	return nil
}
