package weburl

import "strings"

// Canonical returns the URL whose text is known to be canonical, such as one that
// this crawl has stored: it only finds the delimiters, and reports false where text
// has not even the form of a URL. For every text that [Parse] leaves as it is, it
// returns what Parse does. The result shares text's memory.
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
