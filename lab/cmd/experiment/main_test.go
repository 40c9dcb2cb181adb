package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/lab/experiment"
)

func TestRun(t *testing.T) {
	var list, printed, progress strings.Builder
	if err := run(nil, &list, io.Discard); err != nil || !strings.Contains(list.String(), "\nwebgather ") {
		t.Errorf("list %q, error %v", &list, err)
	}
	folder := t.TempDir()
	args := []string{"webgather", "-quick", "-pages", "2000", "-out", folder, "-json"}
	if err := run(args, &printed, &progress); err != nil {
		t.Fatal(err)
	}
	var r experiment.Report
	if err := json.Unmarshal([]byte(printed.String()), &r); err != nil || r.Title == "" || !strings.Contains(progress.String(), "pages in") {
		t.Errorf("report %.80q, progress %.80q, error %v", &printed, &progress, err)
	}
	for _, name := range []string{"webgather.md", "webgather-speedup.csv", "webgather-speedup.svg"} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err != nil || len(text) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"nothing", `there is no experiment "nothing"`},
		{"webgather here", `unexpected argument "here"`},
		{"webgather -pages 3", "-pages is 3, not within"},
		{"webgather -sedd 3", "not defined"},
	} {
		if err := run(strings.Fields(c.args), io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", c.args, err, c.want)
		}
	}
}
