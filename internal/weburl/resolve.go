package weburl

import (
	"bytes"
	"strconv"
	"strings"
)

// resolve makes every URL except those of Canonical; base may be zero. It implements the standard's "basic
// URL parser" (section 4.4) for the two schemes, for which the state machine reduces
// to a few cuts. It returns common errors as bare sentinels, without allocating: pages have many
// mailto: and javascript: links.
func resolve(base URL, raw string) (URL, error) {
	ref := clean(raw)
	scheme, rest, err := cutScheme(ref)
	switch {
	case err != nil:
		return URL{}, err
	case len(ref) > maxRef:
		return URL{}, ErrTooLong
	case scheme == "" && base.IsZero():
		return URL{}, ErrSyntax
	}
	path, query, hasQuery := rest, "", false
	if i := strings.IndexByte(rest, '?'); i >= 0 {
		path, query, hasQuery = rest[:i], rest[i+1:], true
	}
	if strings.IndexByte(path, '\\') >= 0 {
		path = strings.ReplaceAll(path, `\`, "/")
	}

	var stack [512]byte // most URLs fit; the rest moves to the heap
	b := stack[:0]
	// After a scheme other than the base's, an authority follows, preceded by any number of
	// slashes. The base's own scheme is ignored.
	if strings.HasPrefix(path, "//") || scheme != "" && scheme != base.Scheme() {
		if scheme == "" {
			scheme = base.Scheme()
		}
		authority := strings.TrimLeft(path, "/")
		path = "/"
		if i := strings.IndexByte(authority, '/'); i >= 0 {
			authority, path = authority[:i], authority[i:]
		}
		b = append(append(b, scheme...), "://"...)
		if b, err = appendAuthority(b, base, scheme, authority); err != nil {
			return URL{}, err
		}
	} else {
		scheme = base.Scheme()
		b = append(b, base.s[:base.hostEnd]...)
	}

	root := len(b)
	switch {
	case path == "" && !hasQuery:
		b = append(b, base.RequestURI()...)
	case path == "":
		b = append(b, base.Path()...)
	case path[0] == '/':
		b = appendPath(append(b, '/'), root, path[1:])
	default:
		dir := base.Path()
		b = append(b, dir[:strings.LastIndexByte(dir, '/')+1]...)
		b = appendPath(b, root, path)
	}
	if query != "" {
		b, _ = appendEscaped(append(b, '?'), query, inQuery)
	}
	if len(b) > MaxLen {
		return URL{}, ErrTooLong
	}
	pathEnd := len(b)
	if i := bytes.IndexByte(b[root:], '?'); i >= 0 {
		pathEnd = root + i
	}
	return URL{string(b), uint16(len(scheme) + len("://")), uint16(root), uint16(pathEnd)}, nil
}

// clean returns raw without surrounding C0 controls and spaces, without tabs and
// newlines, and without its fragment. The first "#" begins the fragment in every state
// of the standard's parser. clean leaves tabs in a reference that is too long anyway.
func clean(raw string) string {
	for raw != "" && raw[0] <= ' ' {
		raw = raw[1:]
	}
	for raw != "" && raw[len(raw)-1] <= ' ' {
		raw = raw[:len(raw)-1]
	}
	if i := strings.IndexByte(raw, '#'); i >= 0 {
		raw = raw[:i]
	}
	if len(raw) <= maxRef {
		for _, c := range [...]byte{'\n', '\t', '\r'} {
			if strings.IndexByte(raw, c) >= 0 {
				raw = strings.ReplaceAll(raw, string(rune(c)), "")
			}
		}
	}
	return raw
}

// cutScheme splits a reference after its scheme. The scheme is "http", "https", or
// "" if the reference has no scheme. Any other scheme is an error.
func cutScheme(ref string) (scheme, rest string, err error) {
	for i := range len(ref) {
		switch c := ref[i]; {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		case i > 0 && c == ':':
			switch {
			case strings.EqualFold(ref[:i], "http"):
				return "http", ref[i+1:], nil
			case strings.EqualFold(ref[:i], "https"):
				return "https", ref[i+1:], nil
			}
			return "", ref, ErrScheme
		default:
			return "", ref, nil
		}
	}
	return "", ref, nil
}

// appendAuthority appends the canonical form of an authority. It drops
// credentials, which end at the last "@".
func appendAuthority(dst []byte, base URL, scheme, authority string) ([]byte, error) {
	if classify(authority) == plainName {
		return appendLower(dst, authority), nil
	}
	if authority != "" && authority == string(base.Host()) && scheme == base.Scheme() {
		return append(dst, authority...), nil
	}
	host, port := splitPort(authority[strings.LastIndexByte(authority, '@')+1:])
	host, err := canonicalHost(host)
	if err != nil {
		return dst, err
	}
	if port, err = canonicalPort(port); err != nil {
		return dst, err
	}
	return appendPort(append(dst, host...), scheme, port), nil
}

// appendLower appends ASCII s in lower case.
func appendLower(dst []byte, s string) []byte {
	at := len(dst)
	dst = append(dst, s...)
	for i, c := range dst[at:] {
		if 'A' <= c && c <= 'Z' {
			dst[at+i] = c | 0x20
		}
	}
	return dst
}

// appendPort appends ":" and port, if port is not "" or the scheme's default.
func appendPort(dst []byte, scheme, port string) []byte {
	if port == "" || scheme == "http" && port == "80" || scheme == "https" && port == "443" {
		return dst
	}
	return append(append(dst, ':'), port...)
}

// canonicalPort returns a port in decimal without leading zeros, or "" for "".
func canonicalPort(port string) (string, error) {
	if port == "" {
		return "", nil
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", ErrHost
	}
	if port = strings.TrimLeft(port, "0"); port == "" {
		return "0", nil
	}
	return port, nil
}
