package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Limits of listed bad lines: those that end reading with an error, and those that are skipped.
const (
	maxURLErrors   = 10
	maxURLsSkipped = 100
)

// urlList collects the URLs that a command is given, each once, and the errors of the others.
type urlList struct {
	flag  string    // names the file
	skip  io.Writer // lists the bad lines of the file, which are skipped; nil if they are errors
	urls  []weburl.URL
	known map[weburl.URL]bool
	errs  []error
	bad   int64 // lines skipped
}

// readURLs returns the URLs given as arguments and those of the file that a flag names:
// "" for none, "-" for in. The error lists the bad ones, up to a bound. If skip is not nil, bad lines
// of the file are listed there instead.
func readURLs(args []string, flag, file string, in io.Reader, skip io.Writer) ([]weburl.URL, error) {
	l := urlList{flag: flag, skip: skip, known: map[weburl.URL]bool{}}
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
		return nil, usagef("the list of --%s %s has no URL; write one per line", flag, listName(file))
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
	if more := l.bad - maxURLsSkipped; more > 0 {
		fmt.Fprintf(l.skip, "… and %s more\n", count(more))
	}
	if l.bad > 0 {
		fmt.Fprintf(l.skip, "skipped %s of --%s %s\n", plural(l.bad, "bad line"), l.flag, listName(file))
	}
	return nil
}

// add takes a URL. where is "" for an argument.
func (l *urlList) add(where, raw string) {
	u, err := weburl.Parse(raw)
	if err != nil {
		err = fmt.Errorf("%scannot use URL %.200q: %w%s", where, raw, err, crawlfile.Suggestion(raw))
		if where == "" || l.skip == nil {
			l.errs = append(l.errs, err)
		} else if l.bad++; l.bad <= maxURLsSkipped {
			fmt.Fprintln(l.skip, err)
		}
		return
	}
	if !l.known[u] {
		l.known[u] = true
		l.urls = append(l.urls, u)
	}
}
