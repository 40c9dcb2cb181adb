package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/actor"
)

// maxDetail bounds Page.Detail, in bytes.
const maxDetail = 160

// verdict is the result of a request without a stored answer. The dialer returns it as an error.
type verdict struct {
	outcome   blobschema.Outcome
	temporary bool   // another attempt may have another result
	detail    string // reason in words, which may quote the server
}

func (v verdict) Error() string { return v.detail }

// refuse sets the outcome of out to v.
func refuse(out *actor.Outcome, v verdict) *actor.Outcome {
	out.Page.Outcome, out.Temporary, out.Page.Detail = v.outcome, v.temporary, short(v.detail)
	return out
}

// failed returns the outcome of a request that err ended, after the header if status is not 0.
func (c *Client) failed(f *flight, req *actor.Request, started time.Time, status int, err error) *actor.Outcome {
	out := blank(req, started, c.cfg.Clock())
	out.Page.Status = uint16(max(0, min(status, 999)))
	return refuse(out, classify(f, status, err))
}

// classify maps the end of a request to the closed list of outcomes. The order matters: the end of a context
// can make the connection fail with any error, so classify checks the context first.
func classify(f *flight, status int, err error) verdict {
	if cause := context.Cause(f.ctx); cause != nil {
		switch {
		case cause != errTimeout:
			return verdict{blobschema.OutcomeAborted, true, cause.Error()}
		case f.conn == nil:
			return verdict{blobschema.OutcomeConnect, true, cause.Error()}
		}
		return verdict{blobschema.OutcomeTimeout, true, cause.Error()}
	}
	var v verdict
	var timeout net.Error
	switch {
	case errors.As(err, &v):
		return v
	case errors.As(err, &timeout) && timeout.Timeout():
		return verdict{blobschema.OutcomeTimeout, true, "no answer in time"}
	case isCut(err) && status == 0:
		return verdict{blobschema.OutcomeCut, true, "connection ended before the header"}
	case isCut(err):
		return verdict{blobschema.OutcomeCut, true, "connection ended within the body"}
	}
	// If a whole HTTP/2 connection fails before this answer has begun, another answer may be the cause.
	shared := status == 0 && strings.HasPrefix(err.Error(), "connection error:")
	return verdict{blobschema.OutcomeProtocol, shared, reason(err)}
}

// isCut reports whether err means that the connection or the stream ended too early. All other
// errors are faults in the bytes that the server sent.
func isCut(err error) bool {
	for _, end := range [...]error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED,
	} {
		if errors.Is(err, end) {
			return true
		}
	}
	var stream streamError
	if errors.As(err, &stream) {
		return stream.Code != protocolError
	}
	// net/http does not export the other errors that end a connection.
	text := err.Error()
	return strings.HasPrefix(text, "http2: server sent GOAWAY") || strings.HasPrefix(text, "http2: Transport received Server's graceful") ||
		strings.HasPrefix(text, "http2: client conn") // lost, closed, not usable, or ended before the request was sent
}

// streamError has the fields of an HTTP/2 stream error (RFC 9113 section 5.4.2). The error type of
// net/http converts itself to any struct with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

const protocolError = 1 // PROTOCOL_ERROR, RFC 9113 section 7

func (e streamError) Error() string { return "stream error" }

// reason returns a text for err that is the same at all times and places. It omits the ports and addresses that
// package net adds.
func reason(err error) string {
	var dns *net.DNSError
	var no syscall.Errno
	var record tls.RecordHeaderError
	var timeout net.Error
	var bad x509.CertificateInvalidError
	switch {
	case errors.As(err, &bad) && bad.Reason == x509.Expired: // its text contains the time of day
		return "certificate is expired or not yet valid"
	case errors.As(err, &dns) && dns.IsNotFound:
		return "no such host"
	case errors.As(err, &dns) && dns.IsTimeout:
		return "name server does not answer"
	case errors.As(err, &dns):
		return dns.Err
	case errors.As(err, &no):
		return no.Error()
	case errors.As(err, &record):
		return "not TLS"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no connection in time"
	}
	text := strings.TrimPrefix(err.Error(), "net/http: HTTP/1.x transport connection broken: ")
	return strings.TrimPrefix(text, "net/http: ")
}

// short makes s fit for a record: one line of printable UTF-8, at most maxDetail bytes.
func short(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s[:min(len(s), 4*maxDetail)], "\ufffd"))
	if len(s) <= maxDetail {
		return s
	}
	end := maxDetail
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}
