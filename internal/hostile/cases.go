package hostile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"

	"github.com/orbweaver/orbweaver/blobschema"
)

// cases returns all cases, in the order in which the documentation lists them.
func cases() []Case {
	return slices.Concat(stageCases(), statusCases(), headerCases(), lengthCases(), chunkCases(), bodyCases(), requisiteCases(), codingCases(),
		redirectCases(), robotsCases(), tlsCases(), http2Cases(), nameCases())
}

const (
	okLine  = "HTTP/1.1 200 OK\r\n"
	html    = okLine + "Content-Type: text/html\r\n"
	plain   = okLine + "Content-Type: text/plain\r\n"
	four    = "Content-Length: 4\r\n\r\nbody"
	chunked = "Transfer-Encoding: chunked\r\n\r\n"
)

// Results that many cases expect.
func isOK(body string) Want {
	return Want{Outcome: blobschema.OutcomeOK, Status: 200, Body: body}
}

func isProtocol(status uint16, detail string) Want {
	return Want{Outcome: blobschema.OutcomeProtocol, Status: status, Detail: detail}
}

func isCut(status uint16, detail string) Want {
	return Want{Outcome: blobschema.OutcomeCut, Status: status, Detail: detail}
}

func isTimeout(status uint16) Want {
	return Want{Outcome: blobschema.OutcomeTimeout, Status: status, Detail: "t"}
}

// Bounds that many cases share.
const (
	headerBound = "header limit of 64 KiB"
	headerTime  = "header timeout"
	wholeTime   = "request timeout"
	lengthBound = "Content-Length is checked"
	bodyBound   = "body limit; the rest is not read"
)

// stageCases returns servers that close, reset or stall the connection at each stage of an answer.
func stageCases() []Case {
	const before, within = "before the header", "within the body"
	cases := []Case{
		{Name: "accepts-and-says-nothing", Does: "accepts the connection, then reads and writes nothing", Bound: headerTime, Whole: true, Slow: true,
			serve: (*conn).leave, Want: isTimeout(0)},
		{Name: "closes-on-accept", Does: "closes the connection immediately", Bound: "the end of the connection", Whole: true,
			serve: func(*conn) {}, Want: isCut(0, before)},
		{Name: "resets-on-accept", Does: "resets the connection immediately", Bound: "the end of the connection", Whole: true,
			serve: (*conn).reset, Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeConnect, Detail: ""}},
		{Name: "speaks-first", Does: "sends an answer before it receives a request", Bound: "the connection is used for one request at most", Whole: true,
			serve: text(okLine + four), Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeCut}},
	}
	for _, stage := range []struct {
		name, does, sent string
		status           uint16
		or               bool
	}{
		{"before-answer", "after the request", "", 0, false},
		{"in-status-line", "within the status line", "HTTP/1.1 20", 0, true},
		{"in-header", "within a header field", okLine + "Content-Type: te", 0, false},
		{"in-last-line", "before the header's blank line", okLine + "Content-Type: text/html\r\n", 0, false},
		{"after-header", "after the header, before any body", html + "Content-Length: 10\r\n\r\n", 200, false},
		{"in-body", "within the body", html + "Content-Length: 10\r\n\r\nhalf", 200, false},
		{"in-chunk-size", "within the size of a chunk", html + chunked + "1", 200, false},
		{"in-chunk", "within a chunk", html + chunked + "a\r\nhalf", 200, false},
		{"before-last-chunk", "before the last chunk", html + chunked + "4\r\nbody\r\n", 200, false},
		{"in-trailer", "within the trailer", html + chunked + "4\r\nbody\r\n0\r\nX: y", 200, true},
	} {
		detail, bound := before, headerTime
		if stage.status != 0 {
			detail, bound = within, wholeTime
		}
		cut := isCut(stage.status, detail)
		if stage.or { // the bytes so far are malformed, whether or not the connection ends there
			cut.Or = blobschema.OutcomeProtocol
		}
		cases = append(cases,
			Case{Name: "closes-" + stage.name, Does: "closes the connection " + stage.does, Bound: "the end of the connection",
				serve: text(stage.sent), Want: cut},
			Case{Name: "resets-" + stage.name, Does: "resets the connection " + stage.does, Bound: "the end of the connection",
				serve: func(x *conn) {
					x.send(stage.sent)
					x.reset()
				}, Want: Want{Outcome: blobschema.OutcomeCut, Or: cut.Or, Detail: "connection ended"}},
			Case{Name: "stalls-" + stage.name, Does: "sends nothing more " + stage.does, Bound: bound, Slow: true,
				serve: stall(stage.sent), Want: isTimeout(stage.status)})
	}
	return cases
}

