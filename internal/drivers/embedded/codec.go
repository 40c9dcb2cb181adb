package embedded

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

var errDamaged = errors.New("damaged, or of another format")

// messageFormat is the first byte of a stored message.
const messageFormat = 1

// encodeMessage returns the form in which a message is stored and kept in memory:
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
		b = wire.AppendPrefixed(b, k)
		b = wire.AppendPrefixed(b, attrs[k])
	}
	return append(b, body...)
}

type decodedMessage struct {
	sent, due time.Time
	attrs     map[string]string // nil if the message has none
	body      []byte            // part of the input
}

func decodeMessage(b []byte) (decodedMessage, error) {
	if len(b) == 0 || b[0] != messageFormat {
		return decodedMessage{}, errDamaged
	}
	c := wire.Cursor{Rest: b[1:]}
	m := decodedMessage{sent: readTime(&c), due: readTime(&c)}
	if n := c.Count(2); n > 0 { // an attribute takes two bytes at least
		m.attrs = make(map[string]string, n)
		for range n {
			k := string(c.Prefixed(math.MaxUint64))
			m.attrs[k] = string(c.Prefixed(math.MaxUint64))
		}
	}
	if c.Err != nil {
		return decodedMessage{}, fmt.Errorf("%w: %w", errDamaged, c.Err)
	}
	m.body = c.Rest
	return m, nil
}

// readTime reads Unix nanoseconds as binary.AppendVarint encodes them.
func readTime(c *wire.Cursor) time.Time {
	n := c.Uvarint(math.MaxUint64)
	return time.Unix(0, int64(n>>1)^-int64(n&1)).UTC()
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
