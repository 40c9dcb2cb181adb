package crawlfile

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// The values of keys that flags have too. Their errors say what a value must be.

// maxConnections is how many connections a host can have.
const maxConnections = 64

// ParseScope parses which links are followed.
func ParseScope(s string) (blobschema.Scope, error) {
	switch v := blobschema.Scope(s); v {
	case blobschema.ScopeHost, blobschema.ScopeDomain, blobschema.ScopeAny:
		return v, nil
	}
	return "", errors.New("it must be host, domain or any")
}

// ParsePriority parses the priority of a topic, or of a seed.
func ParsePriority(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || crawl.CheckTopic(&blobschema.Topic{Priority: n}) != nil {
		return 0, fmt.Errorf("it must be a whole number from %d to %d", -crawl.MaxPriority, crawl.MaxPriority)
	}
	return n, nil
}

// ParseSlice parses how long a topic's turn is.
func ParseSlice(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || crawl.CheckTopic(&blobschema.Topic{Slice: d}) != nil {
		return 0, fmt.Errorf("it must be a time longer than 0s and at most %s, such as 20s", formatSpan(crawl.MaxSlice))
	}
	return d, nil
}

// ParseMinimum parses how many pages a topic is to have in which time: N/h, N/d, or N and
// any time, such as 100/10m.
func ParseMinimum(s string) (pages int64, period time.Duration, err error) {
	text, per, _ := strings.Cut(s, "/")
	pages, err = strconv.ParseInt(text, 10, 64)
	if err == nil {
		period, err = parsePeriod(per)
	}
	if err != nil || pages <= 0 || crawl.CheckTopic(&blobschema.Topic{Minimum: pages, Period: period}) != nil {
		return 0, 0, errors.New("it must be pages in a time, 1 or more, such as 1000/h, 20000/d or 100/10m")
	}
	return pages, period, nil
}

// FormatMinimum writes what [ParseMinimum] reads.
func FormatMinimum(pages int64, period time.Duration) string {
	switch period {
	case time.Hour:
		return fmt.Sprintf("%d/h", pages)
	case 24 * time.Hour:
		return fmt.Sprintf("%d/d", pages)
	}
	return fmt.Sprintf("%d/%s", pages, formatSpan(period))
}

func parsePeriod(s string) (time.Duration, error) {
	switch s {
	case "h":
		return time.Hour, nil
	case "d":
		return 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && d <= 0 {
		err = errors.New("no time")
	}
	return d, err
}

// formatSpan writes a time without units that are 0.
func formatSpan(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// ParseRate parses how many URLs are asked for again, in an hour: N/h or N/d; "off" is 0.
func ParseRate(s string) (perHour float64, err error) {
	if s == "off" {
		return 0, nil
	}
	text, per, _ := strings.Cut(s, "/")
	n, err := strconv.ParseFloat(text, 64)
	hours := map[string]float64{"h": 1, "d": 24}[per]
	if err != nil || !(n > 0 && n <= 1e12) || hours == 0 {
		return 0, errors.New("it must be URLs in an hour or in a day, such as 500/h or 10000/d, or off")
	}
	return n / hours, nil
}

// FormatRate writes what [ParseRate] reads.
func FormatRate(perHour float64) string {
	if perHour == 0 {
		return "off"
	}
	if perHour == math.Trunc(perHour) {
		return strconv.FormatFloat(perHour, 'f', -1, 64) + "/h"
	}
	return strconv.FormatFloat(perHour*24, 'g', 12, 64) + "/d"
}

// maxQueues is how many queues a host can have.
const maxQueues = 64

// ParseQueues parses how the URLs of a host are dealt to queues: "auto", "host", or a way and a
// number, such as "bkdr 8" or "bkdr:8".
func ParseQueues(s string) (by blobschema.QueueBy, n int, err error) {
	name, number, more := strings.Cut(strings.Replace(s, ":", " ", 1), " ")
	by = blobschema.QueueBy(name)
	switch by {
	case "auto":
		if !more {
			return "", 0, nil
		}
	case blobschema.QueueByHost:
		if !more {
			return by, 0, nil
		}
	case blobschema.QueueBySURT, blobschema.QueueByBKDR, blobschema.QueueByELF, blobschema.QueueBySDBM:
		if n, err = strconv.Atoi(strings.TrimSpace(number)); err == nil && n >= 1 && n <= maxQueues {
			return by, n, nil
		}
	}
	return "", 0, fmt.Errorf("it must be auto, host, or surt, bkdr, elf or sdbm with a number of queues from 1 to %d, such as bkdr:8", maxQueues)
}

// FormatQueues writes what [ParseQueues] reads.
func FormatQueues(by blobschema.QueueBy, n int) string {
	switch by {
	case "":
		return "auto"
	case blobschema.QueueByHost:
		return string(by)
	}
	return fmt.Sprintf("%s:%d", by, n)
}

// ParseHostRule parses a rule: HOST=CONNECTIONS, HOST=DELAY or HOST=CONNECTIONS,DELAY.
func ParseHostRule(s string) (r blobschema.HostRule, err error) {
	host, what, ok := strings.Cut(s, "=")
	if !ok {
		return r, fmt.Errorf("it must be HOST=CONNECTIONS, HOST=DELAY or both, such as example.org=8,100ms")
	}
	if r.Host, err = parseHost(host); err != nil {
		return r, err
	}
	for part := range strings.SplitSeq(what, ",") {
		if n, err := parseConnections(part); err == nil && r.Connections == 0 {
			r.Connections = n
		} else if d, err := parseDelay(part); err == nil && r.Delay == nil {
			r.Delay = &d
		} else {
			return r, fmt.Errorf("after = must be 1 to %d connections, a delay, or both, such as 8,100ms", maxConnections)
		}
	}
	return r, nil
}

// FormatHostRule writes what [ParseHostRule] reads.
func FormatHostRule(r *blobschema.HostRule) string {
	var parts []string
	if r.Connections > 0 {
		parts = append(parts, strconv.Itoa(r.Connections))
	}
	if r.Delay != nil {
		parts = append(parts, r.Delay.String())
	}
	return r.Host + "=" + strings.Join(parts, ",")
}

func parseHost(s string) (string, error) {
	h, err := weburl.ParseHost(s)
	if err != nil {
		return "", fmt.Errorf("it must be a host such as example.org or example.org:8080: %w", err)
	}
	return string(h), nil
}

func parseConnections(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxConnections {
		return 0, fmt.Errorf("it must be a number from 1 to %d", maxConnections)
	}
	return n, nil
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || s == "0" { // which would be taken for a number of connections
		return 0, errors.New("it must be a time such as 100ms or 2s, or 0s")
	}
	return d, nil
}

// parseDepth parses how far links are followed; -1 is without bound.
func parseDepth(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < -1 || n >= 1<<16 {
		return 0, errors.New("it must be 0 to 65535, or -1 for no bound")
	}
	return n, nil
}

func checkPattern(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return fmt.Errorf("it must be a regular expression (RE2): %w", err)
	}
	return nil
}
