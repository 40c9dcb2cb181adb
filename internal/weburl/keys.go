package weburl

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// SURTPrefix returns the sort-friendly form of the URL up to the end of the first segment of its path:
// "http://(com,baidu,www,)/news" for /news, /news?x, /news/ and all paths below. If the segment is empty, as in
// the root, the prefix ends with the slash. The labels of the host are reversed and followed by commas, so that
// the hosts of a site have a common prefix. A port comes before the closing parenthesis,
// "(com,baidu,www,:8080)". An IP address is unchanged, without a comma: "(127.0.0.1)", "([::1]:8080)".
func (u URL) SURTPrefix() string {
	if u.IsZero() {
		return ""
	}
	b := append([]byte(u.s[:u.hostStart]), '(')
	name, port := splitPort(string(u.Host()))
	if u.Host().IsIP() {
		b = append(b, name...)
	} else {
		b = append(appendReversed(b, name), ',')
	}
	if port != "" {
		b = append(append(b, ':'), port...)
	}
	first, _, _ := strings.Cut(u.Path()[1:], "/")
	return string(append(append(b, ")/"...), first...))
}

// appendReversed appends the labels of name, last first, with commas between.
func appendReversed(dst []byte, name string) []byte {
	for {
		i := strings.LastIndexByte(name, '.')
		dst = append(dst, name[i+1:]...)
		if i < 0 {
			return dst
		}
		dst, name = append(dst, ','), name[:i]
	}
}

// Key returns the key of the URL in a CDXJ index, such as
// "com,example)/path?a=1&b=2". It is the key that version 0.3 of the Python package surt, used
// by pywb and cdxj-indexer, computes for [URL.String]. Many URLs share a key.
// The steps, in order:
//
//   - Host: reverse the labels, also those of a dotted quad. Drop a leading
//     "www", "www1", "www23", ... label, even before a bare suffix. Append ":" and the
//     port if it is not the default. Drop the brackets of IPv6.
//   - Path and query: percent-decode until nothing changes, then encode all bytes
//     that are not printable ASCII, and "#", "%" and spaces.
//   - Path: resolve dot and empty segments, but keep a ".." that would lead
//     above the root. Lower-case letters. Remove an ASP.NET session id
//     before an .aspx file, and one final slash unless the path is the root.
//   - Query: remove one session id of each known kind. Lower-case letters.
//     Sort the arguments by name, then value; an argument without
//     "=" comes first. Drop an empty query.
func (u URL) Key() string {
	if u.IsZero() {
		return ""
	}
	name, port := splitPort(string(u.Host()))
	name = strings.Trim(name, "[]")
	if rest, ok := strings.CutPrefix(name, "www"); ok {
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, "0123456789"), "."); ok {
			name = rest
		}
	}
	b := appendReversed(make([]byte, 0, len(u.s)), name)
	if port != "" {
		b = append(append(b, ':'), port...)
	}
	b = append(append(b, ')'), keyPath(u.Path())...)
	if query := keyQuery(strings.TrimPrefix(u.s[u.pathEnd:], "?")); query != "" {
		b = append(append(b, '?'), query...)
	}
	return string(b)
}

func keyPath(path string) string {
	path = strings.ToLower(reencode(path, collapse))
	for _, id := range pathSessions {
		path = id.ReplaceAllString(path, "$1$2")
	}
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	return path
}

// collapse resolves the dot and empty segments of a decoded path.
func collapse(path string) string {
	segs := strings.Split(path, "/")[1:] // canonical paths begin with "/"
	kept := segs[:0]
	for _, seg := range segs {
		switch {
		case seg == ".":
		case seg == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, seg)
		}
	}
	if len(kept) == 0 {
		return "/"
	}
	last := kept[len(kept)-1] // "" after a final slash
	kept = slices.DeleteFunc(kept[:len(kept)-1], func(seg string) bool { return seg == "" })
	return "/" + strings.Join(append(kept, last), "/")
}

func keyQuery(query string) string {
	query = reencode(query, nil)
	for _, id := range querySessions {
		query = id.ReplaceAllString(query, "$1$2")
	}
	args := strings.Split(strings.ToLower(query), "&")
	slices.SortFunc(args, func(a, b string) int {
		aName, aValue, aHas := strings.Cut(a, "=")
		bName, bValue, bHas := strings.Cut(b, "=")
		switch {
		case aName != bName:
			return cmp.Compare(aName, bName)
		case aHas != bHas:
			return cmp.Compare(len(a), len(b))
		}
		return cmp.Compare(aValue, bValue)
	})
	return strings.Join(args, "&")
}

// Session ids that Key removes; groups 1 and 2 match the parts that stay.
// Key removes the last id of each kind in a query, with the "&" after it.
var (
	pathSessions = compile(
		`(?i)^(.*/)(?:\((?:[a-z]\([0-9a-z]{24}\))+\)/)([^?]+\.aspx.*)$`,
		`(?i)^(.*/)(?:\([0-9a-z]{24}\)/)([^?]+\.aspx.*)$`,
	)
	querySessions = compile(
		`(?i)^(.*)jsessionid=[0-9a-z]{32}(?:&(.*))?$`,
		`(?i)^(.*)phpsessid=[0-9a-z]{32}(?:&(.*))?$`,
		`(?i)^(.*)sid=[0-9a-z]{32}(?:&(.*))?$`,
		`(?i)^(.*)aspsessionid[a-z]{8}=[a-z]{24}(?:&(.*))?$`,
		`(?i)^(.*)cfid=[^&]+&cftoken=[^&]+(?:&(.*))?$`,
	)
)

func compile(patterns ...string) []*regexp.Regexp {
	var all []*regexp.Regexp
	for _, p := range patterns {
		all = append(all, regexp.MustCompile(p))
	}
	return all
}

// reencode decodes s until nothing changes, applies edit unless it is nil,
// and encodes the result once.
func reencode(s string, edit func(string) string) string {
	b := []byte(s)
	for changed := true; changed; {
		b, changed = decodeOnce(b)
	}
	if edit != nil {
		b = []byte(edit(string(b)))
	}
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, len(s))
	for _, c := range b {
		if c <= ' ' || c >= 0x7f || c == '#' || c == '%' {
			out = append(out, '%', digits[c>>4], digits[c&15])
		} else {
			out = append(out, c)
		}
	}
	return string(out)
}

// decodeOnce percent-decodes b in place, and reports whether that changed it.
func decodeOnce(b []byte) ([]byte, bool) {
	out := b[:0]
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c == '%' && i+2 < len(b) {
			if hi, lo := unhex(b[i+1]), unhex(b[i+2]); hi|lo < 16 {
				c = hi<<4 | lo
				i += 2
			}
		}
		out = append(out, c)
	}
	return out, len(out) < len(b)
}
