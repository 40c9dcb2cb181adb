package fetch

import "github.com/orbweaver/orbweaver/internal/extract"

const sniffed = 512 // bytes that tell what a body is

// coding returns the content coding of the answer; see [extract.Coding].
func (r *Response) coding() string { return extract.Coding(r.fields("Content-Encoding")) }

// packedPrefixes are how formats begin whose bytes are compressed; '?' stands for any byte.
// Not PDF, of which much is text.
var packedPrefixes = [...]string{
	"\x1f\x8b", "\x28\xb5\x2f\xfd", "BZh", "\xfd7zXZ\x00", "PK\x03\x04", "7z\xbc\xaf\x27\x1c", "Rar!", // gzip, zstd, bzip2, xz, zip, 7z, rar
	"\xff\xd8\xff", "\x89PNG", "GIF8", "RIFF????WEBP", // JPEG, PNG, GIF, WebP
	"????ftyp", "\x1a\x45\xdf\xa3", "OggS", "ID3", "\xff\xfb", "fLaC", // MP4 and AVIF, Matroska and WebM, Ogg, MP3, FLAC
	"wOFF", "wOF2", // fonts
}

// packed reports whether a body is compressed already, so that deflating it again would cost
// as much as for text and gain nothing. Its first bytes tell, not its type or name, which
// servers get wrong: text that is stored as it came is a loss for ever. Only codings without
// such bytes are believed. Who forges either has his own page stored larger, no more.
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
