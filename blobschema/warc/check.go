package warc

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// checkRecord returns an error for a field that section 5 does not allow in a record of this type, and
// for a value that could end its line or change the meaning of the record.
func checkRecord(r *Record) error {
	info, revisit := r.Type == TypeInfo, r.Type == TypeRevisit
	switch {
	case !info && !revisit && r.Type != TypeResponse && r.Type != TypeRequest:
		return fmt.Errorf("%w: WARC-Type %q", ErrField, string(r.Type))
	case !info && r.TargetURI == "":
		return fmt.Errorf("%w: no WARC-Target-URI", ErrField)
	case revisit && r.Profile == "":
		return fmt.Errorf("%w: no WARC-Profile", ErrField)
	case r.Profile == ProfileIdenticalPayload && r.PayloadDigest == "":
		return fmt.Errorf("%w: no WARC-Payload-Digest", ErrField) // mandatory by 6.7.2
	}
	for _, f := range [...]struct {
		name, value string
		allowed     bool
		check       func(string) error
	}{
		{"WARC-Target-URI", r.TargetURI, !info, checkURI},
		{"WARC-IP-Address", r.IPAddress, !info, checkIP},
		{"WARC-Concurrent-To", r.ConcurrentTo, !info, checkURI},
		{"WARC-Refers-To-Target-URI", r.RefersToTargetURI, revisit, checkURI},
		{"WARC-Profile", r.Profile, revisit, checkURI},
		{"WARC-Truncated", r.Truncated, true, checkToken},
		{"WARC-Protocol", r.Protocol, !info, checkToken},
		{"WARC-Filename", r.Filename, info, checkText},
		{"WARC-Payload-Digest", r.PayloadDigest, !info, checkURI}, // algorithm:value looks like a URI
		{"Content-Type", r.ContentType, true, checkText},
	} {
		if f.value == "" {
			continue
		}
		if !f.allowed {
			return fmt.Errorf("%w: %s does not belong here", ErrField, f.name)
		}
		if err := f.check(f.value); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrField, f.name, err)
		}
	}
	if y := r.Date.UTC().Year(); r.Date.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: WARC-Date is absent or out of range", ErrField)
	}
	if y := r.RefersToDate.UTC().Year(); !r.RefersToDate.IsZero() && (!revisit || y < 1 || y > 9999) {
		return fmt.Errorf("%w: WARC-Refers-To-Date is out of range or does not belong here", ErrField)
	}
	return checkBlock(r)
}

// checkBlock ensures that a reader can separate Header and Body again: the
// first blank line of an HTTP block must be the end of Header.
func checkBlock(r *Record) error {
	if n := len(r.Header) + len(r.stored()); n > MaxBlock {
		return fmt.Errorf("%w: block of %d bytes", ErrField, n)
	}
	switch isHTTP := isHTTP(r.Type, contentType(r)); {
	case len(r.Header) > MaxHTTPHeader:
		return fmt.Errorf("%w: Header of %d bytes", ErrField, len(r.Header))
	case len(r.Header) > 0 && !isHTTP:
		return fmt.Errorf("%w: Header in a record that is not HTTP", ErrField)
	case len(r.Header) > 0 && HeadEnd(r.Header, 0) != len(r.Header):
		return fmt.Errorf("%w: Header does not end at its first blank line", ErrField)
	case len(r.Header) == 0 && len(r.Body) > 0 && isHTTP:
		return fmt.Errorf("%w: HTTP record without Header", ErrField)
	}
	return nil
}

func checkText(s string) error {
	if !utf8.ValidString(s) || hasControl(s) || strings.IndexByte(s, '\t') >= 0 {
		return fmt.Errorf("%q is not UTF-8 text without control characters", clip(s))
	}
	return nil
}

func checkToken(s string) error {
	if !tokenChars.all(s) {
		return fmt.Errorf("%q is not a token", clip(s))
	}
	return nil
}

func checkIP(s string) error {
	if a, err := netip.ParseAddr(s); err != nil || a.Zone() != "" {
		return fmt.Errorf("%q is not an address", clip(s))
	}
	return nil
}

// byteSet is a set of bytes.
type byteSet [256]bool

func bytesOf(s string) (set byteSet) {
	for i := range len(s) {
		set[s[i]] = true
	}
	return set
}

// all reports whether all bytes of s are in the set.
func (set *byteSet) all(s string) bool {
	for i := range len(s) {
		if !set[s[i]] {
			return false
		}
	}
	return true
}

const alphanumeric = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

var (
	tokenChars  = bytesOf(alphanumeric + "!#$%&'*+-.^_`|~")         // RFC 9110 section 5.6.2
	uriChars    = bytesOf(alphanumeric + "-._~:/?#[]@!$&'()*+,;=%") // RFC 3986 appendix A
	schemeChars = bytesOf(alphanumeric + "+-.")
)

// clip returns at most 80 bytes of s, for error texts.
func clip(s string) string { return s[:min(len(s), 80)] }

// checkURI accepts a scheme and characters that a URI may have:
// nothing that could end the field. It does not check the structure, because the URLs of
// records come from package weburl, which makes them canonical.
func checkURI(s string) error {
	scheme, rest, ok := strings.Cut(s, ":")
	if !ok || !schemeChars.all(scheme) || !uriChars.all(rest) ||
		scheme == "" || '0' <= scheme[0] && scheme[0] <= '9' {
		return fmt.Errorf("%q is not a URI", clip(s))
	}
	return nil
}
