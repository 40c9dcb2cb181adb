package fetch

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Errors in the head of an answer.
var (
	errHeadTooLong = fmt.Errorf("server's headers exceeded %d bytes", maxHeader)
	errNoHTTP      = errors.New("malformed HTTP answer")
	errLength      = errors.New("bad Content-Length")
	errCoding      = errors.New("unsupported transfer encoding")
)

// beginsHTTP reports whether b can be the beginning of an answer. b may have any length.
func beginsHTTP(b []byte) bool {
	const begin = "HTTP/"
	n := min(len(b), len(begin))
	return string(b[:n]) == begin[:n]
}

// protocol returns "HTTP/1.0" for a version up to 1.0 and "HTTP/1.1" for any later one.
func protocol(version string) (string, error) {
	switch major, minor, ok := http.ParseHTTPVersion(version); {
	case !ok:
		return "", errNoHTTP
	case major < 1, major == 1 && minor == 0:
		return "HTTP/1.0", nil
	}
	return "HTTP/1.1", nil
}

// framing is the way in which the end of a body is marked (RFC 9112 section 6.3).
type framing struct {
	chunked bool
	length  int64 // of the body, in bytes; -1 if chunks or the end of the connection delimit it
	closing bool  // the connection cannot serve another request
}

// framing returns the framing of an HTTP/1 answer to a GET request. An ambiguous answer is an error, with one
// exception: if there are chunks and a length, the chunks count and the connection is closed.
func (r *Response) framing() (f framing, err error) {
	f.length = -1
	lengths, codings := 0, 0
	for v := range r.values("Content-Length") {
		n, err := strconv.ParseUint(v, 10, 63)
		if lengths++; err != nil || lengths > 1 && int64(n) != f.length {
			return f, errLength
		}
		f.length = int64(n)
	}
	for v := range r.values("Transfer-Encoding") {
		codings++
		f.chunked = codings == 1 && strings.EqualFold(v, "chunked")
	}
	var closes, keeps bool
	for v := range r.values("Connection") {
		closes = closes || httpguts.HeaderValuesContainsToken([]string{v}, "close")
		keeps = keeps || httpguts.HeaderValuesContainsToken([]string{v}, "keep-alive")
	}
	old := r.Proto == "HTTP/1.0"
	f.closing = closes || old && !keeps
	switch {
	case r.Status < 200 && r.Status >= 100, r.Status == http.StatusNoContent, r.Status == http.StatusNotModified:
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
