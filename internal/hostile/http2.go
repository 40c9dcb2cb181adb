package hostile

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/orbweaver/orbweaver/blobschema"
)

// stream is an HTTP/2 request for the URL of a case.
type stream struct {
	*http2.Framer
	x  *conn
	id uint32
}

// handle2 serves an HTTP/2 connection. Only the path of the case gets a hostile answer.
func (s *Server) handle2(h *host, x *conn) {
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(x, preface); err != nil || string(preface) != http2.ClientPreface {
		return
	}
	f := http2.NewFramer(x, x)
	f.AllowIllegalWrites = true
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if f.WriteSettings() != nil {
		return
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				f.WriteSettingsAck()
			}
		case *http2.MetaHeadersFrame:
			path := frame.PseudoValue("path")
			st := &stream{f, x, frame.StreamID}
			if h.c.is(path) {
				h.c.serve2(st)
				if !x.keep {
					return
				}
				continue
			}
			r := s.answer(path)
			st.headers(false, ":status", fmt.Sprint(r.status), "content-type", r.Type, "content-encoding", r.Coding)
			for body := r.Body; ; {
				n := min(len(body), 16<<10)
				if f.WriteData(st.id, n == len(body), body[:n]) != nil {
					return
				}
				if body = body[n:]; len(body) == 0 {
					break
				}
			}
		}
	}
}

// block encodes pairs of names and values as a header block. It skips a pair without a value.
func block(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1], Sensitive: true})
		}
	}
	return b.Bytes()
}

func (s *stream) headers(end bool, pairs ...string) error {
	return s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block(pairs...), EndHeaders: true, EndStream: end})
}

// leave waits until the client closes the connection.
func (s *stream) leave() { s.x.leave() }

// goOn keeps the connection open for further requests.
func (s *stream) goOn() { s.x.keep = true }

// flood sends a frame again and again until the client leaves or the bound on sent bytes is reached. It reads and drops
// the frames of the client.
func (s *stream) flood(frame func(*stream)) {
	go io.Copy(io.Discard, s.x)
	s.deaf(frame)
}

// deaf sends a frame like flood but reads nothing, so a client that answers soon blocks.
func (s *stream) deaf(frame func(*stream)) {
	var b bytes.Buffer
	many := &stream{http2.NewFramer(&b, nil), s.x, s.id}
	many.AllowIllegalWrites = true
	for b.Len() < 16<<10 {
		frame(many)
	}
	for {
		if _, err := s.x.Write(b.Bytes()); err != nil {
			return
		}
	}
}

