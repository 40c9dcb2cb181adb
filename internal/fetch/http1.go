package fetch

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// This file parses the heads of HTTP/1 answers (RFC 9112). It has no sockets and no clock.

// Errors in the head of an answer.
var (
	errHeadTooLong = fmt.Errorf("server's headers exceeded %d bytes", maxHeader)
	errNoHTTP      = errors.New("malformed HTTP answer")
	errField       = errors.New("malformed MIME header line")
	errLength      = errors.New("bad Content-Length")
	errCoding      = errors.New("unsupported transfer encoding")
)

// head is the head of an answer: its status line and fields.
type head struct {
	raw    []byte // as received, with the blank line
	proto  string // "HTTP/1.0", "HTTP/1.1"
	status int
	reason string
	fields []warc.HeaderField // in the order received; folded values are joined by a space
}

// beginsHTTP reports whether b can be the beginning of an answer. b may have any length.
func beginsHTTP(b []byte) bool {
	const begin = "HTTP/"
	n := min(len(b), len(begin))
	return string(b[:n]) == begin[:n]
}

// headLength returns the length of the head at the beginning of b, or 0 if b does not contain its end. An earlier call has already
// searched the first looked bytes.
func headLength(b []byte, looked int) int {
	for at := max(0, looked-2); ; {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			return 0
		}
		at += i + 1
		switch {
		case at < len(b) && b[at] == '\n':
			return at + 1
		case at+1 < len(b) && b[at] == '\r' && b[at+1] == '\n':
			return at + 2
		}
	}
}

// parseHead parses a whole head. head.fields uses the memory of fields.
// A line without a colon, a name that is not a token, and a control character in a value are errors, as in net/http.
// A space before the colon is an error too (RFC 9112 section 5.1); net/http accepts it.
func parseHead(raw []byte, fields []warc.HeaderField) (h head, err error) {
	text := string(raw)
	line, rest, _ := strings.Cut(text, "\n")
	h = head{raw: raw, fields: fields[:0]}
	if err := h.parseStatus(strings.TrimSuffix(line, "\r")); err != nil {
		return h, err
	}
	if rest != "" && (rest[0] == ' ' || rest[0] == '\t') {
		return h, errField
	}
	for {
		line, rest, _ = strings.Cut(rest, "\n")
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			return h, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !httpguts.ValidHeaderFieldName(name) {
			return h, errField
		}
		for rest != "" && (rest[0] == ' ' || rest[0] == '\t') { // a folded line
			line, rest, _ = strings.Cut(rest, "\n")
			value = strings.TrimRight(value, " \t") + " " + strings.Trim(line, " \t\r")
		}
		value = strings.Trim(value, " \t")
		if !httpguts.ValidHeaderFieldValue(value) {
			return h, errField
		}
		h.fields = append(h.fields, warc.HeaderField{Name: name, Value: value})
	}
}

// parseStatus parses a status line. It treats a version up to 1.0 as HTTP/1.0 and any later one as HTTP/1.1.
func (h *head) parseStatus(line string) error {
	proto, rest, _ := strings.Cut(line, " ")
	major, minor, ok := http.ParseHTTPVersion(proto)
	if !ok {
		return errNoHTTP
	}
	h.proto = "HTTP/1.1"
	if major < 1 || major == 1 && minor == 0 {
		h.proto = "HTTP/1.0"
	}
	status, reason, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	n, err := strconv.ParseUint(status, 10, 16)
	if err != nil || len(status) != 3 {
		return errNoHTTP
	}
	h.status, h.reason = int(n), reason
	return nil
}

// values calls yield for each field of a name.
func (h *head) values(name string, yield func(value string)) {
	for i := range h.fields {
		if f := &h.fields[i]; len(f.Name) == len(name) && strings.EqualFold(f.Name, name) {
			yield(f.Value)
		}
	}
}

// framing is the way in which the end of a body is marked (RFC 9112 section 6.3).
type framing struct {
	chunked bool
	length  int64 // of the body, in bytes; -1 if chunks or the end of the connection delimit it
	closing bool  // the connection cannot serve another request
}

// framing returns the framing of an answer to a GET request. An ambiguous answer is an error, with one exception:
// if there are chunks and a length, the chunks count and the connection is closed.
func (h *head) framing() (f framing, err error) {
	var lengths, codings, closes, keeps int
	f.length = -1
	h.values("Content-Length", func(v string) {
		n, bad := strconv.ParseUint(v, 10, 63)
		lengths++
		if bad != nil || lengths > 1 && int64(n) != f.length {
			err = errLength
		}
		f.length = int64(n)
	})
	h.values("Transfer-Encoding", func(v string) {
		if codings++; codings > 1 || !strings.EqualFold(v, "chunked") {
			f.chunked = false
			return
		}
		f.chunked = true
	})
	h.values("Connection", func(v string) {
		if httpguts.HeaderValuesContainsToken([]string{v}, "close") {
			closes++
		}
		if httpguts.HeaderValuesContainsToken([]string{v}, "keep-alive") {
			keeps++
		}
	})
	old := h.proto == "HTTP/1.0"
	f.closing = closes > 0 || old && keeps == 0
	switch {
	case err != nil:
		return f, err
	case h.status < 200 && h.status >= 100, h.status == http.StatusNoContent, h.status == http.StatusNotModified:
		f.chunked, f.length = false, 0
	case codings > 0 && !old && !f.chunked:
		return f, errCoding
	case f.chunked && !old:
		f.closing = f.closing || lengths > 0
		f.length = -1
	default:
		f.chunked = false
		f.closing = f.closing || f.length < 0 || codings > 0
	}
	return f, nil
}
