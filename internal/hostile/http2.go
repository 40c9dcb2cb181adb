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

// stream is a request over HTTP/2 that a case is to answer.
type stream struct {
	*http2.Framer
	x  *conn
	id uint32
}

// handle2 speaks HTTP/2: honestly, but for the case's own path.
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

// block encodes names and values that follow each other as a header block. A pair without value
// is left out.
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

// leave waits until the client has gone.
func (s *stream) leave() { s.x.leave() }

// goOn keeps the connection for further requests.
func (s *stream) goOn() { s.x.keep = true }

// flood sends a frame again and again until the client has gone, or enough was sent, and takes what
// the client says to it.
func (s *stream) flood(frame func(*stream)) {
	go io.Copy(io.Discard, s.x)
	s.deaf(frame)
}

// deaf is flood, but takes nothing: a client that answers is stuck before long.
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
	const unasked = "4 MiB that belong to no answer end the connection"
	flooded := Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Wire: 5 << 20}
	const fieldsBound = "64 KiB of header fields"
	protocol := Want{Outcome: blobschema.OutcomeProtocol, Or: blobschema.OutcomeCut, Wire: 4 << 20}
	timeout := Want{Outcome: blobschema.OutcomeTimeout, Detail: "t"}
	cases := []struct {
		Case
		serve func(*stream)
	}{
		{Case{Name: "h2-goaway", Does: "GOAWAY in place of an answer, and the end", Bound: "the connection's end", Want: protocol},
			func(s *stream) { s.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, nil) }},
		{Case{Name: "h2-goaway-flood", Does: "endless GOAWAY frames", Bound: "asked once more, no more",
			Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeTimeout, Wire: 64 << 20}},
			func(s *stream) { s.flood(func(s *stream) { s.WriteGoAway(0, http2.ErrCodeNo, make([]byte, 1000)) }) }},
		{Case{Name: "h2-goaway-later", Does: "endless GOAWAY frames that promise an answer yet", Bound: "header time-out", Slow: true, Want: timeout},
			func(s *stream) {
				for s.WriteGoAway(1<<31-1, http2.ErrCodeNo, nil) == nil {
					time.Sleep(10 * time.Millisecond)
				}
			}},
		{Case{Name: "h2-reset", Does: "RST_STREAM in place of an answer", Bound: "the first frame", Want: protocol},
			func(s *stream) { s.WriteRSTStream(s.id, http2.ErrCodeInternal); s.goOn() }},
		{Case{Name: "h2-refused", Does: "REFUSED_STREAM for every request", Bound: "asked once more, no more", Slow: true, Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeTimeout, Detail: ""}},
			func(s *stream) { s.WriteRSTStream(s.id, http2.ErrCodeRefusedStream); s.goOn() }},
		{Case{Name: "h2-reset-in-body", Does: "RST_STREAM within the body", Bound: "the frame", Want: Want{Outcome: blobschema.OutcomeCut, Status: 200, Detail: "within the body"}},
			func(s *stream) {
				s.headers(false, ":status", "200")
				s.WriteData(s.id, false, []byte("half"))
				s.WriteRSTStream(s.id, http2.ErrCodeInternal)
				s.goOn()
			}},
		{Case{Name: "h2-endless-continuation", Does: "a header that goes on in CONTINUATION frames for ever", Bound: fieldsBound, Want: protocol},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block(":status", "200")})
				s.flood(func(s *stream) { s.WriteContinuation(s.id, false, block("x-field", strings.Repeat("y", 1000))) })
			}},
		{Case{Name: "h2-empty-continuation", Does: "endless CONTINUATION frames with nothing in them", Bound: unasked, Want: flooded},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: block(":status", "200")})
				s.flood(func(s *stream) { s.WriteContinuation(s.id, false, nil) })
			}},
		{Case{Name: "h2-header-bomb", Does: "a field of 4,000 bytes, then 8,000 references to it in one byte each", Bound: fieldsBound + ", as decoded", Want: protocol},
			func(s *stream) {
				var b bytes.Buffer
				e := hpack.NewEncoder(&b)
				e.WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				e.WriteField(hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 4000)})
				b.WriteString(strings.Repeat("\xbe", 8000)) // index 62, the newest entry
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: true})
				s.goOn()
			}},
		{Case{Name: "h2-bad-compression", Does: "a header block that cannot be decoded", Bound: "the first frame", Want: protocol},
			func(s *stream) {
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id, BlockFragment: []byte("\xff\xff\xff\xff\xff\xff\xff"), EndHeaders: true})
				s.leave()
			}},
		{Case{Name: "h2-no-status", Does: "an answer without status", Bound: "the header", Want: protocol},
			func(s *stream) { s.headers(true, "content-type", "text/html"); s.goOn() }},
		{Case{Name: "h2-control-characters", Does: "CR, LF and NUL in header fields", Bound: "the header", Want: protocol},
			func(s *stream) {
				s.headers(true, ":status", "200", "x-a", "b\r\nInjected: yes", "x-nul", "a\x00b")
				s.goOn()
			}},
		{Case{Name: "h2-interim-flood", Does: "endless answers with status 103", Bound: "64 KiB of their header fields", Want: protocol},
			func(s *stream) { s.flood(func(s *stream) { s.headers(false, ":status", "103", "link", "</x>") }) }},
		{Case{Name: "h2-overflow", Does: "more body than the window lets through", Bound: "the window", Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol, Status: 200, Truncated: true, Wire: 16 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.flood(func(s *stream) { s.WriteData(s.id, false, make([]byte, 16<<10)) })
			}},
		{Case{Name: "h2-large-frame", Does: "a frame that claims 16 MiB", Bound: "frames are at most 16 KiB", Want: protocol},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.x.send("\xff\xff\xff\x00\x00\x00\x00\x00\x01")
				endless("", "x")(s.x)
			}},
		{Case{Name: "h2-empty-data", Does: "endless DATA frames with nothing in them", Bound: "8 MiB, and 64 times what is in them", Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Status: 200, Wire: 9 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.flood(func(s *stream) { s.WriteData(s.id, false, nil) })
			}},
		{Case{Name: "h2-ping-flood", Does: "endless PING frames in place of an answer", Bound: unasked, Want: flooded},
			func(s *stream) { s.flood(func(s *stream) { s.WritePing(false, [8]byte{}) }) }},
		{Case{Name: "h2-ping-deaf", Does: "endless PING frames in place of an answer, by a server that takes no answers to them", Bound: "header time-out", Slow: true,
			Want: Want{Outcome: blobschema.OutcomeTimeout, Or: blobschema.OutcomeCut, Wire: 5 << 20}},
			func(s *stream) { s.deaf(func(s *stream) { s.WritePing(false, [8]byte{}) }) }},
		{Case{Name: "h2-settings-flood", Does: "endless SETTINGS frames in place of an answer", Bound: unasked, Want: flooded},
			func(s *stream) {
				s.flood(func(s *stream) { s.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100}) })
			}},
		{Case{Name: "h2-flood-after-answer", Does: "endless PING frames after a good answer", Bound: unasked + ", 8 MiB if the answer is not taken yet", Alone: true, Want: Want{Outcome: blobschema.OutcomeOK, Status: 200, Wire: 9 << 20}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.WriteData(s.id, true, []byte("body"))
				s.flood(func(s *stream) { s.WritePing(true, [8]byte{}) })
			}},
		{Case{Name: "h2-no-window", Does: "SETTINGS that leave no window, and no answer", Bound: "header time-out", Slow: true, Want: timeout},
			func(s *stream) {
				s.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
				s.goOn()
			}},
		{Case{Name: "h2-push", Does: "a promise to push what nobody asked for", Bound: "the first frame", Want: protocol},
			func(s *stream) {
				s.WritePushPromise(http2.PushPromiseParam{StreamID: s.id, PromiseID: 2, BlockFragment: block(":method", "GET", ":path", "/page/1"), EndHeaders: true})
				s.leave()
			}},
		{Case{Name: "h2-surplus-stream", Does: "an answer on a stream that nobody opened, beside the right one", Bound: "the frame", Want: Want{Outcome: blobschema.OutcomeOK, Or: blobschema.OutcomeProtocol}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-type", "text/plain")
				s.WriteHeaders(http2.HeadersFrameParam{StreamID: s.id + 2, BlockFragment: block(":status", "200"), EndHeaders: true})
				s.WriteData(s.id+2, true, []byte("evil"))
				s.WriteData(s.id, true, []byte("body"))
				s.goOn()
			}},
		{Case{Name: "h2-wrong-length", Does: "a Content-Length that the body does not have", Bound: "the length", Want: Want{Outcome: blobschema.OutcomeCut, Or: blobschema.OutcomeProtocol, Status: 200}},
			func(s *stream) {
				s.headers(false, ":status", "200", "content-length", "100")
				s.WriteData(s.id, true, []byte("half"))
				s.goOn()
			}},
		{Case{Name: "h2-garbage", Does: "bytes that are no frames", Bound: "the first frame", Want: protocol},
			func(s *stream) { endless("", "not frames at all")(s.x) }},
	}
	out := make([]Case, len(cases))
	for i, c := range cases {
		out[i] = c.Case
		out[i].secure, out[i].serve2 = with(goodTLS, "h2"), c.serve
	}
	return out
}
