package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// How figures are written for people.

// count writes a number with a comma every three digits.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural writes a number and its noun: "1 page", "2 pages".
func plural(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return count(n) + " " + noun
}

// size writes bytes with three digits or so.
func size(n int64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v := float64(n)
	unit := ""
	for _, unit = range []string{"KiB", "MiB", "GiB", "TiB"} {
		if v /= 1 << 10; v < 1000 {
			break
		}
	}
	if v < 10 {
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	return fmt.Sprintf("%.0f %s", v, unit)
}

// span writes a time as people say it, to the second once it is longer than ten.
func span(seconds float64) string {
	d := time.Duration(min(seconds, 1e9) * float64(time.Second)) // 32 years: more would overflow
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 1000*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%s days", count(int64(d.Hours()/24)))
}

// kinds lists outcomes, the most frequent first, leaving out those named.
func kinds(outcomes map[string]int64, without ...string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(outcomes)), func(k string) bool {
		return outcomes[k] == 0 || slices.Contains(without, k)
	})
	slices.SortStableFunc(names, func(a, b string) int { return int(outcomes[b] - outcomes[a]) })
	for i, k := range names {
		names[i] = k + " " + count(outcomes[k])
	}
	return strings.Join(names, " · ")
}

// errors lists what is neither a page, changed or not, nor a redirect.
func (f *figures) errors() string {
	list := kinds(f.Outcomes, blobschema.OutcomeOK.String(), blobschema.OutcomeUnchanged.String(), blobschema.OutcomeRedirect.String())
	if f.Retries > 0 {
		if list != "" {
			list += " · "
		}
		list += count(f.Retries) + " retried"
	}
	return list
}