// statusCases returns servers with odd status lines.
func statusCases() []Case {
	odd := func(name, does, line string, want Want) Case {
		return Case{Name: "status-" + name, Does: does, Bound: "status line is checked", serve: text(line + "\r\n" + four), Want: want}
	}
	refused := isProtocol(0, "malformed HTTP")
	serverError := func(status uint16) Want {
		return Want{Outcome: blobschema.OutcomeServerError, Status: status, Body: "body"}
	}
	return []Case{
		odd("letters", "status 2x0", "HTTP/1.1 2x0 OK", refused),
		odd("four-digits", "status 2000", "HTTP/1.1 2000 OK", refused),
		odd("negative", "status -20", "HTTP/1.1 -20 OK", refused),
		odd("plus", "status +20", "HTTP/1.1 +20 OK", refused),
		odd("zero", "status 000", "HTTP/1.1 000 OK", serverError(0)),
		odd("999", "status 999", "HTTP/1.1 999 No", serverError(999)),
		odd("no-reason", "no reason phrase", "HTTP/1.1 200", isOK("body")),
		odd("control-characters", "control and 8-bit characters in the reason phrase", "HTTP/1.1 200 \x00\x1b[31m\x07\xff\xfe\tO\x0bK", isOK("body")),
		odd("lone-cr", "CR within the reason phrase, then text that looks like a field", "HTTP/1.1 200 OK\rX-Injected: yes", isOK("body")),
		odd("version-9", "HTTP/9.9", "HTTP/9.9 200 OK", isOK("body")),
		odd("version-long", "HTTP/1.1111111", "HTTP/1.1111111 200 OK", refused),
		odd("icy", "ICY 200 OK, as radio streams send it", "ICY 200 OK", refused),
		odd("lower-case", "http/1.1", "http/1.1 200 OK", refused),
		{Name: "status-unauthorised", Does: "401 with a request for a password", Bound: "no password is sent",
			serve: text("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\n" + four), Want: Want{Outcome: blobschema.OutcomeClientError, Status: 401, Body: "body"}},
		{Name: "status-not-modified", Does: "304 with a body, to an unconditional request", Bound: "a 304 has no body; the bytes are dropped", Alone: true,
			serve: text("HTTP/1.1 304 Not Modified\r\n" + four), Want: Want{Outcome: blobschema.OutcomeClientError, Status: 304}},
		{Name: "status-endless", Does: "an endless status line", Bound: headerBound, serve: endless("HTTP/1.1 200 ", "OK "), Want: isProtocol(0, "headers exceeded")},
		{Name: "status-drip", Does: "an endless status line, byte by byte", Bound: headerTime, Slow: true, serve: drip("HTTP/1.1 200 ", "O"), Want: isTimeout(0)},
		{Name: "http-0.9", Does: "a body without a header, as in HTTP/0.9", Bound: "first line is checked", serve: text("<html>hello</html>\n"), Want: refused},
		{Name: "not-http", Does: "the greeting of another protocol", Bound: "first line is checked", serve: text("220 mail.example ESMTP\r\n"), Want: refused},
		{Name: "garbage", Does: "endless random bytes", Bound: "first line is checked", serve: endless("\x00\xff\x80", "\x01\x02\x03\x00\xfe"), Want: isProtocol(0, "")},
		{Name: "empty-lines", Does: "endless empty lines", Bound: "first line is checked", serve: endless("", "\r\n"), Want: refused},
		{Name: "interim", Does: "100, 102 and 103 before the answer", Bound: "header limit of 64 KiB, for all these answers together", serve: text("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\n\r\nHTTP/1.1 103 E\r\nLink: </x>\r\n\r\n" + okLine + four), Want: isOK("body")},
		{Name: "interim-flood", Does: "endless answers with status 103", Bound: headerBound, serve: endless("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), Want: isProtocol(0, "")},
		{Name: "interim-drip", Does: "endless answers with status 103, slowly", Bound: headerTime, Slow: true, serve: drip("", "HTTP/1.1 103 E\r\n\r\n"), Want: isTimeout(0)},
		{Name: "switches-protocols", Does: "101 without an Upgrade request", Bound: "the connection is closed", serve: stall("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), Want: isProtocol(101, "switches protocols")},
	}
}

// headerCases returns servers with odd or too many fields.
func headerCases() []Case {
	refused := isProtocol(0, "malformed MIME header")
	tooLong := isProtocol(0, "headers exceeded")
	fields := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: y\r\n", i)
		}
		return b.String()
	}
	// A control character in a value makes the answer malformed.
	value := func(name, does, value string, want Want) Case {
		return Case{Name: "header-" + name, Does: does, Bound: "fields are checked", serve: text(plain + "X-A: " + value + "\r\n" + four), Want: want}
	}
	every := func(c string) string {
		var b strings.Builder
		b.WriteString("HTTP/1.1 200 O" + c + "K\r\n")
		for _, n := range []string{"Content-Type", "ETag", "Last-Modified", "Location", "Link", "Server", "Set-Cookie", "X-Robots-Tag", "Retry-After", "Content-Language", "Date", "Vary"} {
			b.WriteString(n + ": a" + c + "b\r\n")
		}
		return b.String() + four
	}
	return []Case{
		{Name: "header-endless-field", Does: "an endless field", Bound: headerBound, serve: endless(okLine+"X: ", "y"), Want: tooLong},
		{Name: "header-endless-name", Does: "an endless field name", Bound: headerBound, serve: endless(okLine, "x"), Want: tooLong},
		{Name: "header-endless-fields", Does: "endless fields", Bound: headerBound, serve: endless(okLine, "X: y\r\n"), Want: tooLong},
		{Name: "header-endless-folding", Does: "an endless folded field", Bound: headerBound, serve: endless(okLine+"X: y\r\n", " more\r\n"), Want: tooLong},
		{Name: "header-drip", Does: "endless fields, slowly", Bound: headerTime, Slow: true, serve: drip(okLine, "X: y\r\n"), Want: isTimeout(0)},
		{Name: "header-10000-fields", Does: "10,000 fields", Bound: headerBound, serve: text(okLine + fields(10_000) + four), Want: tooLong},
		{Name: "header-3000-fields", Does: "3,000 short fields", Bound: headerBound, serve: text(okLine + fields(3000) + four), Want: isOK("body")},
		{Name: "header-same-field", Does: "one field 5,000 times", Bound: headerBound, serve: text(okLine + strings.Repeat("X: y\r\n", 5000) + four), Want: isOK("body")},
		{Name: "header-large-etag", Does: "an ETag of 1 MB", Bound: headerBound, serve: text(okLine + "ETag: \"" + strings.Repeat("e", 1<<20) + "\"\r\n" + four), Want: tooLong},
		{Name: "header-long-etag", Does: "an ETag of 50 KB", Bound: "an ETag above 256 bytes is dropped", serve: text(okLine + "ETag: \"" + strings.Repeat("e", 50<<10) + "\"\r\n" + four), Want: isOK("body")},
		{Name: "header-cookies", Does: "1,000 cookies", Bound: "no cookie is sent back", serve: text(okLine + strings.Repeat("Set-Cookie: session=0123456789abcdef; Path=/\r\n", 1000) + four), Want: isOK("body")},
		{Name: "header-cookie-flood", Does: "endless cookies", Bound: headerBound, serve: endless(okLine, "Set-Cookie: session=0123456789abcdef; Path=/\r\n"), Want: tooLong},
		{Name: "header-links", Does: "Link fields with 2,000 targets in total", Bound: "limit of 100 links per header", serve: text(html + strings.Repeat("Link: </page/1>; rel=next, <//>; rel=\"\r\n", 1000) + four), Want: isOK("body")},
		value("nul", "NUL in a value", "a\x00b", refused),
		value("escape", "escape sequences of a terminal in a value", "\x1b]0;title\x07\x1b[2J", refused),
		value("delete", "DEL in a value", "a\x7fb", refused),
		value("lone-cr", "CR in a value, then text that looks like a field", "a\rX-Injected: yes", refused),
		value("lone-lf", "LF instead of CR LF after a value", "a\nX-B: b", isOK("body")),
		value("8-bit", "8-bit characters that are not UTF-8", "caf\xe9 \xff\xfe\x80", isOK("body")),
		value("folded", "a value folded over three lines", "a\r\n b\r\n\tc", isOK("body")),
		value("folded-record", "a folded value that looks like a record", "a\r\n WARC/1.1\r\n WARC-Type: response", isOK("body")),
		value("no-colon", "a line without a colon", "a\r\nnonsense", refused),
		value("space-before-colon", "a space before the colon", "a\r\nContent-Length : 2", Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeOK, Detail: ""}),
		value("empty-name", "a field without a name", "a\r\n: b", refused),
		value("odd-name", "a name of 8-bit characters", "a\r\nX-\xe4\xf6: b", refused),
		value("name-with-control", "a name with NUL", "a\r\nX-\x00: b", refused),
		{Name: "header-folded-first", Does: "a continuation line before the first field", Bound: "header is checked", serve: text(okLine + " X: y\r\n" + four), Want: refused},
		{Name: "header-control-everywhere", Does: "a control character in each field that the crawler uses", Bound: "header is checked", serve: text(every("\x01")), Want: refused},
		{Name: "header-8-bit-everywhere", Does: "bytes that are not UTF-8 in each field that the crawler uses", Bound: "such an ETag or Last-Modified is dropped", serve: text(every("\xff\xc3\x28")), Want: isOK("body")},
		{Name: "header-bare-lf", Does: "LF instead of CR LF everywhere", Bound: "accepted", serve: text("HTTP/1.1 200 OK\nContent-Type: text/plain\nContent-Length: 4\n\nbody"), Want: isOK("body")},
		{Name: "retry-after-absurd", Does: "429 with a Retry-After of a trillion years", Bound: "limit of one day", Alone: true, Day: true, serve: text("HTTP/1.1 429 No\r\nRetry-After: 99999999999999999999999\r\n" + four), Want: Want{Outcome: blobschema.OutcomeClientError, Status: 429, Body: "body"}},
		{Name: "retry-after-odd", Does: "503 with a negative and a malformed Retry-After", Bound: "a malformed Retry-After is ignored", Alone: true, serve: text("HTTP/1.1 503 No\r\nRetry-After: -1\r\nRetry-After: Tue, 99 Foo 9999 25:61:61 GMT\r\n" + four), Want: Want{Outcome: blobschema.OutcomeServerError, Status: 503, Body: "body"}},
		{Name: "content-type-odd", Does: "a Content-Type of 8 KB with every delimiter", Bound: "a media type above 128 bytes is dropped", serve: text(okLine + "Content-Type: " + strings.Repeat("text/html;charset=\";,;=", 350) + "\r\n" + four), Want: isOK("body")},
		{Name: "connection-odd", Does: "a Connection field that names other fields", Bound: "only close and keep-alive count", serve: text(okLine + "Connection: content-length, close, keep-alive, transfer-encoding\r\n" + four), Want: isOK("body")},
	}
}

// lengthCases returns servers that lie about the length of the body.
func lengthCases() []Case {
	l := func(name, does, fields string, want Want) Case {
		return Case{Name: "length-" + name, Does: does, Bound: lengthBound, serve: text(plain + fields + "\r\n\r\nbody"), Want: want}
	}
	otherwise := func(bound string, c Case) Case {
		c.Bound = bound
		return c
	}
	const transfer = "only chunked is accepted, once"
	refused := isProtocol(0, "Content-Length")
	return []Case{
		l("too-long", "a Content-Length longer than the body", "Content-Length: 5", isCut(200, "within the body")),
		l("too-short", "a Content-Length shorter than the body", "Content-Length: 2", isOK("bo")),
		l("zero", "a Content-Length of 0 before a body", "Content-Length: 0", isOK("")),
		l("negative", "a negative Content-Length", "Content-Length: -4", refused),
		l("plus", "Content-Length: +4", "Content-Length: +4", refused),
		l("hex", "Content-Length: 0x4", "Content-Length: 0x4", refused),
		l("fraction", "Content-Length: 4.0", "Content-Length: 4.0", refused),
		l("empty", "an empty Content-Length", "Content-Length:", Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeOK}),
		l("list", "Content-Length: 4, 5", "Content-Length: 4, 5", refused),
		l("twice", "two equal Content-Lengths", "Content-Length: 4\r\nContent-Length: 4", isOK("body")),
		l("differs", "two different Content-Lengths", "Content-Length: 4\r\nContent-Length: 2", refused),
		l("huge", "a Content-Length of 4 exabytes, and four bytes", "Content-Length: 4611686018427387904", isCut(200, "within the body")),
		l("over-64-bits", "a Content-Length of 30 digits", "Content-Length: "+strings.Repeat("9", 30), refused),
		l("long", "a Content-Length of 10,000 zeros and a 4", "Content-Length: "+strings.Repeat("0", 10_000)+"4", Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol, Status: 0}),
		otherwise("chunks count; the connection is closed", l("and-chunks", "a Content-Length and chunks that disagree", "Content-Length: 400\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0", isOK("body"))),
		otherwise(transfer, l("coding-unknown", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: gzip, chunked", isProtocol(0, "transfer encoding"))),
		otherwise(transfer, l("coding-twice", "Transfer-Encoding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", isProtocol(0, "transfer encoding"))),
		otherwise(transfer, l("coding-hidden", "Transfer-Encoding: xchunked", "Transfer-Encoding: xchunked", isProtocol(0, "transfer encoding"))),
		otherwise("the end of the connection", l("none", "neither length nor chunks: the body ends with the connection", "X: y", isOK("body"))),
		{Name: "length-none-endless", Does: "an endless body without a length", Bound: bodyBound, serve: endless(plain+"\r\n", "body"), Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}},
		{Name: "length-huge-endless", Does: "an endless body with a Content-Length of 4 exabytes", Bound: bodyBound, serve: endless(plain+"Content-Length: 4611686018427387904\r\n\r\n", "body"), Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}},
		{Name: "length-drip", Does: "an endless body, byte by byte", Bound: wholeTime, Slow: true, serve: drip(plain+"\r\n", "b"), Want: isTimeout(200)},
		{Name: "length-steady", Does: "an endless body at 5 kB/s", Bound: "four times the request timeout", Slow: true, serve: drip(plain+"\r\n", strings.Repeat("b", 100)),
			Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeCut, Status: 200, Truncated: true}},
		{Name: "surplus-answer", Does: "a second answer after the first, without a request", Bound: "the connection is closed; the second answer is never used for another URL",
			serve: func(x *conn) {
				x.send(okLine + four + okLine + "Content-Length: 4\r\n\r\nevil")
				x.keep = true
			}, Want: isOK("body")},
		{Name: "surplus-bytes", Does: "more bytes after the answer", Bound: "the connection is closed", serve: func(x *conn) {
			x.send(okLine + four + strings.Repeat("evil", 5000))
			x.keep = true
		}, Want: isOK("body")},
		{Name: "surplus-after-nothing", Does: "204 followed by a body that looks like an answer", Bound: "a 204 has no body; the connection is closed",
			serve: func(x *conn) {
				x.send("HTTP/1.1 204 No Content\r\n\r\n" + okLine + "Content-Length: 4\r\n\r\nevil")
				x.keep = true
			}, Want: Want{Outcome: blobschema.OutcomeOK, Status: 204}},
	}
}

