package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

func newEstimate() *cobra.Command {
	d := ledger.DefaultDeployment()
	var asJSON bool
	timeout := time.Duration(d.TimeoutS) * time.Second
	delay := time.Duration(d.DelayS) * time.Second
	cmd := command("estimate", noArguments, func(cmd *cobra.Command, _ []string) error {
		d.TimeoutS, d.DelayS = timeout.Seconds(), delay.Seconds()
		prices, err := ledger.DefaultPrices()
		if err != nil {
			return err
		}
		e, err := prices.Estimate(d)
		if err != nil {
			return usagef("%w\nSee '%s --help'", err, cmd.CommandPath())
		}
		if asJSON {
			return writeJSON(cmd.OutOrStdout(), e)
		}
		return printEstimate(cmd.OutOrStdout(), &e)
	})
	f := cmd.Flags()
	f.IntVar(&d.Partitions, "partitions", d.Partitions, "partitions of the crawl")
	f.IntVar(&d.MaxConcurrency, "max-concurrency", d.MaxConcurrency, "most steps at a time")
	f.IntVar(&d.MemoryMB, "memory", d.MemoryMB, "MB of memory of the fetch function")
	f.DurationVar(&timeout, "timeout", timeout, "timeout of the fetch function")
	f.IntVar(&d.ReadyHosts, "hosts", d.ReadyHosts, "hosts that each partition has ready at any time")
	f.DurationVar(&delay, "delay", delay, "time between two requests to a host")
	f.Float64Var(&d.CPUMillis, "cpu-ms", d.CPUMillis, "ms of CPU for a page, without its connection")
	f.IntVar(&d.PagesPerWARC, "pages-per-warc", d.PagesPerWARC, "pages in a WARC file")
	f.Float64Var(&d.StoredBytes, "stored-bytes", d.StoredBytes, "bytes stored for a page")
	f.Float64Var(&d.SentBytes, "sent-bytes", d.SentBytes, "bytes sent for a page on an open connection")
	f.Float64Var(&d.PagesPerConnection, "pages-per-connection", d.PagesPerConnection, "pages fetched on a TLS connection")
	f.IntVar(&d.Alarms, "alarms", d.Alarms, "number of alarms, besides those of an index")
	f.BoolVar(&d.Index, "index", d.Index, "pages are made searchable and ranked, too; and what searches cost")
	f.Float64Var(&d.IndexMillis, "index-ms", d.IndexMillis, "ms of CPU to make a page searchable")
	f.Float64Var(&d.IndexBytes, "index-bytes", d.IndexBytes, "bytes that a page takes in the index")
	f.BoolVar(&asJSON, "json", false, "write JSON, for a program")
	return cmd
}

func printEstimate(w io.Writer, e *ledger.Estimate) error {
	fmt.Fprintf(w, "An estimate at %s.\n", e.Prices)
	fmt.Fprintf(w, "%s pages/s of %s, bound by %s; %s pages in a step of %s.\n\n", figure(e.Rate),
		plural(e.Deployment.Partitions, "partition"), e.BoundBy, figure(e.PagesPerStep), span(e.StepS))
	table := func(title string, items []ledger.Item, total float64) {
		fmt.Fprintf(w, "%-37s%21s%15s\n", title, "$", "free a month")
		for _, i := range items {
			free := ""
			if i.Free > 0 {
				free = figure(i.Free)
			}
			line := fmt.Sprintf("  %-18s%14s %-13s%10.4f%15s", i.What, figure(i.Quantity), i.Unit, i.Dollars, free)
			fmt.Fprintln(w, strings.TrimRight(line, " "))
		}
		fmt.Fprintf(w, "  %-46s%10.4f\n\n", "total", total)
	}
	table("A million pages", e.PerMillion, e.PerMillionTotal)
	if e.Deployment.Index {
		table("Making them searchable, ranks once", e.Indexed, e.IndexedTotal)
		table("A million searches", e.Searches, e.SearchesTotal)
	}
	table("An idle month, on top of pages too", e.Idle, e.IdleTotal)
	fmt.Fprintf(w, "Keeping a million pages: %s a month.\n", dollars(e.Retention))
	if e.Deployment.Index {
		fmt.Fprintf(w, "Keeping their index: %s a month.\n", dollars(e.IndexRetention))
	}
	fmt.Fprintf(w, "An idle month is %s if nothing else in the account uses what is free.\n\nAssumed:\n", dollars(e.IdleRest))
	_, err := fmt.Fprintln(w, "- "+strings.Join(e.Assumptions, "\n- "))
	return err
}

// figure is a number with as many digits as tell something.
func figure(v float64) string {
	if v >= 100 || v == math.Trunc(v) {
		return count(int64(v + 0.5))
	}
	return fmt.Sprintf("%.3g", v)
}
