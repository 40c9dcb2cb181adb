package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/experiment"
)

func newExperiment() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "experiment [NAME]",
		Short: "Make published measurements again",
		Long: `Experiment makes measurements of published crawlers again with this one, and sets the
figures side by side. The crawls are simulated, on a clock of their own and a web that is
made up, so the same seed gives the same figures on any machine; what is measured on the
machine itself the report says. Without a name it lists what there is.`,
		Example: `  orbweaver experiment
  orbweaver experiment webgather --quick          # in seconds, to see that it works
  orbweaver experiment webgather --out results    # as published, for minutes`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no experiment %q\nSee '%s'", args[0], cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, e := range experiment.All() {
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%-12s %s\n", e.Name, e.Short); err != nil {
					return err
				}
			}
			return nil
		},
	}
	for _, e := range experiment.All() {
		cmd.AddCommand(newOneExperiment(e))
	}
	return cmd
}

func newOneExperiment(e experiment.Experiment) *cobra.Command {
	var o experiment.Options
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   e.Name,
		Short: strings.ToUpper(e.Short[:1]) + e.Short[1:],
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Pages < 0 || o.Pages > 0 && o.Pages < experiment.LeastPages || o.Pages > experiment.MostPages {
				return usagef("--pages is %d, not within %d and %d\nSee '%s --help'", o.Pages, experiment.LeastPages, experiment.MostPages, cmd.CommandPath())
			}
			o.Log = func(line string) { fmt.Fprintln(cmd.ErrOrStderr(), line) }
			return runExperiment(cmd.OutOrStdout(), e, o, out, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "folder for the report, its tables as CSV and its plots as SVG; without it the report is printed")
	f.Uint64Var(&o.Seed, "seed", 1, "of the web and of the crawl's hash")
	f.IntVar(&o.Pages, "pages", 0, "size of the web, or of the collection of documents, in pages; 0: as published")
	f.BoolVar(&o.Quick, "quick", false, "so small that it takes seconds: to see that it works, not to measure")
	f.BoolVar(&asJSON, "json", false, "print the figures as JSON, for a program")
	return cmd
}

func runExperiment(w io.Writer, e experiment.Experiment, o experiment.Options, out string, asJSON bool) error {
	r, err := e.Run(o)
	if err != nil {
		return err
	}
	if out != "" {
		if err := r.Write(out); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
		err = writeJSON(w, r)
	case out == "":
		_, err = io.WriteString(w, r.Markdown())
	default:
		_, err = fmt.Fprintf(w, "%s is written to %s\n", r.Title, out)
	}
	if failed := r.Failed(); err == nil && len(failed) > 0 && !o.Quick {
		err = fmt.Errorf("what does not hold:\n  %s", strings.Join(failed, "\n  "))
	}
	return err
}
