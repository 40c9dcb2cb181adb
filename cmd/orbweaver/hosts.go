package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

type hostsFlags struct {
	reading
	sort  string
	limit int
	host  string
}

func newHosts() *cobra.Command {
	f := hostsFlags{sort: "score"}
	cmd := f.newCommand("hosts", noArguments, func(cmd *cobra.Command, _ []string) error {
		if f.limit < 0 {
			return usagef("--limit must be 0 or more")
		}
		return f.read(cmd.Context(), func(v *view.View) error {
			e, err := v.Estimates(cmd.Context())
			if err != nil {
				return err
			}
			hosts := f.choose(e.Hosts)
			shown := hosts
			if f.limit > 0 {
				shown = hosts[:min(f.limit, len(hosts))]
			}
			if !f.json {
				return f.report(cmd, nil, func(out *output) { f.print(out, shown, len(hosts), e) })
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetEscapeHTML(false)
			for i := range shown {
				h := &shown[i]
				if err := enc.Encode(hostJSON{
					h.Host, h.Partition, h.Score, h.Requests, h.Failures, h.Connect.Seconds(), h.Response.Seconds(),
					h.PerConnection, h.Known, h.Pending, h.Capped,
				}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	var names []string
	for _, c := range hostColumns {
		names = append(names, c.name)
	}
	cmd.Flags().Lookup("json").Usage = "write JSON, one object a line"
	list := strings.Join(names, ", ")
	cmd.Flags().Func("sort", "the `column` to sort by, highest first, host from a to z: "+list+" (default score)", func(s string) error {
		if !slices.Contains(names, s) {
			return fmt.Errorf("it must be one of %s", list)
		}
		f.sort = s
		return nil
	})
	cmd.Flags().IntVar(&f.limit, "limit", 50, "most hosts to list; 0 for all")
	cmd.Flags().StringVar(&f.host, "host", "", "list only hosts whose name holds this text")
	return cmd
}

// hostColumns are the columns with what they sort by, the highest first.
var hostColumns = []struct {
	name string
	by   func(h *view.HostEstimate) float64
}{
	{"score", func(h *view.HostEstimate) float64 { return h.Score }},
	{"host", func(*view.HostEstimate) float64 { return 0 }},
	{"requests", func(h *view.HostEstimate) float64 { return float64(h.Requests) }},
	{"failures", func(h *view.HostEstimate) float64 { return float64(h.Failures) }},
	{"connect", func(h *view.HostEstimate) float64 { return h.Connect.Seconds() }},
	{"response", func(h *view.HostEstimate) float64 { return h.Response.Seconds() }},
	{"known", func(h *view.HostEstimate) float64 { return float64(h.Known) }},
	{"pending", func(h *view.HostEstimate) float64 { return float64(h.Pending) }},
	{"capped", func(h *view.HostEstimate) float64 { return float64(h.Capped) }},
}

// choose returns the hosts of --host, sorted by the column, and equal ones by name.
func (f *hostsFlags) choose(hosts []view.HostEstimate) []view.HostEstimate {
	hosts = slices.DeleteFunc(hosts, func(h view.HostEstimate) bool { return !strings.Contains(h.Host, f.host) })
	for _, c := range hostColumns {
		if c.name == f.sort {
			slices.SortFunc(hosts, func(a, b view.HostEstimate) int {
				return cmp.Or(cmp.Compare(c.by(&b), c.by(&a)), cmp.Compare(a.Host, b.Host))
			})
		}
	}
	return hosts
}

// hostJSON is a host for programs.
type hostJSON struct {
	Host          string       `json:"host"`
	Partition     partition.ID `json:"partition"`
	Score         float64      `json:"score"`
	Requests      uint64       `json:"requests"`
	Failures      uint64       `json:"failures"`
	Connect       float64      `json:"connect_seconds"`
	Response      float64      `json:"response_seconds"`
	PerConnection float64      `json:"requests_per_connection"`
	Known         uint64       `json:"known"`
	Pending       uint64       `json:"pending"`
	Capped        uint64       `json:"capped"`
}

// print writes some of all hosts, their number, and the age of the figures.
func (f *hostsFlags) print(out *output, shown []view.HostEstimate, all int, e *view.Estimates) {
	var lines [][]any
	for i := range shown {
		h := &shown[i]
		lines = append(lines, []any{strconv.FormatFloat(h.Score, 'g', 3, 64), h.Requests, h.Failures, millis(h.Connect), millis(h.Response),
			decimal(h.PerConnection), h.Known, h.Pending, h.Capped, h.Host})
	}
	if len(lines) > 0 {
		out.table(nameLast, "score|requests|failures|connect|response|per conn|known|pending|capped|host", lines)
	}
	if e.AsOf.IsZero() {
		out.line("no figures of hosts yet: they are copied every minute, in a cloud every quarter of an hour, and when a crawl is finished")
		return
	}
	s := plural(all, "host")
	if len(shown) < all {
		s = count(len(shown)) + " of " + s
	}
	if f.host != "" {
		s += fmt.Sprintf(" with %q in the name", f.host)
	}
	s += ", as of " + e.AsOf.UTC().Format(timeLayout)
	if e.Behind {
		s += "; the crawl has gone on since"
	}
	out.line("%s", s)
}

// millis writes a short time; "-" if it is unknown.
func millis(d time.Duration) string {
	switch {
	case d <= 0:
		return "-"
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < 10*time.Second:
		return count(d.Round(time.Millisecond).Milliseconds()) + " ms"
	}
	return span(d.Seconds())
}

// decimal writes a small number; "-" if it is unknown.
func decimal(v float64) string {
	if v <= 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
