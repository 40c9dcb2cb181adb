package ranks

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// isRefusal reports whether decoders may return the error.
func isRefusal(err error) bool {
	return errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrVersion)
}

// eachDamage calls f with every way to change one byte of data, and every way to cut data off.
func eachDamage(data []byte, f func(what string, damaged []byte)) {
	for i := range data {
		for _, x := range []byte{0x01, 0x80} {
			b := bytes.Clone(data)
			b[i] ^= x
			f(fmt.Sprintf("byte %d changed", i), b)
		}
		f("cut", bytes.Clone(data[:i]))
	}
	f("longer", append(bytes.Clone(data), 0))
}
