package extract

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// equalFold reports whether b equals lower, which must be in lower case, without regard to the
// case of ASCII letters.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// space reports whether c is white space to HTML.
func space(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' && c != '\v' }

// trim cuts control characters and spaces off both ends, as URL parsers do.
func trim(b []byte) []byte {
	for len(b) > 0 && b[0] <= ' ' {
		b = b[1:]
	}
	for len(b) > 0 && b[len(b)-1] <= ' ' {
		b = b[:len(b)-1]
	}
	return b
}

// trimSpace cuts white space off the beginning.
func trimSpace(b []byte) []byte {
	for len(b) > 0 && space(b[0]) {
		b = b[1:]
	}
	return b
}

// hasToken reports whether a list separated by white space, such as rel, contains a
// token, which must be in lower case.
func hasToken(list []byte, token string) bool {
	for t := range bytes.FieldsSeq(list) {
		if equalFold(t, token) {
			return true
		}
	}
	return false
}

// Fold returns s with folded white space and as valid UTF-8, cut to a limit in bytes.
func Fold(s string, limit int) string { return folded([]byte(s), limit) }

func folded(b []byte, limit int) string {
	out, _ := fold(nil, 0, b, limit)
	return string(bytes.TrimSuffix(out, []byte(" ")))
}

// fold appends src to dst. It replaces each run of white space and control characters by
// one space, and invalid bytes by U+FFFD. dst[start:] must already have this form;
// fold keeps it within limit bytes. full reports that a part of src did not fit.
// The result may end in a space.
func fold(dst []byte, start int, src []byte, limit int) (out []byte, full bool) {
	limit += start
	for i := 0; i < len(src); {
		r, size := rune(src[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(src[i:])
		}
		i += size
		if r <= ' ' || r == 0x7f || r >= utf8.RuneSelf && (unicode.IsSpace(r) || unicode.IsControl(r)) {
			if len(dst) == start || dst[len(dst)-1] == ' ' {
				continue
			}
			r = ' '
		}
		if len(dst)+utf8.RuneLen(r) > limit {
			return dst, true
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, len(dst) == limit
}