// chunkCases returns servers that misuse the chunked transfer coding.
func chunkCases() []Case {
	refused := func(detail string) Want { return isProtocol(200, detail) }
	c := func(name, does, body string, want Want) Case {
		return Case{Name: "chunk-" + name, Does: does, Bound: "chunk framing is checked", serve: text(plain + chunked + body), Want: want}
	}
	return []Case{
		c("size-letters", "a chunk size that is not a number", "zz\r\nbody\r\n0\r\n\r\n", refused("chunk")),
		c("size-negative", "a negative chunk size", "-4\r\nbody\r\n0\r\n\r\n", refused("chunk")),
		c("size-plus", "chunk size +4", "+4\r\nbody\r\n0\r\n\r\n", refused("chunk")),
		c("size-prefix", "chunk size 0x4", "0x4\r\nbody\r\n0\r\n\r\n", refused("chunk")),
		c("size-empty", "an empty chunk size", "\r\nbody\r\n0\r\n\r\n", refused("")),
		c("size-over-64-bits", "a chunk size of 17 digits", "fffffffffffffffff\r\nbody", refused("chunk length too large")),
		c("size-huge", "a chunk of 16 exabytes, and four bytes", "ffffffffffffffff\r\nbody", isCut(200, "within the body")),
		c("size-zeros", "a chunk size of 1,000 zeros and a 4", strings.Repeat("0", 1000)+"4\r\nbody\r\n0\r\n\r\n", refused("chunk")),
		c("no-crlf", "no line end after a chunk", "4\r\nbody0\r\n\r\n", refused("chunked encoding")),
		c("wrong-crlf", "other bytes instead of the line end after a chunk", "4\r\nbodyxx0\r\n\r\n", refused("chunked encoding")),
		c("lone-cr", "CR alone after a chunk size", "4\rbody\r\n0\r\n\r\n", refused("")),
		c("lone-lf", "LF alone after a chunk size", "4\nbody\r\n0\r\n\r\n", Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeOK}),
		c("extension", "a short extension on each chunk, and a trailer", "2;a=b\r\nbo\r\n2;\"\r\ndy\r\n0\r\nX: y\r\n\r\n", isOK("body")),
		c("trailer-length", "a trailer with Content-Length and Content-Encoding", "4\r\nbody\r\n0\r\nContent-Length: 2\r\nContent-Encoding: gzip\r\n\r\n", isOK("body")),
		{Name: "chunk-endless-extension", Does: "an endless chunk extension", Bound: "line limit of 4 KiB", serve: endless(plain+chunked+"1;", "x"), Want: refused("header line too long")},
		{Name: "chunk-extensions", Does: "chunks of one byte with an extension of 1 KB each", Bound: "framing limit: 16 bytes per chunk, twice the body, and 16 KiB", serve: endless(plain+chunked, "1;"+strings.Repeat("x", 1000)+"\r\na\r\n"), Want: refused("non-data")},
		{Name: "chunk-tiny", Does: "endless chunks of one byte", Bound: bodyBound, serve: endless(plain+chunked, "1\r\na\r\n"), Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol, Status: 200, Truncated: true, Wire: 8 << 20}},
		{Name: "chunk-endless", Does: "endless chunks", Bound: bodyBound, serve: endless(plain+chunked, "400\r\n"+strings.Repeat("a", 1024)+"\r\n"), Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}},
		{Name: "chunk-huge-endless", Does: "an endless chunk with a size of 16 exabytes", Bound: bodyBound, serve: endless(plain+chunked+"ffffffffffffffff\r\n", "a"), Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}},
		{Name: "chunk-endless-trailer", Does: "an endless trailer", Bound: "trailer limit of 4 KiB", serve: endless(plain+chunked+"4\r\nbody\r\n0\r\n", "X: y\r\n"), Want: refused("trailer")},
		{Name: "chunk-endless-trailer-field", Does: "an endless trailer field", Bound: "trailer limit of 4 KiB", serve: endless(plain+chunked+"4\r\nbody\r\n0\r\nX: ", "y"), Want: refused("trailer")},
		{Name: "chunk-drip", Does: "chunks of one byte, slowly", Bound: wholeTime, Slow: true, serve: drip(plain+chunked, "1\r\na\r\n"), Want: isTimeout(200)},
		{Name: "chunk-size-drip", Does: "a chunk size of zeros, slowly", Bound: wholeTime, Slow: true, serve: drip(plain+chunked, "0"), Want: Want{Outcome: blobschema.OutcomeTimeout, Or: blobschema.OutcomeProtocol, Status: 200}},
		{Name: "chunk-trailer-drip", Does: "a trailer, slowly", Bound: wholeTime, Slow: true, serve: drip(plain+chunked+"0\r\n", "X"), Want: isTimeout(200)},
	}
}

