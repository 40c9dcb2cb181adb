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

// AppendHTTPRequestHead appends an HTTP/1.1 request line, fields and the blank
// line to dst, made safe as AppendHTTPResponseHead does. Target is the request
// target, such as "/path?query"; spaces in it and in method become '_'.
func AppendHTTPRequestHead(dst []byte, method, target string, fields []HeaderField) []byte {
	start := len(dst)
	dst = append(dst, method...)
	dst = append(dst, 0) // becomes the space after all others are replaced
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

// HTTPHead is the header of an HTTP message.
type HTTPHead struct {
	Status int // of a response, 0 to 999; 0 for a request
	Fields []HeaderField
}

// HTTP parses r.Header and copies it. It refuses a header without a blank line, a
// status that is not three digits and a field without name or colon; it accepts
// lines that end in a bare LF and fields folded over several lines.
func (r *Record) HTTP() (h HTTPHead, err error) {
	if headEnd(r.Header) != len(r.Header) {
		return h, errors.New("parse HTTP header: it does not end in a blank line")
	}
	start, rest, _ := strings.Cut(unfold(r.Header), "\n")
	if proto, status, _ := strings.Cut(strings.TrimSuffix(start, "\r"), " "); strings.HasPrefix(proto, "HTTP/") {
		status, _, _ = strings.Cut(status, " ")
		n, err := strconv.ParseUint(status, 10, 16)
		if err != nil || len(status) != 3 {
			return h, fmt.Errorf("parse HTTP header: status line %q", clip(start))
		}
		h.Status = int(n)
	}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\r\n")
		if line == "" {
			break
		}
		name, value, ok := strings.Cut(line, ":")
		if name == "" || !ok {
			return h, fmt.Errorf("parse HTTP header: field %q", clip(line))
		}
		h.Fields = append(h.Fields, HeaderField{name, strings.Trim(value, " \t")})
	}
	return h, nil
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
