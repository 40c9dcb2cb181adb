package extract

import (
	"bytes"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// head collects what a page says about itself.
type head struct {
	blobschema.Meta
	directives string
	canonical  []byte // href of the first link rel=canonical
	hreflang   []translation
	translated int    // bytes of all hrefs in hreflang
	h1         []byte // text of the first h1
	inH1       bool
}

// A translation is a link rel=alternate with hreflang, as written.
type translation struct {
	lang string
	href []byte
}

// link handles a link element.
func (d *document) link(a *attributes) {
	if len(a.href) == 0 || len(a.href) > maxHref {
		return
	}
	switch {
	case d.canonical == nil && hasToken(a.rel, "canonical"):
		d.canonical = bytes.Clone(a.href)
	case len(a.hreflang) > 0 && len(d.hreflang) < maxAlternates && d.translated+len(a.href) <= maxTranslated && hasToken(a.rel, "alternate"):
		d.hreflang = append(d.hreflang, translation{folded(a.hreflang, maxLang), bytes.Clone(a.href)})
		d.translated += len(a.href)
	}
}

// resolved returns the findings with absolute URLs. A URL that cannot be resolved is left out.
func (d *document) resolved(resolve func(ref string) (weburl.URL, error)) blobschema.Meta {
	h := d.Meta
	h.Charset = d.transcoder.charset
	h.H1 = string(bytes.TrimSuffix(d.h1, []byte(" ")))
	if u, err := resolve(string(trim(d.canonical))); err == nil && d.canonical != nil {
		h.Canonical = u.String()
	}
	size := 0
	for _, t := range d.hreflang {
		if u, err := resolve(string(trim(t.href))); err == nil && size+len(u.String()) <= maxTranslated {
			size += len(u.String())
			h.Hreflang = append(h.Hreflang, blobschema.Alternate{Lang: t.lang, URL: u.String()})
		}
	}
	return h
}
