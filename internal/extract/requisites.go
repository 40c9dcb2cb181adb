package extract

import (
	"bytes"
	"iter"

	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// requisiteAttributes are the further attributes that name requisites.
type requisiteAttributes struct {
	wanted                                             bool
	background, data, poster, srcset, style, xlinkHref []byte
}

func (a *requisiteAttributes) named(key []byte) *[]byte {
	for _, f := range [...]struct {
		name string
		to   *[]byte
	}{
		{"background", &a.background}, {"data", &a.data}, {"poster", &a.poster}, {"srcset", &a.srcset}, {"style", &a.style}, {"xlink:href", &a.xlinkHref},
	} {
		if equalFold(key, f.name) {
			return f.to
		}
	}
	return nil
}

// requisiteElements lists the elements that name requisites by their first letter.
var requisiteElements = elementNames{
	0:         {"audio"},
	'b' - 'a': {"body"},
	'e' - 'a': {"embed"},
	'i' - 'a': {"image", "img", "input"},
	'l' - 'a': {"link"},
	'o' - 'a': {"object"},
	's' - 'a': {"script", "source"},
	't' - 'a': {"table", "td", "th", "track"},
	'u' - 'a': {"use"},
	'v' - 'a': {"video"},
}

// requisites adds what the page needs for the element of a start tag.
func (d *document) requisites(tag []byte) {
	name := requisiteElements.find(tag[1:])
	if name == "" && bytes.IndexByte(tag, '(') < 0 { // no url() in a style
		return
	}
	a := d.attributes()
	d.styles(a.style)
	switch name {
	case "":
	case "link":
		if displays(a.rel) {
			d.need(a.href)
		}
	case "image", "use": // of SVG
		d.need(a.href)
		d.need(a.xlinkHref)
	case "input":
		if equalFold(trim(a.typ), "image") {
			d.need(a.src)
		}
	default:
		for _, ref := range [...][]byte{a.background, a.data, a.poster, a.src} {
			d.need(ref)
		}
		for image := range images(a.srcset) {
			d.need(image)
		}
	}
}

// displays reports whether the target of a link element is needed to display the page, by its rel.
func displays(rel []byte) bool {
	for _, token := range [...]string{
		"stylesheet", "icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "manifest", "preload", "modulepreload",
	} {
		if hasToken(rel, token) {
			return true
		}
	}
	return false
}

// need adds a requisite as written.
func (d *document) need(ref []byte) {
	ref = withoutFragment(trim(ref))
	if len(ref) > 0 && !otherScheme(ref) { // data: is no request
		d.add(actor.LinkRequisite, d.query(ref), nil)
	}
}

// styles adds the requisites of a style sheet, or of the value of a style attribute.
func (d *document) styles(css []byte) {
	for ref := range cssURLs(css) {
		d.need(ref)
	}
}

// readCSS extracts the requisites of a style sheet: imports, images and fonts.
func readCSS(body []byte, self weburl.URL, opt Options) Result {
	if !opt.Requisites {
		return Result{}
	}
	d := newDocument(self, opt)
	defer d.release()
	d.styles(body)
	return d.result()
}

// cssURLs yields the URLs of a style sheet, as CSS Syntax Level 3 reads them: the values of url() and the strings of
// @import, without those of @namespace, which are only names.
func cssURLs(css []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for i := 0; i < len(css); {
			rest := css[i:]
			switch c := rest[0]; {
			case c == '/' && len(rest) > 1 && rest[1] == '*':
				n := bytes.Index(rest[2:], []byte("*/"))
				if n < 0 {
					return
				}
				i += n + 4
			case c == '"' || c == '\'':
				_, n := cssString(rest)
				i += n
			case c == '\\':
				i += 2
			case c == '@' || cssName(c):
				n := 1
				for n < len(rest) && cssName(rest[n]) {
					n++
				}
				word := rest[:n]
				i += n
				switch value := trimSpace(rest[n:]); {
				case equalFold(word, "@namespace"):
					n := bytes.IndexByte(css[i:], ';')
					if n < 0 {
						return
					}
					i += n
				case equalFold(word, "@import") && len(value) > 0 && (value[0] == '"' || value[0] == '\''):
					url, n := cssString(value)
					i = len(css) - len(value) + n
					if !yield(url) {
						return
					}
				case equalFold(word, "url") && i < len(css) && css[i] == '(':
					url, n := cssURL(css[i+1:])
					i += 1 + n
					if !yield(url) {
						return
					}
				}
			default:
				i++
			}
		}
	}
}

