package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/partition"
)

type hostsFlags struct {
	reading
	limit int
	host  string
}

func newHosts() *cobra.Command {
	var f hostsFlags
	cmd := f.newCommand("hosts", noArguments, func(cmd *cobra.Command, _ []string) error {
		if f.limit < 0 {
			return usagef("--limit must be 0 or more")
		}
		return f.read(cmd.Context(), func(v *view.View) error {
			e, err := v.Estimates(cmd.Context())
			if err != nil {
				return err
			}
			r := f.choose(e)
			if !f.json {
				return f.report(cmd.OutOrStdout(), "hosts", r)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetEscapeHTML(false)
			for i := range r.Shown {
				h := &r.Shown[i]
				if err := enc.Encode(hostJSON{
					h.Host, h.Partition, h.Score, h.Requests, h.Failures, h.Conn.Seconds(), h.Resp.Seconds(),
					h.PerConnection, h.Known, h.Pending, h.Capped,
				}); err != nil {
					return err
				}
			}
			return nil
		})
	})
	cmd.Flags().Lookup("json").Usage = "write JSON, one object a line"
	f.registerCrawl(cmd)
	cmd.Flags().IntVar(&f.limit, "limit", 50, "most hosts to list; 0 for all")
	cmd.Flags().StringVar(&f.host, "host", "", "list only hosts whose name holds this text")
	return cmd
}

// hostsReport lists hosts.
type hostsReport struct {
	*view.Estimates
	Shown  []view.HostEstimate
	All    int
	Filter string
}

// choose returns the hosts of --host, the highest score first, up to --limit.
func (f *hostsFlags) choose(e *view.Estimates) *hostsReport {
	hosts := slices.DeleteFunc(e.Hosts, func(h view.HostEstimate) bool { return !strings.Contains(h.Host, f.host) })
	slices.SortFunc(hosts, func(a, b view.HostEstimate) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Host, b.Host))
	})
	r := &hostsReport{Estimates: e, Shown: hosts, All: len(hosts), Filter: f.host}
	if f.limit > 0 {
		r.Shown = hosts[:min(f.limit, len(hosts))]
	}
	return r
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
