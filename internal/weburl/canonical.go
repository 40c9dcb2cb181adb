package weburl

import "strings"

// Canonical returns the URL of a text that is known to be canonical, such as a URL that
// this crawl has stored. It only finds the delimiters, and reports false if text
// does not have the form of a URL. If [Parse] would not change text,
// Canonical returns the same URL as Parse. The result shares the memory of text.
func Canonical(text string) (URL, bool) {
	start := len("http://")
	if strings.HasPrefix(text, "https://") {
		start = len("https://")
	} else if !strings.HasPrefix(text, "http://") {
		return URL{}, false
	}
	slash := strings.IndexByte(text[start:], '/')
	if slash <= 0 || len(text) > MaxLen {
		return URL{}, false
	}
	end := start + slash
	query := len(text)
	if i := strings.IndexByte(text[end:], '?'); i >= 0 {
		query = end + i
	}
	return URL{text, uint16(start), uint16(end), uint16(query)}, true
}