// bodyCases returns servers whose pages are expensive to parse.
func bodyCases() []Case {
	const nest = 100_000
	cut := Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}
	b := func(name, does, start, piece string, n int, end string, want Want) Case {
		return Case{Name: "html-" + name, Does: does, Bound: "one pass over the body; limit of links per page", serve: long(html+"\r\n"+start, piece, n, end), Want: want}
	}
	okay := Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 2 << 20}
	first := `<a href="/page/1">one</a>`
	found := func(w Want) Want {
		w.Links = 1
		return w
	}
	return []Case{
		b("one-tag", "a tag with 50 MB of attributes", "<a ", "a=b ", 50<<20/4, ">", cut),
		b("one-attribute", "a tag with one attribute of 50 MB", "<a href='", "x", 50<<20, "'>", cut),
		b("same-tag", "50 MB of the same tag", "", "<b>", 50<<20/3, "", cut),
		b("nested", "elements nested 100,000 deep", first, "<i>", nest, "</i>", found(okay)),
		b("nested-tables", "tables nested 40,000 deep", first, "<table><tr><td>", nest*2/5, "", found(okay)),
		b("nested-forms", "60,000 elements that end others", first, "<a><p><button>", nest*3/5, "", found(okay)),
		b("open-comment", "a comment that never ends", first+"<!--", "-- ->", nest, "", found(okay)),
		b("open-script", "a script that never ends", first+"<script>", "</scrip <!--", nest/2, "", found(okay)),
		b("open-quote", "a quote that never ends", first+"<a href=\"", "<a href='x'>", nest/2, "", found(okay)),
		b("entities", "75,000 character references", first, "&amp;&#x;&#9999999999;", nest/4, "", found(okay)),
		b("links", "50,000 links", "", "<a href=\"/page/1?"+"x\">", nest/2, "", found(okay)),
		b("long-url", "a link of 500 KB", first+"<a href=\"/", "x", 500_000, "\">", found(okay)),
		b("control-links", "links with CR, LF, NUL and spaces", first+"<a href=\"/page/2\r\nX: y\"><a href='/page/3&#13;&#10;WARC/1.1&#0;'><a href='/a%0d%0ab%00c'><a href='java\nscript:x'>", " ", 1, "", found(okay)),
		b("base", "unusable base elements", "<base href='file:///etc/passwd'><base href='http://[::'><a href='/page/1'>", " ", 1, "", okay),
		b("nul", "a page of NULs", first, "\x00", 900_000, "", found(okay)),
		b("utf-16", "a page that is not UTF-16 but declares it", "<meta charset=utf-16><meta charset=utf-7>"+first, "\xff\xfe", 1000, "", okay),
		b("large", "50 MB of text", first, strings.Repeat("all work and no play ", 50), 50_000, "", found(cut)),
	}
}

