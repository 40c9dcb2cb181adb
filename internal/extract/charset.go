package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
)

// detected is the charset of a document.
type detected struct {
	name string
	enc  encoding.Encoding // nil for UTF-8
	wide bool              // not a superset of ASCII: convert before tokenizing
	bom  int               // length of the byte order mark
}

// detect finds the charset of HTML as browsers do: byte order mark, Content-Type, a meta
// element in the first 1,024 bytes, then a guess (HTML Living Standard, 13.2.3.2).
// The guess differs: a body that is UTF-8 throughout is read as UTF-8 if
// windows-1252 would be the default or only a meta element declares it. A page
// that this rule misreads is unreadable in browsers too.
//
// The charset of XML or plain text is given by the byte order mark, two-byte brackets, Content-Type or the encoding of the
// XML declaration (RFC 7303 section 3). Markup that can be read as ASCII is not UTF-16, even if it
// declares UTF-16: many programs write UTF-16 in the declaration and UTF-8 in the file.
func detect(body []byte, contentType string, xml bool) detected {
	for _, m := range [...]struct {
		start, label string
		bom          int
	}{
		{"\xef\xbb\xbf", "utf-8", 3}, {"\xff\xfe", "utf-16le", 2}, {"\xfe\xff", "utf-16be", 2},
		{"<\x00", "utf-16le", 0}, {"\x00<", "utf-16be", 0}, // brackets
	} {
		if bytes.HasPrefix(body, []byte(m.start)) && (xml || m.bom > 0) {
			d, _ := lookup(m.label)
			d.bom = m.bom
			return d
		}
	}
	usable := func(d detected, ok bool) bool { return ok && !(xml && strings.HasPrefix(d.name, "utf-16")) }
	if d, ok := lookup(charsetParam(contentType)); usable(d, ok) {
		return d
	}
	var declared string
	if xml {
		declared = declaredEncoding(body)
	} else {
		_, declared, _ = charset.DetermineEncoding(body[:min(len(body), 1024)], "")
	}
	d, ok := lookup(declared)
	if !usable(d, ok) {
		d, _ = lookup("windows-1252")
	}
	if d.name == "windows-1252" && validPrefix(body) {
		return detected{name: "utf-8"}
	}
	return d
}

// declaredEncoding returns the encoding that an XML declaration names, or "".
func declaredEncoding(body []byte) string {
	tag := trimSpace(body[:min(len(body), 1024)])
	if !bytes.HasPrefix(tag, []byte("<?xml")) {
		return ""
	}
	tag, _, _ = bytes.Cut(tag, []byte("?>"))
	return string(tagAttribute(tag, "encoding"))
}

// lookup resolves a label of the Encoding Standard.
func lookup(label string) (d detected, ok bool) {
	if label == "utf-8" { // the most frequent one
		return detected{name: label}, true
	}
	switch d.enc, d.name = charset.Lookup(label); d.name {
	case "utf-8":
		d.enc = nil
	case "utf-16le", "utf-16be", "iso-2022-jp":
		d.wide = true
	}
	return d, d.name != ""
}

// charsetParam returns the charset parameter of a Content-Type, or "". It is more
// forgiving than RFC 9110 section 8.3.1, because many servers ignore its grammar.
func charsetParam(contentType string) string {
	_, params, _ := strings.Cut(contentType, ";")
	for params != "" {
		var p string
		p, params, _ = strings.Cut(params, ";")
		key, val, _ := strings.Cut(p, "=")
		if strings.EqualFold(strings.TrimSpace(key), "charset") {
			return strings.Trim(val, " \t\r\n\"'")
		}
	}
	return ""
}

// validPrefix reports whether b is UTF-8, except for a last character that is cut off.
func validPrefix(b []byte) bool {
	for i := len(b) - 1; i >= max(0, len(b)-utf8.UTFMax+1); i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				b = b[:i]
			}
			break
		}
	}
	return utf8.Valid(b)
}

// A transcoder converts strings from the document's charset to UTF-8. Almost every string
// to keep is ASCII, so a transcoder creates its decoder only for the first other string. The
// zero transcoder is for UTF-8.
type transcoder struct {
	charset string // its name
	enc     encoding.Encoding
	dec     *encoding.Decoder // made on first use
}

// decoded returns a body without its byte order mark, and the transcoder of its strings. A body whose charset does not contain ASCII
// is converted as a whole. xml is the kind of document, see [detect].
func decoded(body []byte, contentType string, xml bool) ([]byte, transcoder) {
	cs := detect(body, contentType, xml)
	body = body[cs.bom:]
	t := transcoder{charset: cs.name, enc: cs.enc}
	if cs.wide {
		return t.decode(body), transcoder{charset: cs.name}
	}
	return body, t
}

// foreign reports whether b means something else in UTF-8 than in the document.
func (d *transcoder) foreign(b []byte) bool { return d.enc != nil && !ascii(b) }

// decode returns b in UTF-8; b itself if there is nothing to convert.
func (d *transcoder) decode(b []byte) []byte {
	if d.enc == nil {
		return b
	}
	if d.dec == nil {
		d.dec = d.enc.NewDecoder()
	}
	out, err := d.dec.Bytes(b)
	if err != nil {
		return bytes.ToValidUTF8(b, []byte("\ufffd"))
	}
	return out
}

// query encodes the UTF-8 query of a reference as a browser does in
// a document of another charset: percent-encoded in that charset, with a decimal character
// reference for each character that the charset lacks (URL Standard, 4.4 query state and
// 5.1 percent-encode after encoding). For ISO-2022-JP the query stays UTF-8, which the
// standard demands for UTF-16 only.
func (d *transcoder) query(href []byte) []byte {
	at := bytes.IndexByte(href, '?')
	if at < 0 || !d.foreign(href[at:]) {
		return href
	}
	enc := d.enc.NewEncoder() // of package charset, which writes character references
	out := bytes.Clone(href[:at])
	for rest := href[at:]; len(rest) > 0; {
		n := asciiPrefix(rest)
		out = append(out, rest[:n]...)
		rest = rest[n:]
		n = 0
		for n < len(rest) && rest[n] >= utf8.RuneSelf {
			n++
		}
		encoded, err := enc.Bytes(rest[:n])
		if err != nil {
			return href
		}
		rest = rest[n:]
		for _, c := range encoded {
			// In some charsets the second byte of a character can be ASCII, but never one of
			// these, which belong to a character reference.
			if c >= utf8.RuneSelf || c == '&' || c == '#' || c == ';' {
				out = append(out, '%', upperHex[c>>4], upperHex[c&15])
			} else {
				out = append(out, c)
			}
		}
	}
	return out
}

const upperHex = "0123456789ABCDEF"

// ascii reports whether b has no byte above 0x7F.
func ascii(b []byte) bool { return asciiPrefix(b) == len(b) }

// asciiPrefix counts the bytes before the first above 0x7F.
func asciiPrefix(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}
