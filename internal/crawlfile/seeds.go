package crawlfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	utf "golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxListLine bounds the bytes read of a line of a list. No URL is longer.
const maxListLine = 64 << 10

// ReadList reads a list of URLs, one per line, with comments after #. It calls add with each URL and
// its line until add returns false. The list is in UTF-8, or in the encoding of its byte order mark.
func ReadList(r io.Reader, add func(line int, url string) bool) error {
	lines := bufio.NewReaderSize(transform.NewReader(r, utf.BOMOverride(transform.Nop)), maxListLine)
	for n := 1; ; n++ {
		b, long, err := lines.ReadLine()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		line := strings.TrimSpace(string(b))
		for long && err == nil { // an error comes again with the next line
			_, long, err = lines.ReadLine()
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		raw, _, _ := strings.Cut(line, " #") // no URL contains a space
		if !add(n, raw) {
			return nil
		}
	}
}

// Suggestion guesses the URL that a text without a scheme means. It returns "" if it finds no such URL.
func Suggestion(raw string) string {
	if strings.Contains(raw, "://") {
		return ""
	}
	u, err := weburl.Parse("https://" + raw)
	if err != nil || !strings.Contains(u.Host().Name(), ".") {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", u)
}