// requisiteCases returns servers whose pages and style sheets need too much, or something that is forbidden.
func requisiteCases() []Case {
	const css = okLine + "Content-Type: text/css\r\n\r\n"
	const several, most = "limit of 2,000 requisites", "one pass over the style sheet"
	okay := Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 2 << 20}
	return []Case{
		{Name: "html-requisites", Does: "a page that needs 40,000 images", Bound: several, serve: long(html+"\r\n", "<img srcset='a.png, b.png'>", 20_000, ""), Want: okay},
		{Name: "css-chain", Does: "endless style sheets, each of which imports a new one", Bound: "limit of ten requisites in a row",
			serve: func(x *conn) { x.send(css + "@import '" + x.path + "/n';") }, Want: okay},
		{Name: "css-imports", Does: "50,000 imports", Bound: several, serve: long(css, "@import 'a.css';", 50_000, ""), Want: okay},
		{Name: "css-open-comment", Does: "a comment that never ends", Bound: most, serve: long(css+"/*", "*\\/ /*", 100_000, ""), Want: okay},
		{Name: "css-open-urls", Does: "100,000 addresses that never end", Bound: most, serve: long(css, "url(\"\\", 100_000, ""), Want: okay},
		{Name: "css-escapes", Does: "an address of 200,000 escapes", Bound: "limit on the length of a URL", serve: long(css+"a{background:url(", "\\61 ", 200_000, ")}"), Want: okay},
		{Name: "css-nested", Does: "100,000 blocks within each other", Bound: most, serve: long(css, "a{@media{", 100_000, ""), Want: okay},
		{Name: "needs-inside", Does: "a page that needs a style sheet, a script, images and a font of 127.0.0.1", Bound: "the address of each is refused",
			serve: func(x *conn) {
				x.send(html + "\r\n" + strings.ReplaceAll("<link rel=stylesheet href=http://INSIDE/1><script src=http://INSIDE/2></script><img src=//INSIDE/3 srcset=http:\\\\INSIDE/4>"+
					"<style>@font-face{src:url(http://INSIDE/5)}</style><p style='background:url(\\68ttp://INSIDE/6)'>", "INSIDE", x.s.Inside().String()))
			}, Want: okay},
	}
}

