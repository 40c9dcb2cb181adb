// Experiment repeats published measurements of crawlers with this one and prints both figures side by side.
//
//	experiment                            # list the experiments
//	experiment webgather -quick           # takes seconds, to see that it works
//	experiment webgather -out results     # as published, takes minutes
//
// The crawls are simulated on a virtual clock and a generated web, so the same seed gives the same figures on
// any machine. The report names the figures that were measured on this machine.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/lab/experiment"
)

func main() {
	switch err := run(os.Args[1:], os.Stdout, os.Stderr); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "experiment:", err)
		os.Exit(1)
	}
}

// run carries out the command line.
func run(args []string, out, progress io.Writer) error {
	if len(args) == 0 {
		for _, e := range experiment.All() {
			fmt.Fprintf(out, "%-12s %s\n", e.Name, e.Short)
		}
		return nil
	}
	if args[0] == experiment.ClientCommand { // a process that an experiment has started
		return experiment.Client(os.Stdin, out)
	}
	i := slices.IndexFunc(experiment.All(), func(e experiment.Experiment) bool { return e.Name == args[0] })
	if i < 0 {
		return fmt.Errorf("there is no experiment %q; without arguments this command lists them", args[0])
	}
	o := experiment.Options{Log: func(line string) { fmt.Fprintln(progress, line) }}
	f := flag.NewFlagSet("experiment "+args[0], flag.ContinueOnError)
	f.SetOutput(progress)
	folder := f.String("out", "", "`folder` for the report, its tables as CSV and its plots as SVG; without it the report is printed")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the web and of the crawl's hash")
	f.IntVar(&o.Pages, "pages", 0, "size of the web or the collection in pages; 0: as published")
	f.BoolVar(&o.Quick, "quick", false, "use a small web: to see that it works, not to measure")
	asJSON := f.Bool("json", false, "print the figures as JSON")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if o.Pages < 0 || o.Pages > 0 && o.Pages < experiment.LeastPages || o.Pages > experiment.MostPages {
		return fmt.Errorf("-pages is %d, not within %d and %d", o.Pages, experiment.LeastPages, experiment.MostPages)
	}
	r, err := experiment.All()[i].Run(o)
	if err != nil {
		return err
	}
	if err := write(out, r, *folder, *asJSON); err != nil {
		return err
	}
	if failed := r.Failed(); len(failed) > 0 && !o.Quick {
		return fmt.Errorf("these statements of the report do not hold:\n  %s", strings.Join(failed, "\n  "))
	}
	return nil
}

// write stores the report in the folder, if one is named, and prints it.
func write(out io.Writer, r *experiment.Report, folder string, asJSON bool) error {
	if folder != "" {
		if err := r.Write(folder); err != nil {
			return err
		}
	}
	var err error
	switch {
	case asJSON:
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		err = enc.Encode(r)
	case folder == "":
		_, err = io.WriteString(out, r.Markdown())
	default:
		_, err = fmt.Fprintf(out, "%s is written to %s\n", r.Title, folder)
	}
	return err
}
