package extract

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// detected is the charset of a document.
type detected struct {
	name string
	enc  encoding.Encoding // nil for UTF-8
	wide bool              // not a superset of ASCII: convert before tokenizing
	bom  int               // length of the byte order mark
}

// detect finds the charset as browsers do: byte order mark, Content-Type, a meta
// element in the first 1,024 bytes, then a guess (HTML Living Standard, 13.2.3.2).
// The guess differs: a body that is UTF-8 throughout is read as UTF-8 if
// windows-1252 would be the default or only a meta element declares it. A page
// that this rule misreads is unreadable in browsers too.
func detect(body []byte, contentType string) detected {
	if d, ok := byteOrderMark(body); ok {
		return d
	}
	if label := charsetParam(contentType); label != "" {
		if d, ok := lookup(label); ok {
			return d
		}
	}
	_, name, _ := charset.DetermineEncoding(body[:min(len(body), 1024)], "")
	if name == "windows-1252" && validPrefix(body) {
		name = "utf-8"
	}
	d, ok := lookup(name)
	if !ok {
		return detected{name: "utf-8"}
	}
	return d
}

// detectXML finds the charset of XML or plain text: byte order mark, two-byte
// brackets, Content-Type, the encoding of the XML declaration (RFC 7303 section 3),
// then a guess as for HTML. Markup that can be read as ASCII is not UTF-16, even if it
// declares UTF-16: many programs write UTF-16 in the declaration and UTF-8 in the file.
func detectXML(body []byte, contentType string) detected {
	if d, ok := byteOrderMark(body); ok {
		return d
	}
	for _, wide := range [...]struct{ bracket, label string }{{"<\x00", "utf-16le"}, {"\x00<", "utf-16be"}} {
		if bytes.HasPrefix(body, []byte(wide.bracket)) {
			d, _ := lookup(wide.label)
			return d
		}
	}
	if label := charsetParam(contentType); label != "" {
		if d, ok := lookup(label); ok && !strings.HasPrefix(d.name, "utf-16") {
			return d
		}
	}
	d, ok := lookup(declaredEncoding(body))
	if !ok || strings.HasPrefix(d.name, "utf-16") {
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

// byteOrderMark finds the charset of a body that begins with a byte order mark.
func byteOrderMark(body []byte) (detected, bool) {
	for _, m := range [...]struct{ mark, label string }{
		{"\xef\xbb\xbf", "utf-8"}, {"\xff\xfe", "utf-16le"}, {"\xfe\xff", "utf-16be"},
	} {
		if bytes.HasPrefix(body, []byte(m.mark)) {
			d, _ := lookup(m.label)
			d.bom = len(m.mark)
			return d, true
		}
	}
	return detected{}, false
}

// lookup resolves a label of the Encoding Standard.
func lookup(label string) (detected, bool) {
	if strings.EqualFold(label, "utf-8") {
		return detected{name: "utf-8"}, true
	}
	enc, err := htmlindex.Get(label)
	if err != nil {
		return detected{}, false
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return detected{}, false
	}
	d := detected{name: name, enc: enc}
	switch name {
	case "utf-8":
		d.enc = nil
	case "utf-16le", "utf-16be", "iso-2022-jp":
		d.wide = true
	}
	return d, true
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
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				b = b[:len(b)-i]
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
	enc encoding.Encoding
	dec *encoding.Decoder // made on first use
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
	enc := encoding.HTMLEscapeUnsupported(d.enc.NewEncoder())
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
