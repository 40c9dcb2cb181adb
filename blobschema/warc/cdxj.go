package warc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

const cdxjTime = "20060102150405"

// AppendCDXJ appends the line of p in a CDXJ index, with its line end, to dst. Replay tools use the index to
// find captures in WARC files. It has one line per capture, sorted by bytes:
//
//	<urlkey> <14-digit UTC time> <JSON object>
//
// There is no standard. The fields, their order and their values, which are strings, follow
// pywb and cdxj-indexer. filename is the name under which the replay tool finds the WARC file. A page
// without a stored record (Length 0) has no line.
//
// A SHA-1 digest has no label, as in pywb's own indexer: pywb compares it with bare values, and finds
// duplicates by "contains".
func AppendCDXJ(dst []byte, key string, p blobschema.Page, filename string) []byte {
	if p.Length <= 0 {
		return dst
	}
	for i := 0; i < len(key); i++ { // a space or line end in the key would end it early
		if c := key[i]; c <= ' ' || c == 0x7f {
			dst = append(dst, '%', "0123456789ABCDEF"[c>>4], "0123456789ABCDEF"[c&15])
		} else {
			dst = append(dst, c)
		}
	}
	t := p.Time.UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		t = time.Time{} // always 14 digits
	}
	dst = append(dst, ' ')
	dst = t.AppendFormat(dst, cdxjTime)
	dst = append(dst, ` {"url": `...)
	dst = cdxjAppendString(dst, p.URL)
	mime, _, _ := strings.Cut(p.MIME, ";")
	if mime = strings.TrimSpace(mime); mime != "" {
		dst = append(dst, `, "mime": `...)
		dst = cdxjAppendString(dst, mime)
	}
	if p.Status != 0 {
		dst = cdxjAppendNumber(dst, `, "status": "`, int64(p.Status))
	}
	if p.Digest != "" {
		dst = append(dst, `, "digest": `...)
		dst = cdxjAppendString(dst, strings.TrimPrefix(p.Digest, "sha1:"))
	}
	dst = cdxjAppendNumber(dst, `, "length": "`, p.Length)
	dst = cdxjAppendNumber(dst, `, "offset": "`, p.Offset)
	dst = append(dst, `, "filename": `...)
	dst = cdxjAppendString(dst, filename)
	return append(dst, "}\n"...)
}

func cdxjAppendNumber(dst []byte, before string, n int64) []byte {
	dst = append(dst, before...)
	return append(strconv.AppendInt(dst, n, 10), '"')
}

// cdxjAppendString appends s as a JSON string (RFC 8259 section 7).
func cdxjAppendString(dst []byte, s string) []byte {
	b := bytes.NewBuffer(dst)
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // every string has an encoding
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// CompareCDXJ orders index lines by their bytes (LC_ALL=C), as replay tools search
// them. The captures of one key are thus in order of time.
func CompareCDXJ(a, b []byte) int { return bytes.Compare(a, b) }
