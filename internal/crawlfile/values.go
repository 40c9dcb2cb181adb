package crawlfile

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// The error of each parser describes valid values.

const (
	maxConnections = 64 // of one host
	maxQueues      = 64 // of one host
)

// ParsePriority parses the priority of a topic or of a seed.
func ParsePriority(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || crawl.CheckTopic(&blobschema.Topic{Priority: n}) != nil {
		return 0, fmt.Errorf("it must be a whole number from %d to %d", -crawl.MaxPriority, crawl.MaxPriority)
	}
	return n, nil
}

// ParseSlice parses the length of a topic's turn.
func ParseSlice(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || crawl.CheckTopic(&blobschema.Topic{Slice: d}) != nil {
		return 0, fmt.Errorf("it must be a time longer than 0s and at most %s, such as 20s", formatSpan(crawl.MaxSlice))
	}
	return d, nil
}

// ParseMinimum parses a number of pages in a time: N/h, N/d, or N and any time, such as 100/10m.
func ParseMinimum(s string) (pages int64, period time.Duration, err error) {
	text, per, _ := strings.Cut(s, "/")
	pages, err = strconv.ParseInt(text, 10, 64)
	var perr error
	switch per {
	case "h":
		period = time.Hour
	case "d":
		period = 24 * time.Hour
	default:
		period, perr = time.ParseDuration(per)
	}
	topic := blobschema.Topic{Minimum: pages, Period: period}
	if err != nil || perr != nil || pages <= 0 || period <= 0 || crawl.CheckTopic(&topic) != nil {
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

// formatSpan writes a time without its units of 0.
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

// ParseRate parses the number of revisits per hour: N/h or N/d; "off" is 0.
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
	switch {
	case perHour == 0:
		return "off"
	case perHour == math.Trunc(perHour):
		return strconv.FormatFloat(perHour, 'f', -1, 64) + "/h"
	}
	return strconv.FormatFloat(perHour*24, 'g', 12, 64) + "/d"
}

// ParseQueues parses the queue assignment of hosts: "auto", "host", or a hash and a number, such
// as "bkdr 8" or "bkdr:8".
func ParseQueues(s string) (by blobschema.QueueBy, n int, err error) {
	name, number, more := strings.Cut(strings.Replace(s, ":", " ", 1), " ")
	switch by = blobschema.QueueBy(name); by {
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
	const want = "it must be auto, host, or surt, bkdr, elf or sdbm with a number of queues from 1 to %d, such as bkdr:8"
	return "", 0, fmt.Errorf(want, maxQueues)
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
		return r, errors.New("it must be HOST=CONNECTIONS, HOST=DELAY or both, such as example.org=8,100ms")
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
func FormatHostRule(r blobschema.HostRule) string {
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
		err = fmt.Errorf("it must be a host such as example.org or example.org:8080: %w", err)
	}
	return string(h), err
}

func parseConnections(s string) (int, error) { return parseCount(s, maxConnections) }

func parseCount(s string, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("it must be 1 to %d", most)
	}
	return n, nil
}

func parseDelay(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || s == "0" { // "0" could be a number of connections too
		return 0, errors.New("it must be a time such as 100ms or 2s, or 0s")
	}
	return d, nil
}

// parseElastic parses the bounds on the number of partitions: LEAST..MOST; "off" is 0, 0.
func parseElastic(s string) (least, most int, err error) {
	if s == "off" {
		return 0, 0, nil
	}
	a, b, ok := strings.Cut(s, "..")
	least, aerr := strconv.Atoi(a)
	most, berr := strconv.Atoi(b)
	if !ok || aerr != nil || berr != nil || least < 1 || most < least || most > partition.MaxPartitions {
		return 0, 0, fmt.Errorf("it must be LEAST..MOST, such as 2..16, with 1 to %d partitions, or off", partition.MaxPartitions)
	}
	return least, most, nil
}

// formatElastic writes what [parseElastic] reads.
func formatElastic(least, most int) string {
	if most == 0 {
		return "off"
	}
	return fmt.Sprintf("%d..%d", least, most)
}

func parseImbalance(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f >= 1.01 && f <= 100) {
		return 0, errors.New("it must be a number from 1.01 to 100")
	}
	return f, nil
}

// parseAgent checks a User-Agent, whose first word is a product.
func parseAgent(s string) (string, error) {
	if fetch.ProductToken(s) == "" {
		return "", errors.New(`it must begin with a product of letters, "-" and "_", as in "mybot/1.0 (+https://example.org/bot)"`)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", errors.New("it must not hold control characters")
	}
	return s, nil
}

// parseNetwork parses a network. A bare address is a network of its own.
func parseNetwork(s string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(s)
	if err != nil {
		addr, aerr := netip.ParseAddr(s)
		if aerr != nil || addr.Zone() != "" {
			return p, errors.New("it must be a network such as 127.0.0.0/8, an address, or none")
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	return p.Masked(), nil
}

// parseSize parses a number of bytes, such as 1048576, 16MiB or 1GB.
func parseSize(s string) (int64, error) {
	n, err := humanize.ParseBytes(s)
	if err != nil || n < 1 || n > maxMaxBody {
		return 0, errors.New("it must be a number of bytes such as 1048576, 16MiB or 1MB, at most " + formatSize(maxMaxBody))
	}
	return int64(n), nil
}

// formatSize writes what [parseSize] reads.
func formatSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return strconv.FormatInt(n, 10)
}
