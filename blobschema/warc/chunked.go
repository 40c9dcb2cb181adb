package warc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// Dechunk appends to dst the body that b holds in the chunked transfer coding (RFC 9112 section 7.1). b may end early; this is no
// error. It reads no trailer.
func Dechunk(dst, b []byte) ([]byte, error) {
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\r\n"))
		if i := bytes.IndexAny(line, "; \t"); i >= 0 { // an extension follows
			line = line[:i]
		}
		size, err := strconv.ParseUint(string(bytes.TrimSuffix(line, []byte("\r"))), 16, 64)
		if err != nil {
			return dst, fmt.Errorf("malformed chunk: %.40q", line)
		}
		if !whole || size == 0 {
			return dst, nil
		}
		size = min(size, uint64(len(rest)))
		dst, b = append(dst, rest[:size]...), rest[size:]
		if len(b) >= len("\r\n") && !bytes.HasPrefix(b, []byte("\r\n")) {
			return dst, errors.New("chunk is longer than its size")
		}
		b = b[min(len(b), len("\r\n")):]
	}
	return dst, nil
}
