package ui

import (
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/extract"
)

// storedPolicy is the policy of a stored page: its text with its own styles, in an origin of its own, without scripts, forms
// and requests.
const storedPolicy = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; " +
	"frame-ancestors 'self'"

// maxShown bounds the bytes of a stored page that are shown.
const maxShown = 8 << 20

// stored serves a stored payload.
func (s *Server) stored(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTimeout)
	defer cancel()
	kind, body, err := s.payload(ctx, r)
	if err != nil {
		s.fail(w, err)
		return
	}
	w.Header().Set("Content-Security-Policy", storedPolicy)
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // the browser may be gone
}

// payload reads a stored payload, and chooses a harmless media type for it.
func (s *Server) payload(ctx context.Context, r *http.Request) (kind string, body []byte, err error) {
	q := r.URL.Query()
	u, err := parseURL(q.Get("url"))
	if err != nil {
		return "", nil, err
	}
	release, err := s.busy(ctx)
	if err != nil {
		return "", nil, err
	}
	defer release()
	v, err := s.current(ctx)
	if err != nil {
		return "", nil, err
	}
	history, err := v.History(ctx, u)
	if err != nil {
		return "", nil, err
	}
	i := slices.IndexFunc(history, func(p blobschema.Page) bool {
		want := q.Get("generation")
		return p.WARC != "" && (want == "" || want == fmt.Sprint(p.Generation))
	})
	if i < 0 {
		return "", nil, &problem{http.StatusNotFound, "No answer of this URL is stored."}
	}
	rec, err := v.Payload(ctx, history[i])
	if err != nil {
		return "", nil, err
	}
	return show(rec)
}

// show decodes a payload, and returns a media type under which a browser does nothing with it but show it.
func show(rec *warc.Record) (kind string, body []byte, err error) {
	m, err := rec.HTTP()
	if err != nil {
		return "", nil, err
	}
	var codings []string
	var given string
	for _, f := range m.Fields {
		switch {
		case strings.EqualFold(f.Name, "Content-Encoding"):
			codings = append(codings, f.Value)
		case strings.EqualFold(f.Name, "Content-Type"):
			given = f.Value
		}
	}
	var d extract.Decoder
	coding := extract.Coding(codings)
	d.Open(rec.Body, coding)
	body = d.UpTo(maxShown)
	if len(body) == 0 && len(rec.Body) > 0 {
		return "", nil, &problem{http.StatusUnprocessableEntity, "The payload cannot be decompressed: its coding is " + line(coding) + "."}
	}
	media, params, _ := mime.ParseMediaType(given)
	// Without a charset of the server, the browser detects it.
	charset := map[string]string{}
	if c := params["charset"]; c != "" {
		charset["charset"] = c
	}
	switch {
	case media == "text/html", media == "application/xhtml+xml":
		kind = "text/html"
	case slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"}, media):
		return media, body, nil
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "xml"), strings.HasSuffix(media, "json"), strings.HasSuffix(media, "javascript"):
		kind = "text/plain"
	default:
		return "", nil, &problem{http.StatusUnsupportedMediaType, fmt.Sprintf("The payload has the type %q and %s. 'orbweaver get' writes it.", line(given), size(int64(len(rec.Body))))}
	}
	if kind = mime.FormatMediaType(kind, charset); kind == "" { // the charset is no token
		kind = "text/plain"
	}
	return kind, body, nil
}
