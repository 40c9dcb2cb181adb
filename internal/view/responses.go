package view

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/extract"
)

// Member reads the stored bytes of a page's response record.
func (v *View) Member(ctx context.Context, pg blobschema.Page) ([]byte, error) {
	if pg.WARC == "" {
		return nil, fmt.Errorf("no answer of %s is stored: %s", pg.URL, pg.Outcome)
	}
	if pg.Length <= 0 || pg.Length > warc.MaxBlock {
		return nil, fmt.Errorf("read record of %s: %w: %d bytes", pg.URL, wire.ErrDamaged, pg.Length)
	}
	return v.store.Object(ctx, pg.WARC, pg.Offset, pg.Length)
}

// Response reads and verifies a page's response record, or its revisit record, which has only
// the header.
func (v *View) Response(ctx context.Context, pg blobschema.Page) (*warc.Record, error) {
	kind := warc.TypeResponse
	if pg.Original != nil {
		kind = warc.TypeRevisit
	}
	return v.warcRecord(ctx, pg, kind)
}

// Payload reads and verifies the response record with the payload of a page: its own, or the
// original of a revisit.
func (v *View) Payload(ctx context.Context, pg blobschema.Page) (*warc.Record, error) {
	if pg.Original == nil {
		return v.Response(ctx, pg)
	}
	o := pg.Payload()
	rec, err := v.warcRecord(ctx, blobschema.Page{URL: o.URL, WARC: o.WARC, Offset: o.Offset, Length: o.Length}, warc.TypeResponse)
	if err == nil && pg.Digest != "" && rec.PayloadDigest != pg.Digest {
		err = fmt.Errorf("%w: its payload is %s, not %s", wire.ErrDamaged, rec.PayloadDigest, pg.Digest)
	}
	if err != nil {
		return nil, fmt.Errorf("original of %s: %w", pg.URL, err)
	}
	return rec, nil
}

func (v *View) warcRecord(ctx context.Context, pg blobschema.Page, kind warc.Type) (*warc.Record, error) {
	data, err := v.Member(ctx, pg)
	if err != nil {
		return nil, err
	}
	rec, err := warc.ReadAt(bytes.NewReader(data), 0, int64(len(data)))
	if err == nil {
		err = rec.Verify()
	}
	if err == nil && (rec.TargetURI != pg.URL || rec.Type != kind) {
		err = fmt.Errorf("%w: it is a %s of %s", wire.ErrDamaged, rec.Type, rec.TargetURI)
	}
	if err != nil {
		return nil, fmt.Errorf("read record of %s in %s at %d: %w", pg.URL, pg.WARC, pg.Offset, err)
	}
	return rec, nil
}

// Decoded returns the body of a response record without its content coding, and at most limit bytes of it. A body that
// was cut when it was stored ends where it ends. The coding is returned too; "" for none.
func Decoded(rec *warc.Record, limit int) (body []byte, coding string, err error) {
	m, err := rec.HTTP()
	if err != nil {
		return nil, "", err
	}
	var codings []string
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, "Content-Encoding") {
			codings = append(codings, f.Value)
		}
	}
	var d extract.Decoder
	coding = extract.Coding(codings)
	d.Open(rec.Body, coding)
	return d.UpTo(limit), coding, nil
}

// File returns the path of an object's file; "" where objects are not files.
func (v *View) File(ctx context.Context, name string) (string, error) {
	if p := v.platform(); p != nil {
		return p.File(ctx, name)
	}
	return "", nil
}
