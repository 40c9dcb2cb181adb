package weburl

// A class is a set of parts of a URL in which a byte is not percent-encoded.
type class uint8

const (
	inPath     class = 1 << iota // pchar of RFC 3986
	inQuery                      // pchar, "/" and "?", without "'" (WHATWG special-query set)
	unreserved                   // never percent-encoded
	inName                       // of a host: letters, digits, "-" and "_"
)

// classes holds the classes of each byte. A slash is not inPath, because segments are escaped one at a time.
var classes = func() (t [256]class) {
	set := func(s string, c class) {
		for i := range len(s) {
			t[s[i]] |= c
		}
	}
	const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
	set(alphanumeric+"-._~", unreserved|inPath|inQuery)
	set("!$&()*+,;=:@", inPath|inQuery)
	set("'", inPath)
	set("/?", inQuery)
	set(alphanumeric+"-_", inName)
	return t
}()

// appendEscaped appends s with every byte outside the class percent-encoded,
// and with the percent-encodings in s normalised. It stops before a "/"
// that is not in the class, and returns the rest of s. Escaping the result again changes
// nothing: a decoded byte is never "%", and a "%" that begins no encoding becomes
// "%25".
func appendEscaped(dst []byte, s string, where class) (_ []byte, rest string) {
	const digits = "0123456789ABCDEF"
	for {
		n := 0
		for n < len(s) && classes[s[n]]&where != 0 {
			n++
		}
		dst = append(dst, s[:n]...)
		if n == len(s) || s[n] == '/' {
			return dst, s[n:]
		}
		c := s[n]
		s = s[n+1:]
		if c == '%' && len(s) >= 2 {
			hi, lo := unhex(s[0]), unhex(s[1])
			if hi|lo < 16 {
				c, s = hi<<4|lo, s[2:]
				if classes[c]&unreserved != 0 {
					dst = append(dst, c)
					continue
				}
			}
		}
		dst = append(dst, '%', digits[c>>4], digits[c&15])
	}
}

// unhex returns the value of a hexadecimal digit, or 255.
func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 255
}

// appendPath appends the escaped segments of path and resolves dot segments.
// "%2e" is a dot, because it is unescaped first. dst[root:] is the
// base directory, which begins and ends with "/"; no ".." leads above root.
func appendPath(dst []byte, root int, path string) []byte {
	for {
		at := len(dst)
		dst, path = appendEscaped(dst, path, inPath)
		more := path != ""
		switch string(dst[at:]) {
		case ".":
			dst = dst[:at]
		case "..":
			for at--; at > root && dst[at-1] != '/'; at-- {
			}
			dst = dst[:max(at, root+1)]
		default:
			if more {
				dst = append(dst, '/')
			}
		}
		if !more {
			return dst
		}
		path = path[1:]
	}
}
