package weburl

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// Host is an authority: a lower-case DNS name or an IP address (IPv6 in
// brackets), then ":" and the port unless it is the scheme's default. It is the
// default politeness key. http and https URLs with default ports have the same Host,
// because one server answers both.
//
// Fewer names are allowed than in the standard, because they must conform to RFC 3986 and
// DNS, and are parts of keys with their own delimiters (SURT): one or more
// labels of 1 to 63 letters, digits, "-" and "_", at most 253 bytes in total.
type Host string

// The bounds of a DNS name (RFC 1035 section 2.3.4), in its usual text form.
const (
	maxName  = 253
	maxLabel = 63
	// maxRawName bounds a name before IDNA, in code points: each gives at least one byte of punycode, whose
	// computation takes quadratic time. One more allows a final dot.
	maxRawName = maxName + 1
)

// ParseHost returns the host that a person means by s, such as "Bücher.example",
// "example.com:8080", "[::1]" or "0x7f.1". Without a scheme there is no default
// port, so ParseHost keeps any port in s: pass a port only if the URLs of the host have it.
func ParseHost(s string) (Host, error) {
	name, port := splitPort(s)
	name, err := canonicalHost(name)
	if err != nil {
		return "", fmt.Errorf("parse host: %w", err)
	}
	port, err = canonicalPort(port)
	if err != nil {
		return "", fmt.Errorf("parse host: %w", err)
	}
	return Host(appendPort([]byte(name), "", port)), nil
}

// Name returns the host without its port, and without brackets if it is an IPv6
// address: the form for DNS lookups, connections and TLS.
func (h Host) Name() string {
	name, _ := splitPort(string(h))
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}

// Port returns the port in decimal, or "" if it is the scheme's default.
func (h Host) Port() string {
	_, port := splitPort(string(h))
	return port
}

// IsIP reports whether the host is an IP address rather than a name.
func (h Host) IsIP() bool {
	name, _ := splitPort(string(h))
	return strings.HasPrefix(name, "[") || classify(name) == numericName && endsInNumber(name)
}

// RegistrableDomain returns the public suffix of the name (ICANN and private
// parts of https://publicsuffix.org/list/, as linked into this binary) with one
// more label: the name that one owner registers. It returns an IP address, and a name that is
// itself a public suffix, unchanged, like Name.
func (h Host) RegistrableDomain() string {
	name := h.Name()
	domain, err := publicsuffix.EffectiveTLDPlusOne(name)
	if err != nil { // also for an address
		return name
	}
	return domain
}

// splitPort cuts an authority without credentials at the ":" of its port, which
// is not one of an IPv6 address. Without a port, or with an empty one, port is "".
func splitPort(authority string) (name, port string) {
	i := strings.LastIndexByte(authority, ':')
	if i < 0 || i < strings.LastIndexByte(authority, ']') {
		return authority, ""
	}
	return authority[:i], authority[i+1:]
}

// canonicalHost returns the canonical form of a host without its port. It implements the host parser of
// the standard (section 3.5) for special schemes, with the restrictions of Host.
func canonicalHost(raw string) (string, error) {
	if inner, ok := strings.CutPrefix(raw, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		if !ok {
			return "", fmt.Errorf("%w: unclosed bracket", ErrHost)
		}
		return canonicalIPv6(inner)
	}
	if classify(raw) == plainName {
		return strings.ToLower(raw), nil
	}
	name, err := url.PathUnescape(raw)
	if err != nil || !utf8.ValidString(name) || utf8.RuneCountInString(name) > maxRawName {
		return "", fmt.Errorf("%w: not a name", ErrHost)
	}
	if name, err = toASCII(name); err != nil {
		return "", err
	}
	name = strings.TrimSuffix(name, ".")
	switch classify(name) {
	case badName:
		return "", fmt.Errorf("%w: not a DNS name", ErrHost)
	case numericName:
		if endsInNumber(name) {
			return canonicalIPv4(name)
		}
	}
	return name, nil
}

