// Command orbweaver crawls the web from one machine: queues, table, blob storage and
// the functions that work on them run in one process, and all data is in one folder.
// Or it controls and reads a deployment in a cloud.
//
// Each subcommand is a file. Its help is in the folder help, and its reports are templates in the folder
// text. It parses its flags, opens its [target], calls the packages that do the work, and reports the
// result. Machine-readable output and summaries go to standard output, everything else to standard error.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/internal/search"
	"github.com/orbweaver/orbweaver/internal/service"
)

// version is the version of the program, in WARC files and in the default user agent.
const version = service.Version

// defaultData is the folder that commands work on unless --data names another.
const defaultData = "orbweaver-data"

func main() {
	ignoreSizeSignal()
	os.Exit(int(execute(context.Background(), root(), os.Args[1:])))
}

// execute runs a command line and reports its error on standard error.
func execute(ctx context.Context, cmd *cobra.Command, args []string) exit {
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if f := (*failure)(nil); errors.As(err, &f) && f.err == nil {
		return f.status // it has reported everything
	}
	warn(cmd.ErrOrStderr(), "%s", err)
	return statusOf(err)
}

func root() *cobra.Command {
	cmd := command("orbweaver", noSuchCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() })
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.Version = versionLine()
	cmd.SuggestionsMinimumDistance = 2
	cmd.SetVersionTemplate("{{.Version}}\n")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%w\nSee '%s --help'", err, cmd.CommandPath())
	})
	cmd.AddCommand(newCrawl(), newWork(), newRecrawl(), newSubscribe(), newIndex(), newRank(), newSearch(), newPause(), newResume(), newStop(),
		newPartitions(), newTopics(), newDLQ(), newDemo(), newStatus(), newHosts(), newExplain(), newGet(), newExport(), newFeed(), newFsck(),
		newCrawls(), newDiff(), newEstimate(), newUI(), newReport(), newMan(), newVersion(),
		topic("crawl-file", "What a crawl file says: an example to begin with", exampleFile),
		topic("search-syntax", "What a query of search may say", search.Syntax+"\n"),
		topic("exit-status", "The exit statuses of all commands", exitStatuses()))
	return cmd
}

//go:embed help
var help embed.FS

//go:embed crawl-file.yaml
var exampleFile string

// command returns the command that help/NAME.txt describes: a line with its usage, a line with its
// purpose, an explanation, and examples.
func command(name string, args cobra.PositionalArgs, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	text, err := help.ReadFile("help/" + name + ".txt")
	if err != nil {
		panic("orbweaver: " + err.Error()) // a test runs all commands: unreachable
	}
	use, rest, _ := strings.Cut(string(text), "\n")
	short, rest, _ := strings.Cut(rest, "\n")
	long, examples, _ := strings.Cut(rest, "\nExamples:\n")
	long, examples = strings.TrimSpace(long), strings.TrimRight(examples, "\n")
	return &cobra.Command{Use: use, Short: short, Long: long, Example: examples, Args: args, RunE: run}
}

// topic is a help topic.
func topic(name, short, text string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Long: text}
	cmd.SetHelpTemplate("{{.Long}}")
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
	return command("version", noArguments, func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), versionLine())
		return err
	})
}

// noArguments refuses arguments that are not flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("'%s' takes no arguments, but there is %q\nSee '%[1]s --help'", cmd.CommandPath(), args[0])
	}
	return nil
}

// one accepts one argument, which messages call what.
func one(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usagef("'%s' takes one %s\nSee '%[1]s --help'", cmd.CommandPath(), what)
		}
		return nil
	}
}

// versionLine names the version, the revision it was built from, and the system.
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
