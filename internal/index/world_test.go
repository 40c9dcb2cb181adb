package index

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/virtual"
)

// world is a crawl of one partition in memory, and its index.
type world struct {
	virtual.Store
	t       testing.TB
	now     time.Duration
	crawl   blobschema.Crawl
	man     blobschema.Manifest // of the last commit
	warcs   int
	calls   map[string]int // effects carried out, by type
	effects int
	kill    int // number of the effect after which a step is killed; -1: none

	document time.Duration // time to read a document; a segment takes half of it per document
	unstored int           // documents read and not yet in a segment
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, Store: virtual.NewStore(), calls: map[string]int{}, kill: -1,
		crawl: blobschema.Crawl{Version: wire.Version, ID: "test", HashKey: make([]byte, 16), Slots: 16, Partitions: 1},
	}
}

func (w *world) clone() *world {
	c := *w
	c.Store, c.calls = w.Clone(), map[string]int{}
	return &c
}

// answer is the result of a request.
type answer struct {
	url        string
	generation uint32
	outcome    blobschema.Outcome // 0: OK
	kind       string             // media type; "": text/html
	body       string
	gzip       bool
	noIndex    bool
	same       *blobschema.Page // original, if this is a revisit
}

// page returns a small HTML page.
func page(title, text string) string {
	return fmt.Sprintf("<html lang=en><head><title>%s</title></head><body><h1>%[1]s</h1><p>%s</p></body></html>", title, text)
}

// commit adds a commit of answers with one WARC object, and returns their page records.
func (w *world) commit(list ...answer) []blobschema.Page {
	w.t.Helper()
	w.now += time.Minute
	w.warcs++
	file := naming.WARC(w.crawl.ID, 0, 1, uint64(w.warcs), true)
	enc := warc.NewEncoder(warc.GzipFast)
	var object []byte
	var pages []blobschema.Page
	for _, a := range list {
		p := blobschema.Page{URL: a.url, Generation: a.generation, Outcome: a.outcome, Time: virtual.Epoch.Add(w.now), NoIndex: a.noIndex, MIME: "text/html"}
		if a.kind != "" {
			p.MIME = a.kind
		}
		switch {
		case a.outcome != 0:
		case a.same != nil:
			o := a.same.Payload()
			p.Outcome, p.Original = blobschema.OutcomeOK, &o
		default:
			p.Outcome, p.Status, p.BodyBytes = blobschema.OutcomeOK, 200, int64(len(a.body))
			object = w.record(enc, object, &p, a)
			p.WARC = file
		}
		pages = append(pages, p)
	}
	w.must(w.Put(file, object))
	m := w.man
	if m.Seq > 0 {
		m.Commits = append(slices.Clone(m.Commits), blobschema.CommitRange{Fence: 1, From: m.Seq, To: m.Seq})
	}
	m.Version, m.Crawl, m.Seq, m.Fence, m.Time, m.WARCs = wire.Version, w.crawl.ID, m.Seq+1, 1, virtual.Epoch.Add(w.now), []string{file}
	hash, err := w.crawl.Hash()
	w.must(err)
	name := naming.Commit(w.crawl.ID, 0, m.Seq, 1)
	data, man, err := blobschema.EncodeCommit(&blobschema.Commit{Manifest: m, Pages: pages}, name, hash)
	w.must(err)
	w.must(w.Put(name, data))
	w.man = man
	w.write(naming.HeadKey(w.crawl.ID, 0), blobschema.Head{Fence: 1, Commit: name, Seq: m.Seq})
	return pages
}

