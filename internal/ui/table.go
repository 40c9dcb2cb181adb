package ui

import (
	"cmp"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"

	"github.com/orbweaver/orbweaver/internal/weburl"
)

// column is a column of a table of values. The cells are sorted by Num, or by Text if Num is nil.
type column[T any] struct {
	Name  string
	Num   func(T) float64
	Text  func(T) string // nil: Num as an integer
	Link  func(T) string // address; nil, or "" for none
	Class func(T) string // nil: none
	Fixed bool           // the column cannot be sorted by
	More  func(T) []cell // further lines of the cell; nil: none
}

// table is a table as a template shows it.
type table struct {
	ID             string // "" if no link leads to it
	Caption        string
	Columns        []tableHead
	Rows           [][]cell
	All            int64 // rows, with those that are not there
	Cut            int64 // rows that are there, if these are not all
	First          int   // number of the first row, from 1
	Previous, Next string
	Empty          string // text if there are no rows
}

type tableHead struct {
	Name, Link, Sorted string // Sorted is a value of aria-sort
	Num                bool
}

type cell struct {
	Text, Link, Class string
	Key               string // to sort by, if Text does not say it
	Num               bool
	More              []cell
}

// Last is the number of the last row. Linked reports whether the server sorts the table.
func (t *table) Last() int { return t.First + len(t.Rows) - 1 }
func (t *table) Linked() bool {
	return slices.ContainsFunc(t.Columns, func(h tableHead) bool { return h.Link != "" })
}

// newTable sorts values as the query of an address says, and shows a part of them. id names the table in the query: "hosts=-score"
// sorts by the column "score", the largest first, and "hosts.from=100" leaves out 100 rows. Without it, order names the
// column; "" leaves the values as they are. If q is nil, the table has no links.
func newTable[T any](q url.Values, id, caption, order string, values []T, columns []column[T]) *table {
	t := &table{Caption: caption, All: int64(len(values)), Empty: "None."}
	sorted := cmp.Or(q.Get(id), order)
	by, down := strings.CutPrefix(sorted, "-")
	for i := range columns {
		c := &columns[i]
		head := tableHead{Name: c.Name, Num: c.Num != nil}
		key := strings.ReplaceAll(strings.ToLower(c.Name), " ", "-")
		next := key
		if c.Num != nil {
			next = "-" + key
		}
		if key == by && !c.Fixed {
			head.Sorted, next = "ascending", "-"+key
			if down {
				head.Sorted, next = "descending", key
			}
			slices.SortStableFunc(values, func(a, b T) int {
				if down {
					a, b = b, a
				}
				if c.Num != nil {
					return cmp.Compare(c.Num(a), c.Num(b))
				}
				return cmp.Compare(c.Text(a), c.Text(b))
			})
		}
		if q != nil && !c.Fixed {
			head.Link = with(q, map[string]string{id: next, id + ".from": ""})
		}
		t.Columns = append(t.Columns, head)
	}
	shown := values
	if q != nil {
		from, _ := strconv.Atoi(q.Get(id + ".from"))
		from = max(0, min(from, len(values)))
		shown = values[from:min(from+rowsPerTable, len(values))]
		t.First = from + 1
		if from > 0 {
			t.Previous = with(q, map[string]string{id + ".from": strconv.Itoa(max(0, from-rowsPerTable))})
		}
		if from+len(shown) < len(values) {
			t.Next = with(q, map[string]string{id + ".from": strconv.Itoa(from + rowsPerTable)})
		}
	}
	for i := range shown {
		var row []cell
		for j := range columns {
			row = append(row, columns[j].cell(shown[i]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (c *column[T]) cell(v T) cell {
	out := cell{Num: c.Num != nil}
	if c.Num != nil {
		out.Key = strconv.FormatFloat(c.Num(v), 'g', -1, 64)
		out.Text = count(int64(c.Num(v)))
	}
	if c.Text != nil {
		out.Text = c.Text(v)
	}
	if c.Link != nil {
		out.Link = c.Link(v)
	}
	if c.Class != nil {
		out.Class = c.Class(v)
	}
	if c.More != nil {
		out.More = c.More(v)
	}
	return out
}

// with returns the address of the page with some parameters changed, or removed if they are empty.
func with(q url.Values, changes map[string]string) string {
	q = maps.Clone(q)
	for k, v := range changes {
		if q.Set(k, v); v == "" {
			q.Del(k)
		}
	}
	return "?" + q.Encode()
}

// functions are those of the templates.
var functions = template.FuncMap{
	"line": line, "count": count, "size": size, "at": at, "ago": ago, "span": span, "explain": explainLink, "live": liveLink,
	"future": func(t time.Time) bool { return t.After(time.Now()) },
}

// maxLine bounds texts that servers sent, in characters.
const maxLine = 300

// line makes a text that a server may have sent one line of at most maxLine characters, without control characters and
// without characters that change the direction of writing.
func line(text string) string {
	n := 0
	text = strings.Map(func(r rune) rune {
		switch n++; {
		case n > maxLine:
			return -1
		case n == maxLine:
			return '…'
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == 0x2028, r == 0x2029, r == unicode.ReplacementChar:
			return ' '
		}
		return r
	}, text)
	return text
}

func count(n int64) string { return humanize.Comma(n) }

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func at(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// ago says how long ago a time was, or how far ahead it is.
func ago(t time.Time) string {
	switch d := time.Until(t); {
	case t.IsZero():
		return "–"
	case d > 0:
		return "in " + span(d)
	default:
		return span(-d) + " ago"
	}
}

// span writes a duration with its two largest units.
func span(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return count(int64(d.Hours()/24)) + " days"
}

// explainLink is the address of the page about a URL or host.
func explainLink(u string) string { return "/explain?" + url.Values{"url": {u}}.Encode() }

// liveLink returns a URL of the crawl for a link out of this server: "" unless it is an http or https URL.
func liveLink(u string) string {
	parsed, err := weburl.Parse(u)
	if err != nil {
		return ""
	}
	return parsed.String()
}

func parseURL(text string) (weburl.URL, error) {
	u, err := weburl.Parse(strings.TrimSpace(text))
	if err != nil {
		return u, badRequest("This is no URL that a crawl can have: %s.", line(err.Error()))
	}
	return u, nil
}
