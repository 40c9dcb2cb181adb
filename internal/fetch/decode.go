package fetch

import "github.com/orbweaver/orbweaver/internal/extract"

const sniffed = 512 // bytes by which extract.Wanted recognizes a body

// coding returns the content coding of the answer; see [extract.Coding].
func (r *Response) coding() string { return extract.Coding(r.fields("Content-Encoding")) }

// packedPrefixes are the first bytes of compressed formats; '?' matches any byte.
// PDF is not one of them: much of it is text.
var packedPrefixes = [...]string{
	"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ\x00", "PK\x03\x04", "7z\xbc\xaf\x27\x1c", "Rar!", // gzip, zstd, bzip2, xz, zip, 7z, rar
	"\xff\xd8\xff", "\x89PNG", "GIF8", "RIFF????WEBP", // JPEG, PNG, GIF, WebP
	"????ftyp", "\x1a\x45\xdf\xa3", "OggS", "ID3", "\xff\xfb", "fLaC", // MP4 and AVIF, Matroska and WebM, Ogg, MP3, FLAC
	"wOFF", "wOF2", // fonts
}

// packed reports whether a body is already compressed. Deflating such a body would take as long as deflating
// text and gain nothing. packed checks the first bytes, because types and names are often wrong and text stored
// without compression wastes space. It trusts a declared coding only if the coding has no typical first bytes.
// A forged body only takes more space.
func packed(body []byte, coding string) bool {
	switch coding {
	case "", "gzip", "x-gzip", "zstd":
	default:
		return true
	}
	for _, p := range packedPrefixes {
		if hasPattern(body, p) {
			return true
		}
	}
	return false
}

func hasPattern(b []byte, pattern string) bool {
	if len(b) < len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '?' && pattern[i] != b[i] {
			return false
		}
	}
	return true
}
