package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

type hostsFlags struct {
	looking
	sort  hostOrder
	limit int
	host  string
}

func newHosts() *cobra.Command {
	f := hostsFlags{sort: "score"}
	cmd := &cobra.Command{
		Use:   "hosts",
		Short: "List the hosts that were asked, with their scores",
		Long: `Hosts lists what was observed of the hosts of a crawl, also while it runs:

  score      quality of the best URLs that one connection will bring, for each second
             that it is expected to take; --policy capability asks for the highest first
  requests   requests made, robots.txt included; failures: of them without an answer
  connect    time to connect; response: time of a request; per conn: requests that a
             connection serves; all three smoothed, the latest weighing most
  known      URLs known; pending: of them not settled; capped: links left out because
             the host, or its registrable domain, has too many

With --partition-by domain or ip a line is a registrable domain or an address. The
figures are copied from the partitions every minute, in a cloud every quarter of an hour,
and when a crawl is finished.`,
		Example: `  orbweaver hosts
  orbweaver hosts --sort pending --limit 10
  orbweaver hosts --host example.org
  orbweaver hosts --platform aws.json
  orbweaver hosts --limit 0 --json | jq -r 'select(.failures > 9).host'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.limit < 0 {
				return usagef("--limit must be 0 or more")
			}
			return f.look(cmd.Context(), func(v *view.View) error {
				e, err := v.Estimates(cmd.Context())
				if err != nil {
					return err
				}
				return printHosts(cmd.OutOrStdout(), &f, e)
			})
		},
	}
	f.register(cmd)
	cmd.Flags().Lookup("json").Usage = "write JSON, one object a line"
	cmd.Flags().Var(&f.sort, "sort", "the column to sort by, highest first, host from a to z: "+strings.Join(sortColumns(), ", "))
	cmd.Flags().IntVar(&f.limit, "limit", 50, "list at most so many; 0 for all")
	cmd.Flags().StringVar(&f.host, "host", "", "list only hosts whose name holds this text")
	return cmd
}

// hostColumn is a column, with what it sorts by: the highest first.
type hostColumn struct {
	name string
	by   func(h *view.HostEstimate) float64
}

var hostColumns = []hostColumn{
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

// sortColumns are the names of hostColumns.
func sortColumns() (names []string) {
	for _, c := range hostColumns {
		names = append(names, c.name)
	}
	return names
}

// hostOrder is --sort.
type hostOrder string

func (v *hostOrder) Set(s string) error {
	names := sortColumns()
	if !slices.Contains(names, s) {
		return fmt.Errorf("it must be one of %s", strings.Join(names, ", "))
	}
	*v = hostOrder(s)
	return nil
}

func (v *hostOrder) String() string { return string(*v) }
func (v *hostOrder) Type() string   { return "column" }

// apply sorts hosts by the column, and equals by name.
func (v hostOrder) apply(hosts []view.HostEstimate) {
	i := slices.IndexFunc(hostColumns, func(c hostColumn) bool { return c.name == string(v) })
	by := hostColumns[i].by
	slices.SortFunc(hosts, func(a, b view.HostEstimate) int {
		return cmp.Or(cmp.Compare(by(&b), by(&a)), cmp.Compare(a.Host, b.Host))
	})
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

func printHosts(out io.Writer, f *hostsFlags, e *view.Estimates) error {
	hosts := slices.DeleteFunc(e.Hosts, func(h view.HostEstimate) bool { return !strings.Contains(h.Host, f.host) })
	f.sort.apply(hosts)
	shown := hosts
	if f.limit > 0 {
		shown = hosts[:min(f.limit, len(hosts))]
	}
	if f.json {
		enc := json.NewEncoder(out)
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
	}
	var b strings.Builder
	if len(shown) > 0 {
		hostTable(&b, shown)
	}
	b.WriteString(hostsLine(len(shown), len(hosts), f.host, e) + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

func hostTable(b *strings.Builder, hosts []view.HostEstimate) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "score\trequests\tfailures\tconnect\tresponse\tper conn\tknown\tpending\tcapped\t  host\n")
	for i := range hosts {
		h := &hosts[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t  %s\n", strconv.FormatFloat(h.Score, 'g', 3, 64),
			count(int64(h.Requests)), count(int64(h.Failures)), millis(h.Connect), millis(h.Response), decimal(h.PerConnection),
			count(int64(h.Known)), count(int64(h.Pending)), count(int64(h.Capped)), printable(h.Host))
	}
	w.Flush() // into memory: it cannot fail
}

// hostsLine says how many hosts there are, and how old the figures.
func hostsLine(shown, all int, like string, e *view.Estimates) string {
	if e.AsOf.IsZero() {
		return "no figures of hosts yet: they are copied every minute, in a cloud every quarter of an hour, and when a crawl is finished"
	}
	s := plural(int64(all), "host")
	if shown < all {
		s = fmt.Sprintf("%s of %s", count(int64(shown)), s)
	}
	if like != "" {
		s += fmt.Sprintf(" with %q in the name", like)
	}
	s += ", as of " + e.AsOf.UTC().Format("2006-01-02 15:04:05 UTC")
	if e.Behind {
		s += "; the crawl has gone on since"
	}
	return s
}

// millis writes a short time; nothing where it is not known.
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

// decimal writes a small number, nothing where it is not known.
func decimal(v float64) string {
	if v <= 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
