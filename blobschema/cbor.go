package blobschema

import "github.com/fxamacker/cbor/v2"

// The CBOR modes are immutable and safe for concurrent use. Encoding is the core
// deterministic one of RFC 8949 section 4.2.1, times as RFC 3339 text.
var cborEnc, cborDec = cborModes()

func cborModes() (cbor.UserBufferEncMode, cbor.DecMode) {
	opts := cbor.CoreDetEncOptions()
	opts.Time = cbor.TimeRFC3339Nano
	enc, err := opts.UserBufferEncMode()
	if err != nil {
		panic(err) // the options are constants
	}
	dec, err := cbor.DecOptions{
		DupMapKey:        cbor.DupMapKeyEnforcedAPF,
		IndefLength:      cbor.IndefLengthForbidden,
		TagsMd:           cbor.TagsForbidden,
		MaxNestedLevels:  8,
		MaxArrayElements: 1 << 20,
		MaxMapPairs:      1 << 16,
		// One invalid byte in a text must not make a whole commit unreadable.
		UTF8: cbor.UTF8DecodeInvalid,
	}.DecMode()
	if err != nil {
		panic(err) // the options are constants
	}
	return enc, dec
}
