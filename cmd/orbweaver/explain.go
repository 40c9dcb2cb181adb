package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// newExplain takes an argument with a slash for a URL, and any other for a host.
func newExplain() *cobra.Command {
	var f reading
	return f.newCommand("explain", one("URL or host"), func(cmd *cobra.Command, args []string) error {
		return f.read(cmd.Context(), func(v *view.View) error {
			if strings.Contains(args[0], "/") {
				u, err := parseURL(args[0])
				if err != nil {
					return err
				}
				r, err := v.ExplainURL(cmd.Context(), u)
				if err != nil {
					return err
				}
				return f.report(cmd.OutOrStdout(), "explain", urlReport{r})
			}
			h, err := weburl.ParseHost(args[0])
			if err != nil {
				return usagef("%.200q is neither a URL nor a host: %w", args[0], err)
			}
			r, err := v.ExplainHost(cmd.Context(), h)
			if err != nil {
				return err
			}
			return f.report(cmd.OutOrStdout(), "explain-host", hostReport{r})
		})
	})
}

// urlReport is a report on a URL, for people.
type urlReport struct{ *view.URLReport }

// maxEarlier is how many earlier records of a URL people are shown.
const maxEarlier = 10

// Latest are the latest of the earlier records, and how many more there are.
func (r urlReport) Latest() []blobschema.Page {
	return r.Earlier[:min(len(r.Earlier), maxEarlier)]
}
func (r urlReport) More() int { return max(0, len(r.Earlier)-maxEarlier) }

// hostReport is a report on a host, for people.
type hostReport struct{ *view.HostReport }

// LeftAlone reports whether the host is left alone after failures.
func (r hostReport) LeftAlone() bool { return time.Until(r.Backoff) > 0 }
