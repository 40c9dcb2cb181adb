package fetch

import (
	"strings"
)

// Bounds of what a content coding may blow up to. HTML deflates to a tenth, tables of numbers to
// a fiftieth; DEFLATE can reach a thousandth, which only bombs do.
const (
	maxDecoded    = 64 << 20 // bytes, whatever else
	maxPerBody    = 4        // times Config.MaxBody
	maxRatio      = 128      // decoded bytes per byte received
	alwaysDecoded = 1 << 20  // bytes, whatever the ratio
	sniffed       = 512      // bytes that tell HTML from the rest
	keptBuffer    = 4 << 20  // larger buffers are not kept for the next answer
)

// decodedLimit returns how far a body of n bytes may be decoded.
func (s *Scratch) decodedLimit(n int) int {
	return int(min(maxDecoded, maxPerBody*s.maxBody, max(alwaysDecoded, maxRatio*int64(n))))
}

// decode returns the body without its content coding, at most limit bytes. The result is valid
// until the next call, and may be the body itself.
//
// A body that cannot be decoded to its end gives what came before: the links on it are real. One
// that says gzip but is not is taken as plain, as browsers do; one of another coding, which
// was not asked for, gives nothing.
func (s *Scratch) decode(resp *Response, limit int) []byte {
	if limit == 0 {
		return nil
	}
	body := resp.Body
	switch strings.ToLower(strings.Join(resp.fields("Content-Encoding"), ",")) {
	case "", "identity":
		return body[:min(len(body), limit)]
	case "gzip", "x-gzip":
	default:
		return nil
	}
	if len(body) < 2 || body[0] != 0x1f || body[1] != 0x8b {
		return body[:min(len(body), limit)]
	}
	s.source.Reset(body)
	if s.gzip.Reset(&s.source) != nil {
		return nil
	}
	if s.decoded == nil {
		s.decoded = make([]byte, 0, 256<<10)
	}
	out := s.decoded[:0]
	for len(out) < limit {
		if len(out) == cap(out) {
			out = append(make([]byte, 0, min(2*cap(out), limit)), out...)
		}
		n, err := s.gzip.Read(out[len(out):min(cap(out), limit)])
		out = out[:len(out)+n]
		if err != nil {
			break
		}
	}
	s.decoded = out
	return out
}

// shrink lets go of what a single large answer needed, and of all references to it.
func (s *Scratch) shrink() {
	s.source.Reset(nil)
	if cap(s.decoded) > keptBuffer {
		s.decoded = nil
	}
	if cap(s.record) > keptBuffer {
		s.record = nil
	}
}
