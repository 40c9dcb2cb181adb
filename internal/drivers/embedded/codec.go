package embedded

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"
)

var errDamaged = errors.New("damaged, or of another format")

// messageFormat is the first byte of a stored message.
const messageFormat = 1

// encodeMessage returns a message as it is stored and kept in memory:
//
//	format (1 byte), sent and due (varint Unix nanoseconds), number of
//	attributes (uvarint), per attribute key and value (each uvarint length,
//	bytes), sorted by key; then the body.
//
// It is one slice, so that memory, log and file share the bytes.
func encodeMessage(sent, due time.Time, attrs map[string]string, body []byte) []byte {
	n := 1 + 3*binary.MaxVarintLen64 + len(body)
	for k, v := range attrs {
		n += len(k) + len(v) + 2*binary.MaxVarintLen32
	}
	b := append(make([]byte, 0, n), messageFormat)
	b = binary.AppendVarint(b, sent.UnixNano())
	b = binary.AppendVarint(b, due.UnixNano())
	b = binary.AppendUvarint(b, uint64(len(attrs)))
	for _, k := range slices.Sorted(maps.Keys(attrs)) {
		b = appendString(b, k)
		b = appendString(b, attrs[k])
	}
	return append(b, body...)
}

type decodedMessage struct {
	sent, due time.Time
	attrs     map[string]string // nil if there are none
	body      []byte            // part of the input
}

func decodeMessage(b []byte) (decodedMessage, error) {
	r := byteReader{b}
	if r.byte() != messageFormat {
		return decodedMessage{}, errDamaged
	}
	m := decodedMessage{sent: time.Unix(0, r.varint()).UTC(), due: time.Unix(0, r.varint()).UTC()}
	if n := r.uvarint(); n > 0 {
		if n > uint64(len(r.rest))/2 { // an attribute takes two bytes at least
			return decodedMessage{}, errDamaged
		}
		m.attrs = make(map[string]string, n)
		for range n {
			k := r.string()
			m.attrs[k] = r.string()
		}
	}
	if r.rest == nil {
		return decodedMessage{}, errDamaged
	}
	m.body = r.rest
	return m, nil
}

// byteReader reads fields from rest. After a read past the end, rest is nil and all reads return
// zero.
type byteReader struct{ rest []byte }

func (r *byteReader) byte() byte {
	if len(r.rest) == 0 {
		r.rest = nil
		return 0
	}
	c := r.rest[0]
	r.rest = r.rest[1:]
	return c
}

func (r *byteReader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *byteReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *byteReader) skip(n int) {
	if n <= 0 {
		r.rest = nil
		return
	}
	r.rest = r.rest[n:]
}

func (r *byteReader) string() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.rest = nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}

func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// messageKey is the durable key of a message.
func messageKey(queue string, id uint64) string {
	b := make([]byte, 0, len(queue)+9)
	b = append(append(b, queue...), 0)
	return string(binary.BigEndian.AppendUint64(b, id))
}

func splitMessageKey(key string) (queue string, id uint64, err error) {
	at := len(key) - 9
	if at < 1 || key[at] != 0 {
		return "", 0, errDamaged
	}
	return key[:at], binary.BigEndian.Uint64([]byte(key[at+1:])), nil
}

func encodeUint64(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func decodeUint64(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint64(b), nil
}
