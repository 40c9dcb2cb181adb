package blobschema

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// EncodeJob encodes a job: a partition may have work for the index or the ranks. A job may be
// lost, late or repeated like a wake: the records define the work.
func EncodeJob(crawl string, p partition.ID) []byte { return EncodeWake(crawl, p) }

// DecodeJob decodes a job.
func DecodeJob(b []byte) (crawl string, p partition.ID, err error) { return DecodeWake(b) }

// IndexHead is the record that names the searchable part of a partition's commits. Steps
// replace it by compare-and-set. The step that loses a race has no effect.
type IndexHead struct {
	Partition partition.ID `json:"partition"`
	Number    uint64       `json:"number"` // of the manifest; grows by one each time
	Manifest  string       `json:"manifest"`
	Seq       uint64       `json:"seq"`               // the commits up to this one are in the index
	Anchors   uint64       `json:"anchors,omitempty"` // number of the rank job whose anchor texts are in the index
	Documents int64        `json:"documents"`
	Bytes     int64        `json:"bytes"` // of the segments
	Totals    IndexTotals  `json:"totals,omitzero"`
	Calls     Calls        `json:"calls,omitzero"`
	// Until is the time by which the current step of the partition must end. Other steps wait until then.
	Until time.Time `json:"until,omitzero"`
}

// IndexManifest describes the index of a partition. It is an object of CBOR.
type IndexManifest struct {
	Version   int          `cbor:"1,keyasint"`
	Crawl     string       `cbor:"2,keyasint"`
	Partition partition.ID `cbor:"3,keyasint"`
	Number    uint64       `cbor:"4,keyasint"`
	Seq       uint64       `cbor:"5,keyasint"`
	Time      time.Time    `cbor:"6,keyasint"`
	// Segments hold the documents, oldest first. If several hold versions of a document, the current
	// version is the one that no Deleted names.
	Segments []SegmentRef `cbor:"7,keyasint,omitempty"`
	// Anchors hold the texts of links to the documents, as documents of one field. A rank job
	// replaces all of them.
	Anchors   []SegmentRef `cbor:"8,keyasint,omitempty"`
	AnchorJob uint64       `cbor:"9,keyasint,omitempty"` // rank job of Anchors
	// Dropped are objects of previous manifests. They are deleted when no reader can use them
	// any more.
	Dropped []DroppedSegment `cbor:"10,keyasint,omitempty"`
	Totals  IndexTotals      `cbor:"11,keyasint"`
	// Removed are deleted documents of slots that have moved. The index of a previous owner of
	// the slot may still hold them. Sorted.
	Removed []RemovedDocument `cbor:"12,keyasint,omitempty"`
	// Terms is the version of the terms in all segments (token.Version). A search with terms of another version would
	// silently miss documents.
	Terms int `cbor:"13,keyasint"`
	// Part is the number of page records of the commit after Seq that are in the index too, without those of
	// robots.txt: the time of the step ended within that commit.
	Part uint64 `cbor:"14,keyasint,omitempty"`
}

// ErrTerms is the error for an index that another version of the program made. 'orbweaver index' rebuilds it.
var ErrTerms = errors.New("the index was made by another version")

// CheckTerms returns nil if the terms have the version, and otherwise an error that wraps [ErrTerms] and [wire.ErrVersion].
func (m *IndexManifest) CheckTerms(version int) error {
	if m.Terms == version {
		return nil
	}
	return fmt.Errorf("%w: its terms have version %d, this program's have version %d; 'orbweaver index' rebuilds it: %w", ErrTerms, m.Terms, version, wire.ErrVersion)
}

// RemovedDocument is a document that a generation of its URL has deleted.
type RemovedDocument struct {
	_           struct{} `cbor:",toarray"`
	Fingerprint uint64
	Slot        partition.Slot
	Generation  uint32
}

// Compare orders documents by slot and fingerprint.
func (d RemovedDocument) Compare(e RemovedDocument) int {
	return cmp.Or(cmp.Compare(d.Slot, e.Slot), cmp.Compare(d.Fingerprint, e.Fingerprint))
}

// SegmentRef names a segment and the documents of it that are not deleted.
type SegmentRef struct {
	Object    string         `cbor:"1,keyasint"`
	Bytes     int64          `cbor:"2,keyasint"`
	Documents uint32         `cbor:"3,keyasint"`           // with deleted ones
	Deleted   []byte         `cbor:"4,keyasint,omitempty"` // set of documents in the encoding of package segment; empty: none
	Gone      uint32         `cbor:"5,keyasint,omitempty"` // number of documents in Deleted
	First     partition.Slot `cbor:"6,keyasint"`
	Last      partition.Slot `cbor:"7,keyasint"`
	// Lengths are the numbers of tokens of each field, summed over all documents.
	Lengths []uint64 `cbor:"8,keyasint,omitempty"`
	Tier    uint8    `cbor:"9,keyasint,omitempty"` // number of merges
}

// DroppedSegment is an object that the manifest no longer names.
type DroppedSegment struct {
	Object string    `cbor:"1,keyasint"`
	Time   time.Time `cbor:"2,keyasint"` // when it was dropped
}

// IndexTotals are the figures of a partition's index.
type IndexTotals struct {
	Documents int64 `cbor:"1,keyasint,omitempty" json:"documents,omitempty"` // current documents
	Text      int64 `cbor:"2,keyasint,omitempty" json:"text,omitempty"`      // bytes of indexed text, with previous versions
	Pages     int64 `cbor:"3,keyasint,omitempty" json:"pages,omitempty"`     // page records read, without robots.txt
	NoIndex   int64 `cbor:"4,keyasint,omitempty" json:"noindex,omitempty"`   // pages that ask not to be indexed
	NoText    int64 `cbor:"5,keyasint,omitempty" json:"no_text,omitempty"`   // answers without text, such as images
	Damaged   int64 `cbor:"6,keyasint,omitempty" json:"damaged,omitempty"`   // pages whose WARC record is unreadable
	Replaced  int64 `cbor:"7,keyasint,omitempty" json:"replaced,omitempty"`  // previous versions of documents
	Deleted   int64 `cbor:"8,keyasint,omitempty" json:"deleted,omitempty"`   // documents that are gone or must no longer be shown
	Merges    int64 `cbor:"9,keyasint,omitempty" json:"merges,omitempty"`
}

// Add adds another partition's figures.
func (t *IndexTotals) Add(o *IndexTotals) { addFields(t, o, 1) }

// EncodeIndexManifest encodes m and sets its version.
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

// decodePacked decodes the CBOR in a section of a pack.
func decodePacked(data []byte, section string, to any) error {
	p, err := wire.Open(data)
	if err != nil {
		return err
	}
	b, err := p.Unpacked(section)
	if err != nil {
		return err
	}
	if err := cborDec.Unmarshal(b, to); err != nil {
		return wire.Damaged("CBOR: %v", err)
	}
	return nil
}