func http2Cases() []Case {
	const unasked = "limit of 4 MiB without an answer; the connection is closed"
	flooded := Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Wire: 5 << 20}
	const fieldsBound = "header limit of 64 KiB"
	protocol := Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeCut, Wire: 4 << 20}
	timeout := Want{Outcome: blobschema.OutcomeTimeout, Detail: "t"}
	cases := []struct {
		Case
		serve func(*stream)
	}{
		{Case{Name: "h2-goaway", Does: "GOAWAY instead of an answer, then the end of the connection", Bound: "the end of the connection", Want: protocol},
			func(s *stream) { s.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) }},
		{Case{Name: "h2-goaway-flood", Does: "endless GOAWAY frames", Bound: "the request is sent again at most once",
			Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeTimeout, Wire: 64 << 20}},
			func(s *stream) { s.flood(func(s *stream) { s.WriteGoAway(0, http2.ErrCodeNo, make([]byte, 1000)) }) }},
		{Case{Name: "h2-goaway-later", Does: "endless GOAWAY frames that still promise an answer", Bound: headerTime, Slow: true, Want: timeout},
			func(s *stream) {
				for s.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil) == nil {
					time.Sleep(10 * time.Millisecond)
				}
			}},
		{Case{Name: "h2-reset", Does: "RST_STREAM instead of an answer", Bound: "the end of the stream", Want: protocol},
			func(s *stream) { s.WriteRSTStream(s.id, http2.ErrCodeInternal); s.goOn() }},
		{Case{Name: "h2-refused", Does: "REFUSED_STREAM for every request", Bound: "the request is sent again at most once", Slow: true, Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeTimeout, Detail: ""}},
			func(s *stream) { s.WriteRSTStream(s.id, http2.ErrCodeRefusedStream); s.goOn() }},
		{Case{Name: "h2-reset-in-body", Does: "RST_STREAM within the body", Bound: "the end of the stream", Want: Want{Outcome: blobschema.OutcomeCut, Status: 200, Detail: "within the body"}},
			func(s *stream) {
				s.headers(false, ":status", "200")
				s.WriteData(s.id, false, []byte("half"))
				s.WriteRSTStream(s.id, http2.ErrCodeInternal)
				s.goOn()
			}},
		{Case{Name: "h2-endless-continuation", Does: "an endless header in CONTINUATION frames", Bound: fieldsBound, Want: protocol},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block(":status", "200")})
				s.flood(func(s *stream) { s.WriteContinuation(s.id, false, block("x-field", strings.Repeat("y", 1000))) })
			}},
		{Case{Name: "h2-empty-continuation", Does: "endless empty CONTINUATION frames", Bound: unasked, Want: flooded},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block(":status", "200")})
				s.flood(func(s *stream) { s.WriteContinuation(s.id, false, nil) })
			}},
		{Case{Name: "h2-header-bomb", Does: "a field of 4,000 bytes, then 8,000 references to it of one byte each", Bound: fieldsBound + " after decompression", Want: protocol},
			func(s *stream) {
				var b bytes.Buffer
				e := hpack.NewEncoder(&b)
				e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 4000)})
				b.WriteString(strings.Repeat("\xbe", 8000)) // index 62, the newest entry
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: true})
				s.goOn()
			}},
		{Case{Name: "h2-bad-compression", Does: "a header block that cannot be decoded", Bound: "header is checked", Want: protocol},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: []byte("\xff\xff\xff\xff\xff\xff\xff"), EndHeaders: true})
				s.leave()
			}},
		{Case{Name: "h2-no-status", Does: "an answer without a status", Bound: "header is checked", Want: protocol},
			func(s *stream) { s.headers(true, "content-type", "text/html"); s.goOn() }},
		{Case{Name: "h2-control-characters", Does: "CR, LF and NUL in header fields", Bound: "header is checked", Want: protocol},
			func(s *stream) {
				s.headers(true, ":status", "200", "x-a", "b\r\nInjected: yes", "x-nul", "a\x00b")
				s.goOn()
			}},
		{Case{Name: "h2-interim-flood", Does: "endless answers with status 103", Bound: "header limit of 64 KiB, for all these answers together", Want: protocol},
			func(s *stream) { s.flood(func(s *stream) { s.headers(false, ":status", "103", "link", "</x>") }) }},
		{Case{Name: "h2-overflow", Does: "more of a body than the window allows", Bound: "window is checked", Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol, Status: 200, Truncated: true, Wire: 16 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.flood(func(s *stream) { s.WriteData(s.id, false, make([]byte, 16<<10)) })
			}},
		{Case{Name: "h2-large-frame", Does: "a frame with a length of 16 MiB", Bound: "frame limit of 16 KiB", Want: protocol},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.x.send("\xff\xff\xff\x00\x00\x00\x00\x00\x01")
				endless("", "x")(s.x)
			}},
		{Case{Name: "h2-empty-data", Does: "endless empty DATA frames", Bound: "limit of 8 MiB and 64 bytes per byte of the body", Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Status: 200, Wire: 9 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.flood(func(s *stream) { s.WriteData(s.id, false, nil) })
			}},
		{Case{Name: "h2-ping-flood", Does: "endless PING frames instead of an answer", Bound: unasked, Want: flooded},
			func(s *stream) { s.flood(func(s *stream) { s.WritePing(false, [8]byte{}) }) }},
		{Case{Name: "h2-ping-deaf", Does: "endless PING frames instead of an answer; the server reads nothing", Bound: headerTime, Slow: true,
			Want: Want{Outcome: blobschema.OutcomeTimeout, Or: blobschema.OutcomeCut, Wire: 5 << 20}},
			func(s *stream) { s.deaf(func(s *stream) { s.WritePing(false, [8]byte{}) }) }},
		{Case{Name: "h2-settings-flood", Does: "endless SETTINGS frames instead of an answer", Bound: unasked, Want: flooded},
			func(s *stream) {
				s.flood(func(s *stream) { s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100}) })
			}},
		{Case{Name: "h2-flood-after-answer", Does: "endless PING frames after a good answer", Bound: unasked + " (8 MiB while the answer is being read)", Alone: true, Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 9 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.WriteData(s.id, true, []byte("body"))
				s.flood(func(s *stream) { s.WritePing(true, [8]byte{}) })
			}},
		{Case{Name: "h2-no-window", Does: "SETTINGS with a window of 0, then no answer", Bound: headerTime, Slow: true, Want: timeout},
			func(s *stream) {
				s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				s.goOn()
			}},
		{Case{Name: "h2-push", Does: "a server push", Bound: "push is refused", Want: protocol},
			func(s *stream) {
				s.WritePushPromise(http2.PushPromiseParam{StreamID: s.id, PromiseID: 2, BlockFragment: block(":method", "GET", ":path", "/page/1"), EndHeaders: true})
				s.leave()
			}},
		{Case{Name: "h2-surplus-stream", Does: "an answer on a stream that the client did not open, next to the right one", Bound: "the answer is never used for another request", Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id + 2, BlockFragment: block(":status", "200"), EndHeaders: true})
				s.WriteData(s.id+2, true, []byte("evil"))
				s.WriteData(s.id, true, []byte("body"))
				s.goOn()
			}},
		{Case{Name: "h2-wrong-length", Does: "a Content-Length that differs from the body", Bound: "Content-Length is checked", Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Status: 200}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-length", "100")
				s.WriteData(s.id, true, []byte("half"))
				s.goOn()
			}},
		{Case{Name: "h2-garbage", Does: "bytes that are not frames", Bound: "frames are checked", Want: protocol},
			func(s *stream) { endless("", "not frames at all")(s.x) }},
	}
	out := make([]Case, len(cases))
	for i, c := range cases {
		out[i] = c.Case
		out[i].secure, out[i].serve2 = with(goodTLS, "h2"), c.serve
	}
	return out
}