// coding is a content coding with its hostile bodies. All codings have the same cases.
type coding struct {
	name string // value of Content-Encoding
	page []byte // codingPage, encoded
	bomb func() []byte
	much string // decoded size of the bomb
}

const codingPage = `<!doctype html><a href="/page/1">one</a>`

// codings returns all content codings that the crawler accepts.
func codings() []coding {
	return []coding{
		{"gzip", gzipped([]byte(codingPage)), sync.OnceValue(gzipBomb), "800 MB"},
		{"zstd", zstdFrame(0, []byte(codingPage)), zstdBomb, "12 GB"},
		{"br", brotlied([]byte(codingPage)), sync.OnceValue(brotliBomb), "256 MB"},
	}
}

// brotlied encodes a body with brotli.
func brotlied(body []byte) []byte {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.BestSpeed)
	w.Write(body)
	w.Close()
	return b.Bytes()
}

// brotliBomb returns 180 KB that decode to 256 MB. It repeats an encoded part of 8 MB, because encoding
// everything takes long. Each part ends on a byte boundary (RFC 7932 section 9.2). All parts after the first
// have the same bytes.
func brotliBomb() []byte {
	var b bytes.Buffer
	w := brotli.NewWriterLevel(&b, brotli.BestSpeed)
	w.Write([]byte(codingPage))
	w.Flush()
	var ends []int
	for range 2 {
		w.Write(bytes.Repeat([]byte{'<'}, 8<<20))
		w.Flush()
		ends = append(ends, b.Len())
	}
	bomb := append(b.Bytes(), bytes.Repeat(b.Bytes()[ends[0]:ends[1]], 30)...)
	return append(bomb, 0x03) // the last part, empty
}

// gzipBomb returns 800 KB that inflate to about 800 MB. It repeats one gzip member, because compressing
// everything takes long.
func gzipBomb() []byte {
	var member bytes.Buffer
	w, _ := gzip.NewWriterLevel(&member, gzip.BestCompression)
	w.Write(bytes.Repeat([]byte{'<'}, 8<<20))
	w.Close()
	return append(gzipped([]byte(codingPage)), bytes.Repeat(member.Bytes(), 100)...)
}

// zstdFrame returns a frame (RFC 8878 section 3.1.1) with a window of 2^(10+window) bytes: body in one raw
// block, then further blocks, whose bytes the caller has encoded.
func zstdFrame(window byte, body []byte, blocks ...byte) []byte {
	b := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, window << 3}
	head := len(body) << 3
	if len(blocks) == 0 {
		head |= 1
	}
	b = append(b, byte(head), byte(head>>8), byte(head>>16))
	return append(append(b, body...), blocks...)
}

// zstdBomb returns 400 KB that decode to 12 GB: each block repeats one byte 128 Ki times.
func zstdBomb() []byte {
	const size = 128 << 10
	return zstdFrame(10, []byte(codingPage), bytes.Repeat([]byte{size<<3&0xff | 1<<1, size << 3 >> 8 & 0xff, size << 3 >> 16, '<'}, 100_000)...)
}

func codingCases() []Case {
	answer := func(coding string, body []byte) func(*conn) {
		return text(fmt.Sprintf("%sContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", html, coding, len(body), body))
	}
	stored := func(body []byte) Want {
		return Want{Outcome: blobschema.OutcomeOK, Status: 200, Body: string(body), Wire: 2 << 20}
	}
	const received = "decoding limit"
	const several = "several codings are not decoded"
	var cases []Case
	for _, c := range codings() {
		links := func(w Want) Want { // the beginning decodes, so its link is found
			w.Links = 1
			return w
		}
		ofGzip := func(w Want) Want { // the gzip decoder recognises plain bodies and returns bytes before the end of the stream
			if c.name == "gzip" {
				w.Links = 1
			}
			return w
		}
		half := c.page[:len(c.page)-1]
		garbage := append(bytes.Clone(c.page), "trailing garbage"...)
		broken := append(bytes.Clone(c.page[:8]), bytes.Repeat([]byte{0xff}, 1000)...)
		cases = append(cases,
			Case{Name: c.name + "-bomb", Does: "a body that decodes to " + c.much + ", " + c.name, Bound: received, Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 2 << 20, Links: links(Want{}).Links},
				serve: func(x *conn) { answer(c.name, c.bomb())(x) }},
			Case{Name: c.name + "-truncated", Does: "a body whose coding is cut off, " + c.name, Bound: received, serve: answer(c.name, half), Want: ofGzip(stored(half))},
			Case{Name: c.name + "-trailing-garbage", Does: "garbage after the coded body, " + c.name, Bound: received, serve: answer(c.name, garbage), Want: links(stored(garbage))},
			Case{Name: c.name + "-broken", Does: "a body that turns into garbage, " + c.name, Bound: received, serve: answer(c.name, broken), Want: stored(broken)},
			Case{Name: c.name + "-empty", Does: "an empty body, " + c.name, Bound: received, serve: answer(c.name, nil), Want: stored(nil)},
			Case{Name: c.name + "-not", Does: "plain text declared as " + c.name, Bound: received, serve: answer(c.name, []byte(codingPage)), Want: ofGzip(stored([]byte(codingPage)))})
	}
	twice := gzipped(gzipBomb())
	window := zstdFrame(21, []byte(codingPage))
	name := append([]byte("\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x00"), bytes.Repeat([]byte("name"), 100_000)...)
	return append(cases,
		Case{Name: "gzip-twice", Does: "a gzip bomb compressed again, declared as gzip twice", Bound: several, serve: answer("gzip, gzip", twice), Want: stored(twice)},
		Case{Name: "gzip-endless", Does: "an endless gzip bomb", Bound: bodyBound, serve: func(x *conn) {
			x.send(html + "Content-Encoding: gzip\r\n\r\n")
			endless("", string(gzipBomb()))(x)
		}, Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20, Links: 1}},
		Case{Name: "gzip-long-name", Does: "a gzip header with a file name of 400 KB", Bound: received, serve: answer("gzip", name), Want: stored(name)},
		Case{Name: "zstd-window", Does: "a zstd frame with a window of 2 GiB", Bound: "a window above 8 MiB is refused", serve: answer("zstd", window), Want: stored(window)},
		Case{Name: "coding-unknown", Does: "a content coding that does not exist", Bound: "an unknown coding is not decoded, so no links are found", serve: answer("x-rot13", []byte(codingPage)), Want: stored([]byte(codingPage))},
		Case{Name: "coding-many", Does: "a list of 1,000 content codings", Bound: several, serve: answer(strings.Repeat("gzip, ", 999)+"gzip", []byte(codingPage)), Want: stored([]byte(codingPage))},
	)
}

