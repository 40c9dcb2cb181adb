package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// plant is a bug, as changes of the core's source.
type plant struct {
	Name    string
	Bug     string // description
	Promise string // the invariant it breaks, or "page limit"
	Edits   []edit
	// Rare says that the bug shows only when runs are merged, which small crawls rarely do. It is planted into a core that
	// merges often.
	Rare bool
	// Escapes says why the simulation seldom or never finds it, "" if it must.
	Escapes string
}

// oftenMerged is no bug: it makes small crawls merge as often as large ones.
var oftenMerged = []edit{
	{"internal/crawl/merge.go", "const mergeFanIn = 8\n", "const mergeFanIn = 2\n"},
	{"internal/crawl/coordinator.go", "cfg.SweepEvery, 10*time.Minute)\n", "cfg.SweepEvery, 5*time.Minute)\n"},
}

// edit replaces a text that occurs exactly once in a file.
type edit struct {
	File     string // path in the module, with slashes
	Old, New string
}

// apply returns the contents of the plant's files with the bug, by the names in the edits.
func (p *plant) apply(root string) (map[string]string, error) {
	files := map[string]string{}
	edits := p.Edits
	if p.Rare {
		edits = slices.Concat(oftenMerged, edits)
	}
	for _, e := range edits {
		text, ok := files[e.File]
		if !ok {
			b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.File)))
			if err != nil {
				return nil, fmt.Errorf("plant %q: %w", p.Name, err)
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); n != 1 {
			return nil, fmt.Errorf("plant %q: %s has this text %d times, not once; adapt the plant to the code:\n%s", p.Name, e.File, n, e.Old)
		}
		files[e.File] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// overlay writes the files with the bug into a folder, and returns the file for `go build -overlay`; "" if there are none.
func (p *plant) overlay(root, folder string) (string, error) {
	files, err := p.apply(root)
	if err != nil || len(files) == 0 {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range files {
		to := filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, b, 0o600)
}

// build compiles a package of the repository at root with the bug. A program is written to out.
func (p *plant) build(ctx context.Context, root, pkg, out string) (err error) {
	folder, err := os.MkdirTemp("", "orbweaver-plant-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	overlay, err := p.overlay(root, folder)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-C", pkg, "-o", out)
	if overlay != "" {
		cmd.Args = append(cmd.Args, "-overlay", overlay)
	}
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, text)
	}
	return nil
}
