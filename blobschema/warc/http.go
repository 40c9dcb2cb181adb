package warc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// HeaderField is one field of an HTTP header, as received or to be written.
type HeaderField struct{ Name, Value string }

// OriginalPrefix marks a field that was received but does not hold for the bytes
// stored, so that nobody undoes a coding that is already undone.
const OriginalPrefix = "X-Crawler-Original-"

// AppendHTTPResponseHead appends an HTTP/1 status line, fields and the blank line
// to dst, for Record.Header. What would break the message is replaced: control
// characters by spaces, characters not fit for a name by '_'; a field without name
// is dropped. A proto other than HTTP/1.0 is written as HTTP/1.1, the only form
// that readers of WARC parse.
//
// The body stored after it is never chunked (its digest is that of the entity,
// section 5.9), so Transfer-Encoding and Trailer get OriginalPrefix.
func AppendHTTPResponseHead(dst []byte, proto string, status int, reason string, fields []HeaderField) []byte {
	if proto != "HTTP/1.0" {
		proto = "HTTP/1.1"
	}
	if status < 0 || status > 999 {
		status = 0 // no such answer; three digits keep the line well formed
	}
	dst = append(dst, proto...)
	dst = append(dst, ' ', byte('0'+status/100), byte('0'+status/10%10), byte('0'+status%10), ' ')
	dst = appendPrintable(dst, reason)
	dst = append(dst, "\r\n"...)
	for _, f := range fields {
		if strings.EqualFold(f.Name, "Transfer-Encoding") || strings.EqualFold(f.Name, "Trailer") {
			dst = append(dst, OriginalPrefix...)
		}
		dst = appendHTTPField(dst, f.Name, f.Value)
	}
	return append(dst, "\r\n"...)
}

// AppendHTTPRequestHead appends an HTTP/1.1 request line, fields and the blank
// line to dst, made safe as AppendHTTPResponseHead does. Target is the request
// target, such as "/path?query"; spaces in it and in method become '_'.
func AppendHTTPRequestHead(dst []byte, method, target string, fields []HeaderField) []byte {
	start := len(dst)
	dst = append(dst, method...)
	dst = append(dst, 0) // stands for the space until all others are gone
	middle := len(dst) - 1
	dst = append(dst, target...)
	for i := start; i < len(dst); i++ {
		if dst[i] <= ' ' || dst[i] == 0x7f {
			dst[i] = '_'
		}
	}
	dst[middle] = ' '
	dst = append(dst, " HTTP/1.1\r\n"...)
	for _, f := range fields {
		dst = appendHTTPField(dst, f.Name, f.Value)
	}
	return append(dst, "\r\n"...)
}

func appendHTTPField(dst []byte, name, value string) []byte {
	if name == "" {
		return dst
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !isToken(c) {
			c = '_'
		}
		dst = append(dst, c)
	}
	dst = append(dst, ": "...)
	dst = appendPrintable(dst, value)
	return append(dst, "\r\n"...)
}

// appendPrintable appends s with a space for each control character but tab.
// Bytes above 0x7f stay: headers of the web are not always UTF-8.
func appendPrintable(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, s...)
	for i := start; i < len(dst); i++ {
		if c := dst[i]; c < ' ' && c != '\t' || c == 0x7f {
			dst[i] = ' '
		}
	}
	return dst
}

// HTTPMessage is the HTTP block of a record, taken apart.
type HTTPMessage struct {
	Start  string // the first line
	Proto  string // of a response, such as "HTTP/1.1"; empty for a request
	Status int    // of a response, 0 to 999; 0 for a request
	Reason string // of a response; may be empty
	Fields []HeaderField
	Body   []byte // the rest of the block, not copied
}

// SplitHTTP takes the block of an http response or request apart. All but Body is
// copied. It refuses a block without a blank line within MaxHTTPHeader bytes, a
// status that is not three digits and a field without name or colon; it accepts
// lines that end in a bare LF and fields folded over several lines.
func SplitHTTP(block []byte) (HTTPMessage, error) {
	n := headEnd(block[:min(len(block), MaxHTTPHeader)])
	if n < 0 {
		return HTTPMessage{}, errors.New("split HTTP message: no end of header")
	}
	m, err := parseHTTP(block[:n])
	if err != nil {
		return HTTPMessage{}, fmt.Errorf("split HTTP message: %w", err)
	}
	m.Body = block[n:]
	return m, nil
}

// HTTP returns the HTTP message that r holds, as SplitHTTP does. Its Body is
// r.Body.
func (r *Record) HTTP() (HTTPMessage, error) {
	m, err := SplitHTTP(r.Header)
	m.Body = r.Body
	return m, err
}

// parseHTTP parses a header that ends in its only blank line.
func parseHTTP(head []byte) (m HTTPMessage, err error) {
	first, rest, _ := strings.Cut(unfold(head), "\n")
	m.Start = strings.TrimSuffix(first, "\r")
	if strings.HasPrefix(m.Start, "HTTP/") {
		var status string
		m.Proto, status, _ = strings.Cut(m.Start, " ")
		status, m.Reason, _ = strings.Cut(status, " ")
		n, err := strconv.ParseUint(status, 10, 16)
		if err != nil || len(status) != 3 {
			return m, fmt.Errorf("status line %q", clip(m.Start))
		}
		m.Status = int(n)
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if name == "" || !ok {
			return m, fmt.Errorf("field %q", clip(line))
		}
		m.Fields = append(m.Fields, HeaderField{name, strings.Trim(value, " \t")})
	}
	return m, nil
}

// unfold returns head with spaces for each line end that is followed by space
// or tab: the older way to write long fields (RFC 9112 section 5.2).
func unfold(head []byte) string {
	folded := bytes.Contains(head, []byte("\n ")) || bytes.Contains(head, []byte("\n\t"))
	if !folded {
		return string(head)
	}
	b := bytes.Clone(head)
	for i := 0; i+1 < len(b); i++ {
		if b[i] == '\n' && (b[i+1] == ' ' || b[i+1] == '\t') {
			b[i] = ' '
			if i > 0 && b[i-1] == '\r' {
				b[i-1] = ' '
			}
		}
	}
	return string(b)
}

// headEnd returns the length of the HTTP or WARC header at the start of b,
// its blank line included, or -1 if there is no blank line. Lines end in LF,
// with or without CR before it (RFC 9112 section 2.2).
func headEnd(b []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return -1
		}
		line := b[at : at+i]
		at += i + 1
		if len(line) == 0 || len(line) == 1 && line[0] == '\r' {
			return at
		}
	}
}