// redirectCases returns servers that redirect in circles, without end, or to forbidden targets.
func redirectCases() []Case {
	to := func(target string) func(*conn) {
		return func(x *conn) {
			port := fmt.Sprint(x.s.Inside().Port())
			x.send("HTTP/1.1 302 Found\r\nLocation: " + strings.ReplaceAll(target, "PORT", port) + "\r\n" + four)
		}
	}
	redirect := Want{Outcome: blobschema.OutcomeRedirect, Status: 302, Body: "body", Links: 1}
	none := Want{Outcome: blobschema.OutcomeClientError, Status: 302, Body: "body"}
	const judged = "the address of the target is refused"
	const noURL = "there is no target that can be fetched"
	cases := []Case{
		{Name: "redirect-loop", Does: "302 to itself", Bound: "a URL is requested once", serve: to("/x"), Want: redirect},
		{Name: "redirect-pair", Does: "302 to a URL that redirects back", Bound: "a URL is requested once", serve: func(x *conn) {
			to(map[string]string{"/x": "/x/back", "/x/back": "/x"}[x.path] + "#")(x)
		}, Want: redirect},
		{Name: "redirect-chain", Does: "endless 302, each to a new URL", Bound: "limit of ten redirects in a row", serve: func(x *conn) {
			to(x.path + "/" + strings.Repeat("n", 60))(x)
		}, Want: redirect},
		{Name: "redirect-grows", Does: "302 to a URL that is twice as long, again and again", Bound: "limit on the length of a URL", serve: func(x *conn) {
			to("/x/" + strings.Repeat("y", 2*len(x.path)))(x)
		}, Want: redirect},
		{Name: "redirect-long", Does: "302 to a URL of 50 KB", Bound: "limit on the length of a URL", serve: to("/" + strings.Repeat("x", 50<<10)), Want: none},
		{Name: "redirect-nowhere", Does: "302 without a Location", Bound: noURL, serve: text("HTTP/1.1 302 Found\r\n" + four), Want: none},
		{Name: "redirect-empty", Does: "302 with an empty Location", Bound: noURL, serve: to(""), Want: none},
		{Name: "redirect-twice", Does: "302 with two Locations, the second of which leads inside", Bound: "the first counts", serve: to("/page/1\r\nLocation: http://127.0.0.1:PORT/"), Want: redirect},
		{Name: "redirect-crlf", Does: "302 to a path with escaped CR LF and text that looks like a record", Bound: "the path stays escaped", serve: to("/page/1%0d%0aX:y%0d%0a%0d%0aWARC/1.1%00"), Want: redirect},
		{Name: "redirect-control", Does: "302 to a path with a control character", Bound: "header is checked", serve: to("/a\x01b"), Want: isProtocol(0, "malformed MIME header")},
		{Name: "redirect-8-bit", Does: "302 to a path with 8-bit characters", Bound: "the characters are escaped", serve: to("/caf\xe9/\xff\xfe"), Want: redirect},
		{Name: "redirect-tab", Does: "302 to a path with tabs", Bound: "the tabs are removed (URL Standard, section 4.4)", serve: to("/pa\tge/1"), Want: redirect},
		{Name: "redirect-folded", Does: "302 with a folded Location", Bound: "the field is read as one line with a space", serve: to("/a\r\n b"), Want: redirect},
		{Name: "redirect-body", Does: "302 with an endless body", Bound: bodyBound, serve: endless("HTTP/1.1 302 Found\r\nLocation: /page/1\r\n\r\n", "body"),
			Want: Want{Outcome: blobschema.OutcomeRedirect, Status: 302, Truncated: true, Wire: 2 << 20, Links: 1}},
	}
	for _, t := range []struct{ name, does, to string }{
		{"loopback", "127.0.0.1", "http://127.0.0.1:PORT/"},
		{"decimal", "127.0.0.1 in decimal", "http://2130706433:PORT/"},
		{"octal", "127.0.0.1 in octal", "http://0177.0.0.01:PORT/"},
		{"hex", "127.0.0.1 in hexadecimal", "http://0x7F000001:PORT/"},
		{"short", "127.0.0.1 as 127.1", "http://127.1:PORT/"},
		{"mixed", "127.0.0.1 as 0x7f.1", "http://0x7f.1:PORT/"},
		{"fullwidth", "127.0.0.1 in full-width digits", "http://１２７。０。０。１:PORT/"},
		{"escaped", "127.0.0.1, percent-encoded", "http://%31%32%37.0.0.1:PORT/"},
		{"dot", "127.0.0.1 with a final dot", "http://127.0.0.1.:PORT/"},
		{"user", "127.0.0.1 behind credentials", "http://example.org@127.0.0.1:PORT/"},
		{"backslash", `127.0.0.1 behind backslashes`, `http:\\127.0.0.1:PORT\`},
		{"no-scheme", "127.0.0.1 without scheme", "//127.0.0.1:PORT/"},
		{"zero", "0.0.0.0, which connects to this machine", "http://0:PORT/"},
		{"ipv6", "::1", "http://[::1]:PORT/"},
		{"ipv6-mapped", "127.0.0.1 as IPv6", "http://[::ffff:127.0.0.1]:PORT/"},
		{"ipv6-mapped-hex", "127.0.0.1 as IPv6 in hexadecimal", "http://[0:0:0:0:0:ffff:7f00:1]:PORT/"},
		{"ipv6-compatible", "127.0.0.1 as IPv4-compatible IPv6", "http://[::7f00:1]:PORT/"},
		{"nat64", "127.0.0.1 through NAT64", "http://[64:ff9b::7f00:1]:PORT/"},
		{"6to4", "127.0.0.1 through 6to4", "http://[2002:7f00:1::1]:PORT/"},
		{"private", "10.0.0.1", "http://10.0.0.1/"},
		{"private-172", "172.16.0.1 in octal", "http://0254.020.1/"},
		{"private-192", "192.168.1.1 in decimal", "http://3232235777/"},
		{"shared", "100.64.0.1", "http://100.64.0.1/"},
		{"metadata", "the metadata service of a cloud", "http://169.254.169.254/latest/meta-data/"},
		{"metadata-decimal", "the metadata service of a cloud, in decimal", "http://2852039166/"},
		{"metadata-ipv6", "the metadata service of a cloud, in IPv6", "http://[fd00:ec2::254]/"},
		{"link-local", "a link-local address", "http://[fe80::1]/"},
		{"https", "127.0.0.1, with https", "https://127.0.0.1:PORT/"},
	} {
		cases = append(cases, Case{Name: "inside-" + t.name, Does: "302 to " + t.does, Bound: judged, Follow: true, serve: to(t.to), Want: redirect})
	}
	for _, t := range []struct{ name, does, to string }{
		{"file", "302 to file:", "file:///etc/passwd"},
		{"javascript", "302 to javascript:", "javascript:alert(1)"},
		{"data", "302 to data:", "data:text/html,<a href=/>"},
		{"gopher", "302 to gopher:", "gopher://127.0.0.1:6379/_FLUSHALL"},
		{"ftp", "302 to ftp:", "ftp://127.0.0.1/"},
		{"zone", "302 to an address with a zone", "http://[fe80::1%25lo]/"},
		{"overflow", "302 to a number above the last address", "http://4294967297/"},
		{"bad-port", "302 to port 99999", "http://127.0.0.1:99999/"},
		{"no-host", "302 to a URL without host", "http:///"},
	} {
		cases = append(cases, Case{Name: "scheme-" + t.name, Does: t.does, Bound: noURL, serve: to(t.to), Want: none})
	}
	return cases
}

// robotsCases returns servers with a hostile robots.txt. Their pages are good.
func robotsCases() []Case {
	const kept = "robots.txt limit of 512 KiB"
	r := func(name, does string, serve func(*conn), want Want) Case {
		return Case{Name: "robots-" + name, Does: does, Bound: kept, Robots: true, path: "/robots.txt", serve: serve, Want: want}
	}
	cut := Want{Outcome: blobschema.OutcomeOK, Status: 200, Truncated: true, Wire: 2 << 20}
	const allow = "User-agent: *\nDisallow: /private/\n"
	many := Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 512 << 10}
	return []Case{
		r("large", "a robots.txt of 100 MB", long(plain+"\r\n"+allow, "Disallow: /private/a/b/c\n", 4_000_000, ""), cut),
		r("endless", "an endless robots.txt", endless(plain+"\r\n"+allow, "Disallow: /private/\n"), cut),
		r("endless-line", "a robots.txt of one endless line", endless(plain+"\r\n"+allow+"Disallow: /private/", "a*"), cut),
		r("wildcards", "rules that consist of wildcards", long(plain+"\r\nUser-agent: *\n", "Disallow: /*a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*q*r*s*t*$\n", 5000, ""), many),
		r("agents", "10,000 groups", long(plain+"\r\n"+allow, "User-agent: other\nDisallow: /\n\n", 10_000, ""), many),
		r("sitemaps", "10,000 sitemaps", long(plain+"\r\n"+allow, "Sitemap: http://127.0.0.1/sitemap.xml\n", 10_000, ""), many),
		r("binary", "a robots.txt of binary data", long(plain+"\r\n", "\x00\xff\xfe\r\x0b\x1f", 10_000, ""), isOK("")),
		r("html", "a page instead of robots.txt", text(html+"\r\n<html><body>Disallow: /"), isOK("")),
		r("bomb", "a robots.txt that inflates to 800 MB", func(x *conn) {
			x.send(plain + "Content-Encoding: gzip\r\n\r\n")
			x.Write(gzipped([]byte(allow)))
			x.Write(gzipBomb())
		}, cut),
		{Name: "robots-inside", Does: "a robots.txt that redirects inside", Bound: "the target is refused; without rules no page of the host is requested",
			Robots: true, Alone: true, path: "/robots.txt", serve: func(x *conn) {
				x.send(fmt.Sprintf("HTTP/1.1 301 M\r\nLocation: http://127.0.0.1:%d/robots.txt\r\n%s", x.s.Inside().Port(), four))
			}, Want: Want{Outcome: blobschema.OutcomeRedirect, Status: 301, Body: "body"}},
		{Name: "robots-loop", Does: "a robots.txt that redirects to itself", Bound: "limit of five redirects; then everything is allowed", Robots: true, path: "/robots.txt",
			serve: text("HTTP/1.1 301 M\r\nLocation: /robots.txt\r\n" + four), Want: Want{Outcome: blobschema.OutcomeRedirect, Status: 301, Body: "body"}},
	}
}
