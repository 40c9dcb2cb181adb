package blobschema

// AppendCompressed appends raw as one zstd frame. It and [Decompress] are for formats
// in packages below this one, which share its pools of coders. Equal bytes give equal
// frames. Safe for concurrent use.
func AppendCompressed(dst, raw []byte) []byte { return appendZstd(dst, raw) }

// Decompress decodes a frame of exactly n bytes into buf, which grows if need be. The
// caller bounds n; what no frame of this length can hold is refused before anything is
// allocated. Errors wrap [ErrDamaged].
func Decompress(buf, frame []byte, n int) ([]byte, error) { return inflate(buf, frame, n) }

// Checksum is the CRC-32C of b, as under every piece of what is stored.
func Checksum(b []byte) uint32 { return checksum(b) }
