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

// OriginalPrefix marks a received field that does not apply to the stored
// bytes, so that no reader decodes a body that is already decoded.
const OriginalPrefix = "X-Crawler-Original-"

// AppendHTTPResponseHead appends an HTTP/1 status line, fields and the blank line
// to dst, for Record.Header. It replaces control characters by spaces, and characters
// that a name cannot have by '_', and drops a field without a name. It writes a proto
// other than HTTP/1.0 as HTTP/1.1, the only form that WARC readers parse.
//
// The stored body is never chunked (its digest is that of the entity,
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

// AppendHTTPRequestHead appends an HTTP/1.1 request line, fields and the blank line to dst. target is the request target
// of a canonical URL, such as "/path?query". It makes fields safe like AppendHTTPResponseHead.
func AppendHTTPRequestHead(dst []byte, method, target string, fields []HeaderField) []byte {
	dst = append(append(append(dst, method...), ' '), target...)
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
	for _, c := range []byte(name) {
		if !tokenChars[c] {
			c = '_'
		}
		dst = append(dst, c)
	}
	dst = append(dst, ": "...)
	dst = appendPrintable(dst, value)
	return append(dst, "\r\n"...)
}

// appendPrintable appends s with a space for each control character except tab.
// Bytes above 0x7f stay, because headers are not always UTF-8.
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

// HTTPHead is the head of an HTTP/1 message. In a request only the Fields are set.
type HTTPHead struct {
	Proto  string // "HTTP/1.1"
	Status int    // 0 to 999
	Reason string
	Fields []HeaderField // in the order received
}

// HTTP parses r.Header and copies it.
func (r *Record) HTTP() (HTTPHead, error) {
	var h HTTPHead
	err := errors.New("it does not end in a blank line")
	if HeadEnd(r.Header, 0) == len(r.Header) {
		h, err = ParseHTTPHead(r.Header, nil)
	}
	if err != nil {
		return HTTPHead{}, fmt.Errorf("parse HTTP header: %w", err)
	}
	return h, nil
}

// ParseHTTPHead parses a whole head, as [HeadEnd] delimits it. The result uses the memory of fields, but none of raw. A status
// that is not three digits is an error, and so is everything that parseFields refuses.
func ParseHTTPHead(raw []byte, fields []HeaderField) (h HTTPHead, err error) {
	start, rest, _ := strings.Cut(string(raw), "\n")
	start = strings.TrimSuffix(start, "\r")
	if proto, line, _ := strings.Cut(start, " "); strings.HasPrefix(proto, "HTTP/") {
		status, reason, _ := strings.Cut(strings.TrimLeft(line, " "), " ")
		n, err := strconv.ParseUint(status, 10, 16)
		if err != nil || len(status) != 3 {
			return h, fmt.Errorf("malformed HTTP status line %q", clip(start))
		}
		h = HTTPHead{Proto: proto, Status: int(n), Reason: reason}
	}
	h.Fields, err = parseFields(rest, fields[:0])
	return h, err
}

// parseFields appends the fields of a header up to its blank line. Lines end in LF, with or without CR before it. It joins a value
// that is folded over several lines by spaces. A line without a colon, a name that is not a token, and a control character in a
// value are errors, as in net/http. A space before the colon is an error too (RFC 9112 section 5.1); net/http accepts it.
func parseFields(text string, fields []HeaderField) ([]HeaderField, error) {
	for {
		line, rest, _ := strings.Cut(text, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			return fields, nil
		}
		name, value, ok := strings.Cut(line, ":")
		for rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
			var more string
			more, rest, _ = strings.Cut(rest, "\n")
			value = strings.TrimRight(value, " \t") + " " + strings.Trim(more, " \t\r")
		}
		if !ok || name == "" || checkToken(name) != nil || hasControl(value) {
			return fields, fmt.Errorf("malformed MIME header line %q", clip(line))
		}
		fields = append(fields, HeaderField{name, strings.Trim(value, " \t")})
		text = rest
	}
}

// HeadEnd returns the length of the HTTP or WARC header at the beginning of b, with its blank line, or -1 if b does not
// contain its end. Lines end in LF, with or without CR before it (RFC 9112 section 2.2). HeadEnd does not search the
// first looked bytes again.
func HeadEnd(b []byte, looked int) int {
	for at := max(0, looked-2); ; {
		if at == 0 || b[at-1] == '\n' {
			switch rest := b[at:]; {
			case bytes.HasPrefix(rest, []byte("\n")):
				return at + 1
			case bytes.HasPrefix(rest, []byte("\r\n")):
				return at + 2
			}
		}
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return -1
		}
		at += i + 1
	}
}
