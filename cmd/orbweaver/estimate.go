package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

func newEstimate() *cobra.Command {
	d := ledger.DefaultDeployment()
	var r reading
	cloud := "aws"
	timeout := time.Duration(d.TimeoutS) * time.Second
	delay := time.Duration(d.DelayS) * time.Second
	cmd := command("estimate", noArguments, func(cmd *cobra.Command, _ []string) error {
		d.TimeoutS, d.DelayS = timeout.Seconds(), delay.Seconds()
		prices, err := ledger.DefaultPrices()
		switch {
		case cloud == "gcp" && cmd.Flags().Changed("alarms"):
			return usagef("--alarms: a deployment on Google Cloud has none\nSee '%s --help'", cmd.CommandPath())
		case cloud == "gcp":
			d.Alarms = 0
			prices, err = ledger.GooglePrices()
		case cloud != "aws":
			return usagef("--cloud is %q, not aws or gcp\nSee '%s --help'", cloud, cmd.CommandPath())
		}
		if err != nil {
			return err
		}
		e, err := prices.Estimate(d)
		if err != nil {
			return usagef("%w\nSee '%s --help'", err, cmd.CommandPath())
		}
		return r.report(cmd.OutOrStdout(), "estimate", estimateReport{&e})
	})
	f := cmd.Flags()
	f.StringVar(&cloud, "cloud", cloud, "cloud of the deployment: aws or gcp")
	f.IntVar(&d.Partitions, "partitions", d.Partitions, "partitions of the crawl")
	f.IntVar(&d.MaxConcurrency, "max-concurrency", d.MaxConcurrency, "limit of steps at one time")
	f.IntVar(&d.MemoryMB, "memory", d.MemoryMB, "MB of memory of the fetch function")
	f.DurationVar(&timeout, "timeout", timeout, "timeout of the fetch function")
	f.IntVar(&d.ReadyHosts, "hosts", d.ReadyHosts, "hosts of each partition that are ready at any time")
	f.DurationVar(&delay, "delay", delay, "time between two requests to a host")
	f.Float64Var(&d.CPUMillis, "cpu-ms", d.CPUMillis, "ms of CPU per page, without its connection")
	f.IntVar(&d.PagesPerWARC, "pages-per-warc", d.PagesPerWARC, "pages in a WARC file")
	f.Float64Var(&d.StoredBytes, "stored-bytes", d.StoredBytes, "bytes stored per page")
	f.Float64Var(&d.SentBytes, "sent-bytes", d.SentBytes, "bytes sent per page over an open connection")
	f.Float64Var(&d.PagesPerConnection, "pages-per-connection", d.PagesPerConnection, "pages fetched over one TLS connection")
	f.IntVar(&d.Alarms, "alarms", d.Alarms, "number of alarms, without those of an index")
	f.BoolVar(&d.Index, "index", d.Index, "include an index, ranks and searches")
	f.Float64Var(&d.IndexMillis, "index-ms", d.IndexMillis, "ms of CPU to index a page")
	f.Float64Var(&d.IndexBytes, "index-bytes", d.IndexBytes, "bytes of a page in the index")
	f.BoolVar(&r.json, "json", false, "write JSON, for a program")
	return cmd
}

// estimateReport is an estimate for people; its JSON is that of the estimate.
type estimateReport struct{ *ledger.Estimate }

// priced is a table of items with their sum.
type priced struct {
	Title string
	Items []ledger.Item
	Total float64
}

// Tables are the tables of the estimate.
func (e estimateReport) Tables() []priced {
	tables := []priced{{"A million pages", e.PerMillion, e.PerMillionTotal}}
	if e.Deployment.Index {
		tables = append(tables, priced{"Making them searchable, ranks once", e.Indexed, e.IndexedTotal},
			priced{"A million searches", e.Searches, e.SearchesTotal})
	}
	return append(tables, priced{"An idle month, on top of pages too", e.Idle, e.IdleTotal})
}
