package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestTables runs the queries of the guide to tables in DuckDB, and checks a WACZ with the program of its specification.
func TestTables(t *testing.T) {
	tools := os.Getenv("TABLE_TOOLS")
	if tools == "" {
		t.Skip("needs duckdb and wacz of Python: run make tables")
	}
	guide, err := os.ReadFile(filepath.FromSlash("../../docs/howto/tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	queries := ""
	for _, block := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(guide), -1) {
		queries += block[1] + "\n"
	}
	if n := strings.Count(queries, "\n-- "); n != 10 { // the first block is before them
		t.Errorf("the guide has %d queries", n)
	}
	script := `exec orbweaver crawl --data d --allow-net 127.0.0.1 --delay 0s $MAPPED/0 $SITE/moved $SITE/same
exec orbweaver export --data d --format parquet --with referrer,words,headers --out tables
exec ` + tools + `/python3 run.py
stdout '^1 .*/missing.*/0'
stdout '^2 .*/moved 1 .*/1$'
stdout '^4 .*http'
stdout '^5 .*text/html'
stdout '^7 .*/same'
stdout '^9 none '
stdout '^10 127.0.0.1 ok 200 '
exec orbweaver export --data d --format wacz --out d.wacz
exec ` + tools + `/wacz validate -f d.wacz
stdout 'Validation succeeded'
-- queries.sql --
` + queries + `-- run.py --
import duckdb
for n, query in enumerate(open("queries.sql").read().split(";\n")[:-1], -1):
    for row in duckdb.execute(query).fetchall():
        print(n, *row)
`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tables.txtar"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scripts(dir))
}
