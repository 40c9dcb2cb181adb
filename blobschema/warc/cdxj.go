package warc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/blobschema"
)

// CDXJ is the index over WARC files that replay tools read: one line per capture,
//
//	<urlkey> <14-digit UTC time> <JSON object>
//
// sorted by bytes. There is no standard; the fields here, their names, order and
// string values are those that pywb and cdxj-indexer write and read.
type CDXJ struct {
	Key      string    // sort-friendly form of the URL (SURT)
	Time     time.Time // of the capture, UTC, whole seconds
	URL      string
	MIME     string
	Status   int    // HTTP status; 0 if the line has none
	Digest   string // of the payload, with its label: sha1:BASE32; may be empty
	Length   int64  // bytes of the record's gzip member; 0 if the line has none
	Offset   int64  // of that member in Filename
	Filename string // WARC file, without folders where it is to be served by name
}

// MaxCDXJLine bounds the lines that ParseCDXJ accepts, in bytes.
const MaxCDXJLine = 256 << 10

const cdxjTime = "20060102150405"

// AppendCDXJ appends the index line of p, with its line end, to dst. Key comes
// from the caller; filename names the WARC file as the replay tool will look for
// it. A page of which no record is stored (Length 0) has no line: nothing is
// appended.
//
// A SHA-1 digest is written without its label, as pywb's own indexer does: pywb
// compares it with bare values, and finds duplicates by "contains".
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
		t = time.Time{} // 14 digits, whatever the clock said
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

// cdxjAppendString appends s as a JSON string (RFC 8259 section 7). What is not
// UTF-8 becomes U+FFFD.
func cdxjAppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
			continue
		}
		i++
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// CompareCDXJ orders index lines as replay tools search them: by their bytes
// (LC_ALL=C). Two captures of one key thus stand in order of time.
func CompareCDXJ(a, b []byte) int { return bytes.Compare(a, b) }

// ErrCDXJMeta says that a line is not a capture but about the index: one that
// begins with '!', as "!meta 0 {…}" in compressed indexes. Plain indexes, such as
// written here, need none.
var ErrCDXJMeta = errors.New("CDXJ line about the index")

// ParseCDXJ parses one index line, with or without its line end. Numbers may be
// JSON numbers or strings, "-" and absent fields mean none, a digest of 32
// characters without label is a SHA-1; unknown fields are ignored. Time, url,
// filename and digits-only numbers are demanded.
func ParseCDXJ(line []byte) (CDXJ, error) {
	if len(line) > MaxCDXJLine {
		return CDXJ{}, fmt.Errorf("parse CDXJ line: longer than %d bytes", MaxCDXJLine)
	}
	line = bytes.TrimRight(line, "\r\n")
	if len(line) > 0 && line[0] == '!' {
		return CDXJ{}, ErrCDXJMeta
	}
	key, rest, _ := bytes.Cut(line, []byte(" "))
	stamp, object, _ := bytes.Cut(rest, []byte(" "))
	if len(key) == 0 || len(stamp) != len(cdxjTime) {
		return CDXJ{}, fmt.Errorf("parse CDXJ line: no key and time in %q", line[:min(len(line), 80)])
	}
	t, err := time.Parse(cdxjTime, string(stamp))
	if err != nil {
		return CDXJ{}, fmt.Errorf("parse CDXJ line: time %q", stamp)
	}
	var f struct {
		URL      string     `json:"url"`
		MIME     string     `json:"mime"`
		Status   cdxjNumber `json:"status"`
		Digest   string     `json:"digest"`
		Length   cdxjNumber `json:"length"`
		Offset   cdxjNumber `json:"offset"`
		Filename string     `json:"filename"`
	}
	if err := json.Unmarshal(object, &f); err != nil {
		return CDXJ{}, fmt.Errorf("parse CDXJ line: %w", err)
	}
	if f.URL == "" || f.Filename == "" || f.Status > 999 {
		return CDXJ{}, fmt.Errorf("parse CDXJ line: no url, no filename or status %d out of range", int64(f.Status))
	}
	if f.Digest == "-" {
		f.Digest = ""
	} else if len(f.Digest) == 32 && !strings.Contains(f.Digest, ":") {
		f.Digest = "sha1:" + f.Digest
	}
	return CDXJ{
		Key: string(key), Time: t, URL: f.URL, MIME: f.MIME, Status: int(f.Status), Digest: f.Digest,
		Length: int64(f.Length), Offset: int64(f.Offset), Filename: f.Filename,
	}, nil
}

// cdxjNumber is a count that tools write as a number or as a string of digits.
type cdxjNumber int64

// UnmarshalJSON reads digits, with or without quotes, or "-" for none.
func (n *cdxjNumber) UnmarshalJSON(b []byte) error {
	s := strings.Trim(string(b), `"`)
	if s == "-" || s == "" || s == "null" {
		*n = 0
		return nil
	}
	v, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return fmt.Errorf("number %q", s[:min(len(s), 80)])
	}
	*n = cdxjNumber(v)
	return nil
}
