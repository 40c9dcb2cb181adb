package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "write docs/commands.md")

// TestCommandsReference keeps docs/commands.md equal to the help of the commands. With -update it writes the page.
func TestCommandsReference(t *testing.T) {
	t.Setenv(platformVariable, "")
	name := filepath.FromSlash("../../docs/commands.md")
	want := commandsPage()
	if *update {
		if err := os.WriteFile(name, want, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from the help of the commands: run this test with -update", name)
	}
}

// commandsPage returns the reference of all commands and help topics in Markdown.
func commandsPage() []byte {
	var table, sections bytes.Buffer
	each(root(), func(cmd *cobra.Command) {
		switch {
		case cmd.Hidden || cmd.Name() == "help" || cmd.HasParent() && cmd.Parent().Name() == "completion":
		case cmd.Runnable():
			path := strings.TrimPrefix(cmd.CommandPath(), "orbweaver ")
			if cmd.HasParent() {
				fmt.Fprintf(&table, "| [`%s`](#orbweaver-%s) | %s |\n", path, strings.ReplaceAll(path, " ", "-"), cmd.Short)
			}
			cmd.InitDefaultHelpFlag()
			fmt.Fprintf(&sections, "\n## %s\n\n```text\n%s\n\n%s```\n", cmd.CommandPath(), strings.TrimSpace(cmd.Long), cmd.UsageString())
		default:
			fmt.Fprintf(&sections, "\n## orbweaver help %s\n\n```text\n%s\n```\n", cmd.Name(), strings.TrimSpace(cmd.Long))
		}
	})
	return fmt.Appendf(nil, "# Commands\n\n<!-- Written by go test ./cmd/orbweaver -run TestCommandsReference -update. -->\n\n"+
		"| `orbweaver` … | |\n|---|---|\n%s\nExit statuses:\n\n```text\n%s```\n%s", &table, exitStatuses(), &sections)
}
