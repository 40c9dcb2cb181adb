package partition

import "unsafe"

// stringBytes views s as bytes without copying. The hash only reads them.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
