package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan returns the hidden command that packagers use.
func newMan() *cobra.Command {
	out := ""
	cmd := command("man", noArguments, func(cmd *cobra.Command, _ []string) error {
		if out == "" {
			return usagef("give the folder for the pages with --out")
		}
		if err := os.MkdirAll(out, 0o755); err != nil {
			return err
		}
		asMarkdown(cmd.Root())
		return doc.GenManTree(cmd.Root(), &doc.GenManHeader{Section: "1", Source: "orbweaver " + version}, out)
	})
	cmd.Hidden = true
	cmd.Flags().StringVar(&out, "out", "", "folder to write into")
	return cmd
}

// asMarkdown turns the help of a command and its subcommands into Markdown, from which [doc] makes pages: tables become code.
func asMarkdown(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true // no date, so that the same program makes the same pages
	cmd.Long = strings.ReplaceAll(cmd.Long, "\n  ", "\n    ")
	for _, sub := range cmd.Commands() {
		asMarkdown(sub)
	}
}
