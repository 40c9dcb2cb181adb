// Command orbweaver crawls the web from one machine: queues, table, blob storage and
// the functions that work on them in one process, and all that is stored in one folder.
// Or it tells a deployment in a cloud to, and looks at what comes of it.
//
// Each subcommand is a file: it parses its flags, opens the folder or the platform, calls
// the packages that do the work, and says what came of it. Machine-readable output and summaries go
// to standard output, everything else to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/service"
)

// version is that of the program: in WARC files and in the default user agent.
const version = service.Version

// defaultData is the folder that commands work on unless --data names another.
const defaultData = "orbweaver-data"

func main() {
	ignoreSizeSignal()
	os.Exit(int(run(context.Background(), os.Args[1:])))
}

// run runs a command line and says on standard error what went wrong.
func run(ctx context.Context, args []string) exit { return execute(ctx, root(), args) }

func execute(ctx context.Context, cmd *cobra.Command, args []string) exit {
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if f := (*failure)(nil); errors.As(err, &f) && f.err == nil {
		return f.status // it has said all there is
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "orbweaver: "+err.Error())
	return statusOf(err)
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "orbweaver",
		Short: "A web crawler made of queues and functions",
		Long: `Orbweaver crawls the web politely, keeps the answers in WARC files, and can be
stopped and started again at any time without losing or repeating anything.

All it keeps is in one folder (--data, by default ./` + defaultData + `). The same
commands work on a deployment in a cloud (--platform, or $` + platformVariable + `),
where functions crawl, and this program only begins and looks.`,
		Example: `  orbweaver demo                                  # a made-up web on this machine, checked
  orbweaver crawl https://example.org/            # one site
  orbweaver crawl                                 # go on with it
  orbweaver recrawl https://example.org/          # ask once more for what may have changed
  orbweaver crawl --max-pages 1000 --scope domain https://example.org/
  orbweaver crawl --file crawl.yaml               # as a file describes: 'orbweaver help crawl-file'
  orbweaver crawl --platform aws.json https://example.org/   # in a cloud`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       versionLine(),
		Args:          noSuchCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w\nSee '%s --help'", err, cmd.CommandPath())
	})
	for _, sub := range []func() *cobra.Command{
		newCrawl, newWork, newRecrawl, newIndex, newRank, newSearch, newPause, newResume, newStop, newPartitions, newTopics, newDLQ, newDemo, newStatus,
		newHosts, newExplain, newGet, newExport, newFsck, newEstimate, newVersion, newCrawlFile, newSearchSyntax, newExitStatus,
	} {
		cmd.AddCommand(sub())
	}
	return cmd
}

// noSuchCommand refuses arguments that no subcommand took.
func noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(" Did you mean '%s'?", strings.Join(near, "' or '"))
	}
	return usagef("there is no command %q.%s\nSee 'orbweaver --help'", args[0], hint)
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which version this is",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
			return err
		},
	}
}

// noArguments refuses whatever is not a flag.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("'%s' takes no arguments, but there is %q\nSee '%[1]s --help'", cmd.CommandPath(), args[0])
	}
	return nil
}

// versionLine tells the version, the revision it was built from, and for what.
func versionLine() string {
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = fmt.Sprintf(" (%.12s)", s.Value)
			}
		}
	}
	return fmt.Sprintf("orbweaver %s%s %s %s/%s", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
