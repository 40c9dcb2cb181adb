package crawl

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
)

const (
	// A WARC object with this many bytes or pages is full.
	maxWARCBytes = 32 << 20
	maxWARCPages = 1000
	// minRevisit is the least size in bytes of a payload that justifies a reference instead of a copy: the revisit record
	// itself takes half of it.
	minRevisit  = 1 << 10
	maxPayloads = 1 << 15 // number of remembered payloads; one that is forgotten is stored again
)

// archive writes WARC objects. A page enters a commit only after its WARC was put. The next step in the same process keeps
// the memory of payloads.
type archive struct {
	lease    *lease
	fence    uint64 // fence of the lease under which files are numbered
	files    uint64 // number of files begun under that fence
	open     *warcFile
	payloads recent[string, blobschema.Original] // locations of the payloads stored last, by digest
	encoder  *warc.Encoder
}

// warcFile is the WARC object being filled.
type warcFile struct {
	name  string
	parts [][]byte // records, as the fetches returned them
	size  int
	pages int
}

// store appends an answer's records to the open file of a batch, and returns the number of bytes added. A full file is put
// at once, while fetching continues.
func (a *archive) store(b *batch, p *blobschema.Page, o *actor.Outcome) (stored int64) {
	a.refer(p, o)
	if len(o.Record) == 0 {
		return 0
	}
	if w := a.open; w != nil && (w.size+len(o.Record) > maxWARCBytes || w.pages >= maxWARCPages) {
		a.seal(b)
	}
	if a.open == nil {
		stored = a.begin()
	}
	w := a.open
	p.WARC, p.Offset = w.name, int64(w.size+o.ResponseAt)
	w.parts, w.size = append(w.parts, o.Record), w.size+len(o.Record)
	w.pages++
	if p.Original == nil && worthReference(p, o) {
		a.payloads.put(p.Digest, p.Payload(), maxPayloads)
	}
	return stored + int64(len(o.Record))
}

// refer turns the record of an answer into a revisit record if this partition has stored the same payload before, for this
// URL or another.
func (a *archive) refer(p *blobschema.Page, o *actor.Outcome) {
	if p.Original != nil || !worthReference(p, o) {
		return
	}
	of, known := a.payloads.get(p.Digest)
	if !known {
		return
	}
	rec := warc.Revisit(p.Time, p.URL, o.IP, warc.ProfileIdenticalPayload, p.Digest, of, o.Head)
	rec.ConcurrentTo = o.RequestID
	data, _, err := a.records().Append(o.Record[:o.ResponseAt:o.ResponseAt], &rec)
	if err != nil {
		return // it is stored in full
	}
	p.Original, p.Length = &of, int64(len(data)-o.ResponseAt)
	o.Record = data
}

func worthReference(p *blobschema.Page, o *actor.Outcome) bool {
	return len(o.Head) > 0 && p.BodyBytes >= minRevisit && p.Truncated == ""
}

// records returns the encoder of the records that the step writes itself.
func (a *archive) records() *warc.Encoder {
	if a.encoder == nil {
		kind := warc.None
		if a.lease.cfg.Compressed {
			kind = warc.GzipFast
		}
		a.encoder = warc.NewEncoder(kind)
	}
	return a.encoder
}

// begin opens a file and returns the size of its first record. The file name contains the fence, so that no other step can
// put it.
func (a *archive) begin() int64 {
	l := a.lease
	if a.fence != l.head.Fence {
		a.fence, a.files = l.head.Fence, 0
	}
	a.files++
	w := &warcFile{name: naming.WARC(l.cfg.Crawl.ID, l.cfg.Partition, a.fence, a.files, l.cfg.Compressed)}
	info := warc.Info(l.Now().Wall.UTC(), w.name, warc.InfoFields{
		Software: l.cfg.Software, UserAgent: l.cfg.Crawl.Settings.UserAgent, IsPartOf: l.cfg.Crawl.ID,
	})
	data, _, err := a.records().Append(nil, info)
	if err != nil {
		l.End(err)
	}
	w.parts, w.size = [][]byte{data}, len(data)
	a.open = w
	return int64(len(data))
}

// seal puts the open file of a batch, if there is one.
func (a *archive) seal(b *batch) {
	w := a.open
	if w == nil {
		return
	}
	a.open = nil
	b.warcs = append(b.warcs, w.name)
	b.puts++
	a.lease.put(actor.PutObject{Name: w.name, Parts: w.parts}, func() { b.puts-- })
}
