package extract

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// TestGolden reads the pages of testdata, each in the charset it is named after.
func TestGolden(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.*ml")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages", err)
	}
	for _, name := range pages {
		t.Run(filepath.Base(name), func(t *testing.T) {
			body, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			contentType := "text/html"
			if filepath.Ext(name) == ".xml" {
				contentType = "application/xml"
			}
			r := Links(body, contentType, mustParse(t, "https://gazette.example/2024/loom/today"), Options{Token: "orbweaver"})
			got := fmt.Sprintf("noindex %v, nofollow %v\n%s\n", r.NoIndex, r.NoFollow, strings.Join(showAll(r.Links), "\n"))
			golden := strings.TrimSuffix(name, filepath.Ext(name)) + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