// profile is the IDNA processing of the standard's "domain to ASCII".
// classify checks lengths and ASCII characters.
var profile = idna.New(
	idna.MapForLookup(), // with all checks of labels
	idna.Transitional(false),
	idna.StrictDomainName(false),
	idna.CheckHyphens(false),
	idna.BidiRule(),
	idna.VerifyDNSLength(false),
)

// toASCII implements "domain to ASCII" (WHATWG section 3.3) for UTF-8, not strict: it only lower-cases an ASCII
// name without a punycode label. It refuses a name whose result would not map to itself, because of I1.
func toASCII(name string) (string, error) {
	lower := strings.ToLower(name)
	if utf8.RuneCountInString(name) == len(name) && !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--") {
		return lower, nil
	}
	ascii, err := profile.ToASCII(name)
	if err == nil {
		name, err = profile.ToASCII(ascii)
	}
	if err != nil || name != ascii {
		return "", fmt.Errorf("%w: not an international name", ErrHost)
	}
	return ascii, nil
}

// A nameKind is the processing that a name needs.
type nameKind uint8

const (
	badName     nameKind = iota // not a DNS name as it stands
	plainName                   // needs lower-casing at most
	aceName                     // has a punycode label
	numericName                 // the last label begins with a digit: perhaps IPv4
)

// classify returns the kind of an ASCII name in upper or lower case.
func classify(name string) nameKind {
	if name == "" || len(name) > maxName {
		return badName
	}
	kind, start := plainName, 0
	for i := 0; ; i++ {
		if i < len(name) && name[i] != '.' {
			if classes[name[i]]&inName == 0 {
				return badName
			}
			continue
		}
		label := name[start:i]
		if label == "" || len(label) > maxLabel {
			return badName
		}
		if len(label) >= 4 && label[2] == '-' && label[3] == '-' && strings.EqualFold(label[:2], "xn") {
			kind = aceName
		}
		if i == len(name) {
			if '0' <= label[0] && label[0] <= '9' {
				return numericName
			}
			return kind
		}
		start = i + 1
	}
}

// endsInNumber implements the "ends in a number checker" of the standard: such a name is
// either an IPv4 address or invalid.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" {
		return true
	}
	hex, ok := strings.CutPrefix(last, "0x")
	return ok && strings.Trim(hex, "0123456789abcdef") == ""
}

// canonicalIPv4 parses up to four decimal, octal or hexadecimal numbers. The
// last number fills all remaining bytes (WHATWG section 3.5).
func canonicalIPv4(name string) (string, error) {
	if ip, err := netip.ParseAddr(name); err == nil && ip.Is4() {
		return name, nil // four decimals without leading zeros
	}
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return "", fmt.Errorf("%w: IPv4 address of more than four parts", ErrHost)
	}
	var addr uint64
	for i, part := range parts {
		base := 10
		if hex, ok := strings.CutPrefix(part, "0x"); ok {
			base, part = 16, hex
		} else if part[0] == '0' {
			base = 8
		}
		if part == "" {
			part = "0" // "0x" alone
		}
		n, err := strconv.ParseUint(part, base, 32)
		limit, shift := uint64(1)<<8, 24-8*i
		if i == len(parts)-1 {
			limit, shift = 1<<(8*(4-i)), 0
		}
		if err != nil || n >= limit {
			return "", fmt.Errorf("%w: IPv4 address out of range", ErrHost)
		}
		addr |= n << shift
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(addr))
	return netip.AddrFrom4(b).String(), nil
}

// canonicalIPv6 parses the address inside the brackets. Unlike netip, the standard writes an IPv4-mapped
// address in hexadecimal like any other.
func canonicalIPv6(inner string) (string, error) {
	ip, err := netip.ParseAddr(inner)
	if err != nil || !ip.Is6() || ip.Zone() != "" {
		return "", fmt.Errorf("%w: not an IPv6 address", ErrHost)
	}
	if ip.Is4In6() {
		b := ip.As16()
		return fmt.Sprintf("[::ffff:%x:%x]", binary.BigEndian.Uint16(b[12:]), binary.BigEndian.Uint16(b[14:])), nil
	}
	return "[" + ip.String() + "]", nil
}
