package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestTutorial runs the commands of the tutorial in order, on a local site. Only the site's URL, and flags that a site on
// loopback without a delay needs, differ from the page.
func TestTutorial(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../docs/tutorial.md"))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		for line := range strings.Lines(block[1]) {
			command, ok := strings.CutPrefix(line, "bin/orbweaver ")
			if !ok {
				continue // make and the usual tools of a shell
			}
			if rest, ok := strings.CutPrefix(command, "crawl "); ok && strings.Contains(rest, "https://") {
				command = "crawl --allow-net 127.0.0.1 --delay 0s " + rest
			}
			command, file, _ := strings.Cut(command, " > ")
			if file != "" {
				command += "\n"
				file = "cp stdout " + file
			}
			status := "0"
			if strings.Contains(command, "--max-time") {
				status = "3"
			}
			script.WriteString("ends " + status + " orbweaver " + strings.ReplaceAll(command, "https://example.org", "$SITE") + file)
		}
	}
	for _, name := range []string{"crawl", "export", "search", "recrawl", "fsck"} {
		if !strings.Contains(script.String(), " orbweaver "+name+" ") && !strings.Contains(script.String(), " orbweaver "+name+"\n") {
			t.Errorf("the tutorial has no %s", name)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tutorial.txtar"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scripts(dir))
}
