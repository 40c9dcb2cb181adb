// Package wiretest holds what the tests of all decoders share: every damage that can be done
// to some bytes, and what a decoder may say of it.
package wiretest

import (
	"bytes"
	"encoding/hex"
	"errors"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// wiretest.IsRefusal says whether an error is one that decoders may return.
func IsRefusal(err error) bool {
	return errors.Is(err, wire.ErrDamaged) || errors.Is(err, wire.ErrVersion)
}

// wiretest.EachDamage calls f with every way of changing one byte of data, and every way of
// cutting it.
func EachDamage(data []byte, f func(what string, damaged []byte)) {
	for i := range data {
		for _, x := range []byte{0x01, 0x80} {
			b := bytes.Clone(data)
			b[i] ^= x
			f("byte "+hex.EncodeToString([]byte{byte(i >> 8), byte(i)})+" changed", b)
		}
		f("cut", bytes.Clone(data[:i]))
	}
	f("longer", append(bytes.Clone(data), 0))
}

// wiretest.ReadPack opens a pack and all its sections.
func ReadPack(b []byte) error {
	p, err := wire.Open(b)
	if err != nil {
		return err
	}
	for _, name := range p.Names() {
		if _, err := p.Section(name); err != nil {
			return err
		}
	}
	return nil
}
