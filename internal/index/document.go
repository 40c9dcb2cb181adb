package index

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/segment"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/token"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// document is a document with the tokens of its fields.
type document struct {
	segment.Document
	fields [segment.NumFields][]segment.TermPosition
	text   int64 // bytes of title, headings and text
}

// size returns the approximate memory of a document until it is in a segment.
func (d *document) size() (n int) {
	n = int(d.text)
	for _, f := range d.fields {
		n += 40 * len(f) // a term and its position
	}
	return n
}

// piece is a range of a WARC object, from an offset on, with some of its members.
type piece struct {
	data    []byte
	from    int64
	members []member
}

// pages is the outcome of a piece: documents, and members that were not read.
type pages struct {
	docs            []document
	noText, damaged int64
	rest            []member
}

// read reads the pages of a piece until their documents take too much memory.
func (p piece) read() (out pages) {
	r, size := pageReader{src: bytes.NewReader(p.data)}, 0
	for i, m := range p.members {
		if size >= pieceBytes {
			out.rest = p.members[i:]
			break
		}
		m.at.Offset -= p.from
		doc, err := r.read(m)
		switch {
		case err == nil:
			size += doc.size()
			out.docs = append(out.docs, doc)
		case errors.Is(err, errNoText):
			out.noText++
		default:
			out.damaged++
		}
	}
	return out
}

var errNoText = errors.New("the answer has no text")

// pageReader reads pages, one after another.
type pageReader struct {
	src    *bytes.Reader
	decode extract.Decoder
	tokens []token.Token
}

// read makes a document of a stored answer. If a page makes our own code panic, it counts as damaged, so that the
// other pages are indexed.
func (r *pageReader) read(m member) (doc document, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	rec, err := warc.ReadAt(r.src, m.at.Offset, m.at.Length)
	if err == nil {
		err = rec.Verify()
	}
	if err == nil && (rec.TargetURI != m.at.URL || rec.Type != warc.TypeResponse) {
		err = fmt.Errorf("%w: it is a %s of %s", wire.ErrDamaged, rec.Type, rec.TargetURI)
	}
	if err != nil {
		return doc, err
	}
	msg, err := rec.HTTP()
	if err != nil {
		return doc, err
	}
	contentType, codings := "", []string(nil)
	for _, f := range msg.Fields {
		switch {
		case strings.EqualFold(f.Name, "Content-Type"):
			contentType = f.Value
		case strings.EqualFold(f.Name, "Content-Encoding"):
			codings = append(codings, f.Value)
		}
	}
	r.decode.Open(rec.Body, extract.Coding(codings))
	body := r.decode.UpTo(min(extract.DecodedLimit(len(rec.Body), text.MaxHTML), text.MaxHTML))
	u, err := weburl.Parse(m.page.URL)
	if err != nil {
		return doc, err
	}
	found, ok := text.Extract(contentType, body, m.page.URL)
	if !ok {
		return doc, errNoText
	}
	return r.document(m, u, &found), nil
}

// document returns the searchable content of a page.
func (r *pageReader) document(m member, u weburl.URL, found *text.Document) document {
	shown := found.Body
	if found.Description != "" && !strings.Contains(found.Body, found.Description) {
		shown = found.Description + "\n" + found.Body
	}
	text := shown
	if found.Aside != "" {
		text += "\n" + found.Aside
	}
	at := m.page.Time
	if ofItself(m.page) {
		at = m.page.Original.Time // identifies the payload later
	}
	d := document{Document: segment.Document{
		URL: m.page.URL, Host: string(u.Host()), Fingerprint: m.id.Fingerprint, Slot: m.id.Slot, Generation: m.page.Generation,
		Time: at, Published: found.Published, Lang: found.Lang, SimHash: found.SimHash,
		Title: found.Title, Text: text, BodyBytes: m.page.BodyBytes,
	}}
	d.text = int64(len(found.Title) + len(found.Headings) + len(text))
	d.fields[segment.Title] = r.terms(found.Title, found.Lang)
	d.fields[segment.Headings] = r.terms(found.Headings, found.Lang)
	d.fields[segment.Body] = r.terms(shown, found.Lang)
	d.fields[segment.Aside] = r.terms(found.Aside, found.Lang)
	d.fields[segment.URL] = r.terms(urlText(u), "")
	return d
}

// terms returns the tokens of a text.
func (r *pageReader) terms(s, lang string) []segment.TermPosition {
	if s == "" {
		return nil
	}
	r.tokens = token.Append(r.tokens[:0], s, lang)
	out := make([]segment.TermPosition, len(r.tokens))
	for i := range r.tokens {
		out[i] = segment.TermPosition{Term: r.tokens[i].Term, Position: r.tokens[i].Position}
	}
	clear(r.tokens) // release the text
	return out
}

// urlText returns a URL as text: its host, then path and query without escapes.
func urlText(u weburl.URL) string {
	rest, err := url.PathUnescape(u.RequestURI())
	if err != nil {
		rest = u.RequestURI()
	}
	return string(u.Host()) + " " + rest
}
