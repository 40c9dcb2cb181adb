package polite

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// verdict is the decision of a rule about the URLs that it matches.
type verdict bool

const (
	allow    verdict = true
	disallow verdict = false
)

// rule is one Allow or Disallow line.
type rule struct {
	pattern string // in normal form, see normalPattern; its length is the rule's weight
	prefix  int32  // number of octets of pattern with which a URI must begin
	line    int32
	verdict verdict
	plain   bool // a match of the prefix suffices
}

func newRule(line int, v verdict, pattern string) rule {
	body := strings.TrimSuffix(pattern, "$")
	r := rule{pattern: pattern, prefix: int32(len(body)), line: int32(line), verdict: v}
	if i := strings.IndexByte(body, '*'); i >= 0 {
		r.prefix = int32(i)
		r.plain = strings.Trim(body[i:], "*") == "" // "/a*", and "/a*$" as well
	} else {
		r.plain = len(body) == len(pattern)
	}
	return r
}

func (r *rule) public() Rule {
	if r.verdict == allow {
		return Rule{Line: int(r.line), Text: "Allow: " + r.pattern, Allow: true}
	}
	return Rule{Line: int(r.line), Text: "Disallow: " + r.pattern}
}

// compareRules returns a number below zero if a decides about URIs that both a and b match: the longer
// pattern decides, then Allow, then the earlier line.
func compareRules(a, b *rule) int {
	if c := cmp.Compare(len(b.pattern), len(a.pattern)); c != 0 {
		return c
	}
	if a.verdict != b.verdict {
		if a.verdict == allow {
			return -1
		}
		return 1
	}
	return cmp.Compare(a.line, b.line)
}

// matchTail reports whether a rule that is not plain matches a URI that begins with the
// rule's prefix. It matches each literal between two stars at its first occurrence. If
// any assignment matches, this one does, so there is no backtracking.
func (r *rule) matchTail(uri string) bool {
	text := uri[r.prefix:]
	tail, anchored := strings.CutSuffix(r.pattern[r.prefix:], "$")
	if tail == "" {
		return text == ""
	}
	for {
		literal, more, found := strings.Cut(tail, "*")
		switch {
		case !found && anchored:
			return strings.HasSuffix(text, literal)
		case !found:
			return strings.Contains(text, literal)
		}
		i := strings.Index(text, literal)
		if i < 0 {
			return false
		}
		text, tail = text[i+len(literal):], more
	}
}

// The results of decide without a rule.
const (
	noRule    = -1
	tooCostly = -2
)

// maxScan bounds the octets of URI that one lookup compares with wildcards. That is some
// milliseconds of work: 40,000 such rules (a file holds 57,000 at most) for a URI of 200
// octets, 4,000 for one of 2,000. Only hostile files need more.
const maxScan = 8 << 20

// byWeight returns the indexes of rules in the order of compareRules.
func byWeight(rules []rule) []int32 {
	order := make([]int32, len(rules))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return compareRules(&rules[a], &rules[b]) })
	return order
}

// decide returns the index of the rule that decides about a URI in normal form: the first
// match by weight.
func (r *Robots) decide(uri string) int {
	scanned := 0
	for _, i := range r.order {
		rule := &r.rules[i]
		if !strings.HasPrefix(uri, rule.pattern[:rule.prefix]) {
			continue
		}
		if rule.plain {
			return int(i)
		}
		if scanned += len(uri); scanned > maxScan {
			return tooCostly
		}
		if rule.matchTail(uri) {
			return int(i)
		}
	}
	return noRule
}

// normalPattern returns the value of a rule in normal form, in which patterns are
// compared with URIs octet by octet: literals in the form of appendLiteral, "*" only as
// the wildcard, "$" only at the end as the anchor.
func normalPattern(value []byte) string {
	out := make([]byte, 0, len(value)+1)
	if value[0] != '/' && value[0] != '*' {
		out = append(out, '/')
	}
	value, anchored := bytes.CutSuffix(value, []byte("$"))
	for {
		literal, rest, star := bytes.Cut(value, []byte("*"))
		out = appendLiteral(out, literal)
		if !star {
			break
		}
		out = append(out, '*')
		value = rest
	}
	if anchored {
		out = append(out, '$')
	}
	return string(out)
}

// normalURI returns a path and query in the form for comparison with patterns.
func normalURI(uri string) string {
	uri, _, _ = strings.Cut(uri, "#")
	if uri == "" || uri[0] != '/' {
		uri = "/" + uri
	}
	for i := range len(uri) {
		if !isPlain(uri[i]) {
			return string(appendLiteral(make([]byte, 0, len(uri)+32), uri))
		}
	}
	return uri
}

// appendLiteral appends s in the form in which RFC 9309 section 2.2.2 compares octets.
// It decodes escapes of unreserved characters and writes all others in upper case. It escapes
// characters that a URI cannot have, and a "%" that begins no escape. It keeps reserved characters,
// so that "/" and "%2F" differ, as in RFC 3986 section 2.2. (The
// example of a "https://" within a query in the RFC's table would make them equal there;
// Google's parser does not do that either.) Only "*" and "$" equal their escapes:
// section 2.2.3 defines them as the way to write these characters in a pattern.
//
// It is idempotent.
func appendLiteral[T string | []byte](out []byte, s T) []byte {
	const hex = "0123456789ABCDEF"
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isPlain(c) {
			out = append(out, c)
			continue
		}
		if c == '%' && i+2 < len(s) {
			if hi, lo := unhex(s[i+1]), unhex(s[i+2]); hi < 16 && lo < 16 {
				c = hi<<4 | lo
				i += 2
				if isUnreserved(c) {
					out = append(out, c)
					continue
				}
			}
		}
		out = append(out, '%', hex[c>>4], hex[c&15])
	}
	return out
}

func unhex(c byte) byte {
	switch low := c | 0x20; {
	case isDigit(c):
		return c - '0'
	case 'a' <= low && low <= 'f':
		return low - 'a' + 10
	}
	return 16
}

func isUnreserved(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '-' || c == '.' || c == '_' || c == '~'
}

// isPlain reports whether normal form keeps a character: unreserved and
// reserved ones (RFC 3986 section 2), except "*" and "$".
func isPlain(c byte) bool {
	switch c {
	case ':', '/', '?', '#', '[', ']', '@', '!', '&', '\'', '(', ')', '+', ',', ';', '=':
		return true
	}
	return isUnreserved(c)
}