// cssName reports whether c may be part of a name.
func cssName(c byte) bool {
	return letter(c) || '0' <= c && c <= '9' || c == '-' || c == '_' || c >= 0x80
}

// cssString returns the value of the string that s begins with, and its length. A string ends at the end of its line at
// the latest.
func cssString(s []byte) (value []byte, n int) {
	for n = 1; n < len(s); n++ {
		switch s[n] {
		case s[0]:
			return cssValue(s[1:n]), n + 1
		case '\n':
			return nil, n
		case '\\':
			n++
		}
	}
	return nil, len(s)
}

// cssURL returns the value of a url() after its parenthesis, and the length of its source.
func cssURL(s []byte) (value []byte, n int) {
	rest := trimSpace(s)
	skipped := len(s) - len(rest)
	if len(rest) > 0 && (rest[0] == '"' || rest[0] == '\'') {
		value, n = cssString(rest)
		return value, skipped + n
	}
	for n < len(rest) && rest[n] != ')' {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	n = min(n, len(rest))
	return cssValue(trim(rest[:n])), skipped + n
}

// cssValue resolves the escapes of a value.
func cssValue(s []byte) []byte {
	if bytes.IndexByte(s, '\\') < 0 || len(s) > 2*maxHref {
		return s
	}
	var out []byte
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		digits := 0
		for r := rune(0); ; digits++ {
			if at := i + 1 + digits; at < len(s) && digits < 6 && hexDigit(s[at]) >= 0 {
				r = r<<4 | rune(hexDigit(s[at]))
				continue
			}
			if digits > 0 {
				out = append(out, string(r)...)
			}
			break
		}
		switch i += digits; {
		case digits == 0 && i+1 < len(s):
			i++
			if s[i] != '\n' { // an escaped end of line is nothing
				out = append(out, s[i])
			}
		case i+1 < len(s) && space(s[i+1]):
			i++ // a space ends the digits
		}
	}
	return out
}

// hexDigit returns the value of a hexadecimal digit; -1 for another character.
func hexDigit(c byte) int {
	switch lower := c | 0x20; {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= lower && lower <= 'f':
		return int(lower-'a') + 10
	}
	return -1
}

// images yields the URLs of a srcset (HTML Living Standard, 4.8.4.3.10 parsing a
// srcset attribute). It skips the descriptors after each URL, which end
// at a comma outside parentheses.
func images(srcset []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for s := srcset; ; {
			for len(s) > 0 && (space(s[0]) || s[0] == ',') {
				s = s[1:]
			}
			if len(s) == 0 {
				return
			}
			n := 0
			for n < len(s) && !space(s[n]) {
				n++
			}
			url := bytes.TrimRight(s[:n], ",")
			bare := len(url) < n // a comma directly after it: there are no descriptors
			if s = s[n:]; !bare {
				s = afterDescriptors(s)
			}
			if !yield(url) {
				return
			}
		}
	}
}

// afterDescriptors returns the rest after the descriptors of an image.
func afterDescriptors(s []byte) []byte {
	parens := false
	for i, c := range s {
		switch {
		case c == '(':
			parens = true
		case c == ')':
			parens = false
		case c == ',' && !parens:
			return s[i:]
		}
	}
	return nil
}
