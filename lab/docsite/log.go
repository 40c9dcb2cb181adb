package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// A request is a line of the server's access log.
type request struct {
	Status          int    `json:"status"`
	Bytes           int64  `json:"bytes"` // sent, header included
	Method          string `json:"method"`
	URI             string `json:"uri"` // as it came
	IfNoneMatch     string `json:"if_none_match"`
	IfModifiedSince string `json:"if_modified_since"`
}

// conditional reports whether an unchanged page may be answered with 304.
func (r *request) conditional() bool { return r.IfNoneMatch != "" || r.IfModifiedSince != "" }

// key is that of the URL asked for.
func (r *request) key() (string, error) {
	u, err := url.ParseRequestURI(r.URI)
	if err != nil {
		return "", err
	}
	return key(u), nil
}

// maxLine bounds a line of the log, in bytes. nginx takes no request line of more than
// 8 KiB, of which an escaped byte may become six.
const maxLine = 1 << 20

// parseLog reads lines of the access log.
func parseLog(text []byte) (out []request, err error) {
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, maxLine)
	for n := 1; lines.Scan(); n++ {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("line %d of the access log, %.200q: %w", n, lines.Bytes(), err)
		}
		out = append(out, r)
	}
	return out, lines.Err()
}

// A logReader reads an access log piece by piece, as marks divide it.
type logReader struct {
	name  string
	at    int64 // bytes read
	marks int   // made
}

// read returns what was logged between the last two marks, without them.
func (l *logReader) read(ctx context.Context) ([]request, error) {
	last := fmt.Sprintf("%s?%d", markURI, l.marks)
	for until := time.Now().Add(startTime); time.Now().Before(until); {
		text, err := l.rest()
		if err != nil {
			return nil, err
		}
		if whole := text[:bytes.LastIndexByte(text, '\n')+1]; bytes.Contains(whole, []byte(strconv.Quote(last))) {
			all, err := parseLog(whole)
			l.at += int64(len(whole))
			out := all[:0]
			for _, r := range all {
				if !strings.HasPrefix(r.URI, markURI+"?") {
					out = append(out, r)
				}
			}
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s does not show the request for %s", l.name, last)
}

// rest is what has not been read yet.
func (l *logReader) rest() ([]byte, error) {
	text, err := os.ReadFile(l.name)
	if err != nil {
		return nil, err
	}
	return text[min(l.at, int64(len(text))):], nil
}
