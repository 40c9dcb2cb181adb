package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// maxURLErrors is how many are told before giving up.
const maxURLErrors = 10

// urlList collects the URLs that a command is given, each once, and what is wrong with
// the others.
type urlList struct {
	flag  string // that names the file
	urls  []weburl.URL
	known map[weburl.URL]bool
	errs  []error
}

// readURLs returns the URLs given as arguments and those of the file that a flag names:
// "" for none, "-" for in. All that are wrong are told, up to a bound.
func readURLs(args []string, flag, file string, in io.Reader) ([]weburl.URL, error) {
	l := urlList{flag: flag, known: map[weburl.URL]bool{}}
	for _, raw := range args {
		l.add("", raw)
	}
	if file != "" {
		if err := l.readFile(file, in); err != nil {
			return nil, err
		}
	}
	if len(l.errs) > 0 {
		return nil, fail(exitUsage, errors.Join(l.errs...))
	}
	if file != "" && len(l.urls) == 0 {
		return nil, usagef("the list of --%s %s holds no URL; it should have one a line", flag, listName(file))
	}
	return l.urls, nil
}

func listName(file string) string {
	if file == "-" {
		return "on standard input"
	}
	return file
}

func (l *urlList) readFile(file string, in io.Reader) error {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return usagef("read --%s: %w", l.flag, err)
		}
		defer f.Close()
		in = f
	}
	err := crawlfile.ReadList(in, func(line int, raw string) bool {
		l.add(fmt.Sprintf("%s:%d: ", file, line), raw)
		return len(l.errs) < maxURLErrors
	})
	if err != nil {
		return usagef("read --%s %s: %w", l.flag, file, err)
	}
	return nil
}

func (l *urlList) add(where, raw string) {
	u, err := weburl.Parse(raw)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("%scannot use URL %.200q: %w%s", where, raw, err, crawlfile.Suggestion(raw)))
		return
	}
	if !l.known[u] {
		l.known[u] = true
		l.urls = append(l.urls, u)
	}
}