func (w *world) record(enc *warc.Encoder, object []byte, p *blobschema.Page, a answer) []byte {
	fields := []warc.HeaderField{{Name: "Content-Type", Value: p.MIME}}
	body := []byte(a.body)
	if a.gzip {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err := z.Write(body)
		w.must(errors.Join(err, z.Close()))
		body, fields = b.Bytes(), append(fields, warc.HeaderField{Name: "Content-Encoding", Value: "gzip"})
	}
	p.Offset = int64(len(object))
	object, _, err := enc.Append(object, &warc.Record{
		Type: warc.TypeResponse, Date: p.Time, TargetURI: p.URL, ContentType: "application/http;msgtype=response",
		Header: warc.AppendHTTPResponseHead(nil, "HTTP/1.1", 200, "OK", fields), Body: body,
	})
	w.must(err)
	p.Length = int64(len(object)) - p.Offset
	return object
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(key string, v any) {
	b, err := json.Marshal(v)
	w.must(err)
	w.Write(key, b)
}

var errKilled = errors.New("killed")

func (w *world) apply(effect actor.Effect) (any, error) {
	w.now += time.Millisecond
	w.calls[fmt.Sprintf("%T", effect)[len("actor."):]]++
	switch e := effect.(type) {
	case actor.Sleep:
		w.now += e.For
		return nil, nil
	case actor.Work:
		v, err := e.Do()
		if read, ok := v.(pages); ok {
			w.now += time.Duration(len(read.docs)) * w.document
			w.unstored += len(read.docs)
		} else {
			w.now += time.Duration(w.unstored) * w.document / 2
			w.unstored = 0
		}
		return v, err
	case actor.Send:
		return nil, nil
	}
	v, ok, err := w.Apply(effect)
	if !ok {
		return nil, fmt.Errorf("effect %T is unknown here", effect)
	}
	return v, err
}

// running is a running step with its pending effects.
type running struct {
	virtual.Process
	step  *Step
	queue []actor.Issue
}

func (w *world) clock() actor.Now { return actor.Now{Wall: virtual.Epoch.Add(w.now), Mono: w.now} }

func (w *world) begin(cfg Config) *running {
	w.t.Helper()
	cfg.Crawl = w.crawl
	s, err := NewStep(cfg)
	w.must(err)
	r := &running{step: s}
	r.Process = virtual.Process{Actor: s, Now: w.clock, Carry: func(is actor.Issue) { r.queue = append(r.queue, is) }}
	r.Start()
	return r
}

// turn executes the next effect of a step.
func (w *world) turn(r *running) (ended bool, err error) {
	if ended, err := r.step.Ended(); ended {
		return true, err
	}
	is := r.queue[0]
	r.queue = r.queue[1:]
	v, err := w.apply(is.Effect)
	if w.effects++; w.effects-1 == w.kill {
		r.Kill()
		return true, errKilled
	}
	r.Reply(is.ID, v, err)
	return r.step.Ended()
}

func (w *world) run(cfg Config) (Report, error) {
	w.t.Helper()
	r := w.begin(cfg)
	for {
		if ended, err := w.turn(r); ended {
			return r.step.Report(), err
		}
	}
}

// step runs a step that must end without error.
func (w *world) step(cfg Config) Report {
	w.t.Helper()
	rep, err := w.run(cfg)
	w.must(err)
	return rep
}

func (w *world) manifest() (m blobschema.IndexManifest) {
	w.t.Helper()
	var h blobschema.IndexHead
	if rec := w.Table[naming.IndexKey(w.crawl.ID, 0)]; rec.Found {
		w.must(json.Unmarshal(rec.Value, &h))
		var err error
		m, err = blobschema.DecodeIndexManifest(w.Objects[h.Manifest])
		w.must(err)
		if h.Number != m.Number || h.Seq != m.Seq || h.Documents != m.Totals.Documents {
			w.t.Errorf("head %+v of manifest %+v", h, m)
		}
	}
	return m
}

// documents returns title and generation of the current documents of some segments, by URL. Two documents
// of a URL are an error.
func (w *world) documents(refs []blobschema.SegmentRef) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for i := range refs {
		r := w.open(&refs[i])
		gone, err := deleted(&refs[i])
		w.must(err)
		for doc := range uint32(r.Documents()) {
			if gone.Has(doc) {
				continue
			}
			d, err := r.Document(doc)
			w.must(err)
			if out[d.URL] != "" {
				w.t.Errorf("two documents of %s", d.URL)
			}
			out[d.URL] = fmt.Sprintf("%s/%d", d.Title, d.Generation)
		}
	}
	return out
}

func (w *world) open(ref *blobschema.SegmentRef) *segment.Reader {
	w.t.Helper()
	data := w.Objects[ref.Object]
	if int64(len(data)) != ref.Bytes {
		w.t.Fatalf("%s has %d bytes, not %d", ref.Object, len(data), ref.Bytes)
	}
	r, err := segment.Open(segment.InMemory(data), ref.Bytes)
	w.must(err)
	return r
}

func (w *world) shown() map[string]string { return w.documents(w.manifest().Segments) }
