// Package internal_test checks which package may import which, and that the core does no I/O. It reads the
// sources of every system and build tag, so the result does not depend on where it runs.
package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/orbweaver/orbweaver"

// picture lists all packages from the bottom up, each with the packages of this module that it may import. A
// package may only name those above it in this list, so imports point one way; "..." means all of them. Tests
// may import any package.
const picture = `
partition:
blobschema/wire:
blobschema/naming:        partition
platform:
internal/weburl:
internal/drivers/embedded: blobschema/wire
blobschema:               blobschema/naming blobschema/wire internal/weburl partition
blobschema/ranks:         blobschema blobschema/naming blobschema/wire partition
blobschema/warc:          blobschema
blobschema/segment:       blobschema/wire partition
internal/ledger:          blobschema
platform/conformance:     blobschema blobschema/naming internal/ledger platform
internal/actor:           blobschema internal/weburl
internal/polite:          blobschema blobschema/wire
internal/token:           blobschema/segment
internal/token/makedict:
internal/extract:         blobschema internal/actor internal/polite internal/weburl
internal/text:            internal/extract
internal/fetch:           blobschema blobschema/warc internal/actor internal/extract internal/polite internal/weburl
internal/schedule:        blobschema internal/actor internal/polite internal/weburl partition
internal/frontier:        blobschema internal/actor internal/polite internal/schedule internal/weburl partition
internal/actor:           blobschema internal/weburl
internal/crawl:           blobschema blobschema/naming blobschema/ranks blobschema/warc blobschema/wire internal/actor internal/frontier internal/polite internal/schedule internal/weburl partition
internal/rank:            blobschema blobschema/naming blobschema/ranks blobschema/wire internal/actor internal/schedule internal/weburl partition
internal/rank/made:       blobschema blobschema/naming blobschema/wire internal/weburl partition
internal/crawlfile:       blobschema blobschema/naming blobschema/warc internal/crawl internal/fetch internal/schedule internal/weburl partition
internal/drivers/bucket:  blobschema/naming platform
internal/drivers/aws:     blobschema/naming internal/drivers/bucket partition platform
internal/drivers/gcp:     blobschema/naming internal/drivers/bucket partition platform
internal/drivers/gcp/fake:
internal/drivers/gocloud: blobschema/naming partition platform
internal/drivers/nats:    blobschema/naming internal/drivers/bucket partition platform
internal/drivers/postgres: blobschema/naming internal/drivers/bucket partition platform
internal/drivers:         blobschema/naming internal/drivers/aws internal/drivers/bucket internal/drivers/embedded internal/drivers/gcp internal/drivers/gocloud internal/drivers/nats internal/drivers/postgres platform
internal/index:           blobschema blobschema/naming blobschema/ranks blobschema/segment blobschema/warc blobschema/wire internal/actor internal/extract internal/text internal/token internal/weburl partition
internal/engine:          blobschema blobschema/naming blobschema/wire internal/actor internal/fetch internal/ledger platform
internal/metrics:         blobschema internal/crawl internal/schedule
internal/service:         blobschema blobschema/naming blobschema/warc blobschema/wire internal/actor internal/crawl internal/engine internal/fetch internal/ledger internal/schedule partition platform
internal/metrics/export:  internal/crawl internal/metrics internal/service
internal/jobs:            blobschema blobschema/naming blobschema/ranks internal/actor internal/crawl internal/index internal/rank internal/service partition platform
internal/fsck:            blobschema blobschema/naming blobschema/ranks blobschema/segment blobschema/warc blobschema/wire internal/weburl partition
internal/simweb:          blobschema
internal/hostile:         blobschema
internal/virtual:         blobschema internal/actor
internal/simulate:        blobschema blobschema/naming blobschema/ranks blobschema/warc internal/actor internal/crawl internal/drivers/embedded internal/fetch internal/fsck internal/index internal/polite internal/rank internal/simweb internal/virtual internal/weburl partition
internal/control:         blobschema blobschema/naming blobschema/ranks internal/crawl internal/engine internal/jobs internal/rank internal/weburl partition platform
internal/view:            blobschema blobschema/naming blobschema/ranks blobschema/warc blobschema/wire internal/actor internal/control internal/crawl internal/drivers internal/engine internal/extract internal/polite internal/rank internal/schedule internal/weburl partition platform
internal/export:          blobschema blobschema/warc blobschema/wire internal/actor internal/extract internal/text internal/view internal/weburl partition
internal/inbound:         blobschema blobschema/naming internal/engine internal/view internal/weburl platform
internal/feed:            blobschema blobschema/naming blobschema/wire internal/view partition platform
internal/search:          blobschema blobschema/naming blobschema/ranks blobschema/segment blobschema/wire internal/token internal/weburl partition
internal/ui:              blobschema blobschema/warc internal/crawl internal/extract internal/ledger internal/search internal/service internal/view internal/weburl partition
internal/function:        blobschema internal/actor internal/crawl internal/fetch internal/ledger internal/metrics internal/polite internal/service partition platform
internal/function/query:  blobschema internal/engine internal/function internal/search
functions/google:         internal/actor internal/drivers/gcp internal/function internal/function/query internal/jobs internal/service partition
functions/coordinate:     internal/drivers/aws internal/function internal/jobs internal/service
functions/fetch:          internal/drivers/aws internal/function
functions/intake:         internal/drivers/aws internal/function
functions/inbound:        internal/drivers/aws internal/function internal/inbound internal/service
functions/index:          internal/drivers/aws internal/function internal/jobs internal/service partition
functions/rank:           internal/drivers/aws internal/function internal/jobs internal/service partition
functions/query:          internal/drivers/aws internal/function internal/function/query
internal/lambdalocal:
internal/wiretap:
internal/process:
internal/emulators:       internal/process
internal/servers:         internal/process
infra/zip:
localstack:               blobschema internal/drivers internal/emulators internal/engine internal/lambdalocal internal/ledger internal/simweb internal/view internal/weburl internal/wiretap partition
infra/selfhosted:         internal/servers
infra/emulated:
infra/account:
.:                        blobschema internal/control internal/crawl internal/crawlfile internal/drivers internal/engine internal/extract internal/feed internal/jobs internal/polite internal/service internal/text internal/view internal/weburl platform
cmd/orbweaver:            ...
`

// modules lists the direct dependencies of the shipped programs, each with the packages that may import it.
const modules = `
github.com/andybalholm/brotli:       internal/extract internal/hostile
github.com/aws/aws-lambda-go:        functions/coordinate functions/fetch functions/inbound functions/index functions/intake functions/query functions/rank internal/function internal/lambdalocal
github.com/aws/aws-sdk-go-v2:        infra/account internal/lambdalocal internal/drivers/aws internal/drivers/bucket localstack
github.com/aws/smithy-go:            internal/drivers/aws internal/drivers/bucket
github.com/bits-and-blooms/bloom/v3: blobschema
github.com/blevesearch/snowballstem: internal/token
cloud.google.com/go:                 internal/drivers/gcp internal/drivers/gcp/fake
github.com/dchest/siphash:           partition
github.com/dustin/go-humanize:       cmd/orbweaver internal/crawlfile internal/ui
al.essio.dev/pkg/shellescape:        cmd/orbweaver
github.com/fsouza/fake-gcs-server:   internal/drivers/gcp/fake
github.com/fxamacker/cbor/v2:        blobschema internal/drivers internal/polite internal/schedule
github.com/jackc/pgx/v5:             internal/drivers/postgres
github.com/nats-io/nats.go:          internal/drivers/nats
github.com/JohannesKaufmann/html-to-markdown/v2: internal/export
github.com/parquet-go/parquet-go:    internal/export
github.com/klauspost/compress:       blobschema/warc blobschema/wire internal/extract internal/token
gocloud.dev/pubsub/rabbitpubsub:     internal/drivers/gocloud internal/feed
github.com/prometheus/client_golang: internal/metrics/export
github.com/spf13/cobra:              cmd/orbweaver
github.com/spf13/pflag:              cmd/orbweaver
go.etcd.io/bbolt:                    internal/drivers
go.opentelemetry.io/contrib/bridges/prometheus: internal/metrics/export
go.opentelemetry.io/otel:            cmd/orbweaver internal/metrics/export
go.yaml.in/yaml/v4:                  internal/crawlfile
gocloud.dev:                         internal/drivers internal/drivers/aws internal/drivers/bucket internal/drivers/gcp internal/drivers/gocloud internal/engine internal/feed internal/view platform platform/conformance
golang.org/x/net:                    internal/export internal/extract internal/fetch internal/hostile internal/simweb internal/text internal/weburl
golang.org/x/sync:                   cmd/orbweaver infra/account internal/drivers/gcp internal/drivers/nats internal/engine internal/feed internal/jobs internal/search internal/ui
golang.org/x/term:                   cmd/orbweaver
golang.org/x/text:                   internal/crawlfile internal/export internal/extract internal/token
golang.org/x/time:                   internal/inbound
google.golang.org/api:               functions/google internal/drivers/gcp internal/drivers/gcp/fake
google.golang.org/grpc:              internal/drivers/gcp internal/drivers/gcp/fake
google.golang.org/protobuf:          internal/drivers/gcp internal/drivers/gcp/fake
`

// core lists the packages that do no I/O, start no goroutine and read no clock, so that the simulation can run
// them unchanged.
var core = []string{
	"blobschema",
	"blobschema/naming",
	"blobschema/ranks",
	"blobschema/segment",
	"blobschema/warc",
	"blobschema/wire",
	"internal/actor",
	"internal/crawl",
	"internal/drivers/embedded",
	"internal/extract",
	"internal/frontier",
	"internal/index",
	"internal/polite",
	"internal/rank",
	"internal/schedule",
	"internal/text",
	"internal/token",
	"internal/weburl",
	"partition",
}

// pools lists the core packages that may keep scratch memory in a sync.Pool. No result depends on the contents
// of a pool.
var pools = []string{"blobschema/segment", "blobschema/wire", "internal/extract", "internal/token"}

// tables lists the core packages that may unpack a table on first use with sync.OnceValue. The table is
// constant, but too large for every program to unpack.
var tables = []string{"internal/token"}

// contexts lists the core packages that may import package context, because they pass a context to a store.
var contexts = []string{"blobschema"}

// impure lists the standard packages that the core may not import. A name that ends in a slash means all
// packages below it.
var impure = []string{
	"context", "crypto/rand", "crypto/tls", "hash/maphash", "log", "log/", "math/rand", "math/rand/", "net", "net/http",
	"net/http/", "os", "os/", "runtime", "runtime/", "sync/atomic", "syscall", "testing", "testing/",
}

// clock lists the functions of package time that read a clock or wait for one.
var clock = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

func TestImportsPointOneWay(t *testing.T) {
	allowed := parse(t, picture)
	for pkg, files := range sources(t) {
		may, ok := allowed[pkg]
		if !ok {
			t.Errorf("%s is not in the picture: say there what it may import", pkg)
			continue
		}
		for _, imp := range own(files) {
			if !slices.Contains(may, imp) {
				t.Errorf("%s imports %s, which the picture does not allow", pkg, imp)
			}
		}
		for _, other := range may {
			if !slices.Contains(own(files), other) && pkg != "cmd/orbweaver" {
				t.Errorf("%s no longer imports %s: take it off the picture", pkg, other)
			}
		}
	}
}

func TestModulesStayWhereTheyAre(t *testing.T) {
	users := map[string][]string{}
	for mod, list := range lines(modules) {
		users[mod] = strings.Fields(list)
	}
	used := map[string]bool{}
	for pkg, files := range sources(t) {
		for _, imp := range imports(files) {
			first, _, _ := strings.Cut(imp, "/")
			if !strings.Contains(first, ".") || within(imp, module) {
				continue
			}
			mod := ""
			for m := range users {
				if within(imp, m) && len(m) > len(mod) { // a module within another's path
					mod = m
				}
			}
			used[mod+" "+pkg] = true
			if !slices.Contains(users[mod], pkg) {
				t.Errorf("%s imports %s: is the dependency worth it? Then list it", pkg, imp)
			}
		}
	}
	for mod, pkgs := range users {
		for _, pkg := range pkgs {
			if !used[mod+" "+pkg] {
				t.Errorf("%s no longer imports %s: take it off the list", pkg, mod)
			}
		}
	}
}

// TestModulesHaveTheirReasons checks that ADR 8 has a line for each direct dependency.
func TestModulesHaveTheirReasons(t *testing.T) {
	gomod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	adr, err := os.ReadFile("../docs/adr/0008-dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for i, s := range strings.Split(string(adr), "`") {
		if i%2 == 1 {
			named = append(named, s)
		}
	}
	direct := 0
	for line := range strings.Lines(string(gomod)) {
		mod, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(version, "v") || strings.HasSuffix(version, "// indirect") {
			continue
		}
		direct++
		if !slices.ContainsFunc(named, func(name string) bool { return within(mod, name) }) {
			t.Errorf("%s is not in ADR 8: say there what it is for", mod)
		}
	}
	if direct < 20 {
		t.Errorf("only %d direct dependencies are found", direct)
	}
}

func TestCoreDoesNoIO(t *testing.T) {
	all := sources(t)
	for _, pkg := range core {
		files := all[pkg]
		if len(files) == 0 {
			t.Errorf("there is no package %s", pkg)
		}
		for _, imp := range own(files) {
			if !slices.Contains(core, imp) {
				t.Errorf("%s is core and imports %s, which is not", pkg, imp)
			}
		}
		for _, f := range files {
			for _, o := range offences(f.ast, slices.Contains(pools, pkg), slices.Contains(tables, pkg)) {
				if o != "imports context" || !slices.Contains(contexts, pkg) {
					t.Errorf("%s: %s", f.name, o)
				}
			}
		}
	}
}

// TestFunctionsOpenDeploymentsOnly checks that functions do not link the driver of a folder, nor the libraries that export
// metrics.
func TestFunctionsOpenDeploymentsOnly(t *testing.T) {
	allowed := parse(t, picture)
	for _, name := range []string{"coordinate", "fetch", "google", "index", "intake", "query", "rank"} {
		var links func(pkg string) bool
		links = func(pkg string) bool {
			return pkg == "internal/drivers" || pkg == "internal/metrics/export" || slices.ContainsFunc(allowed[pkg], links)
		}
		if len(allowed["functions/"+name]) == 0 || links("functions/"+name) {
			t.Errorf("functions/%s links the driver of a folder or the exporter of metrics, or is not in the picture", name)
		}
	}
}

// TestOffencesAreFound checks that the checks above find offences at all.
func TestOffencesAreFound(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`import "time"; var t = time.Now()`, "time.Now"},
		{`import clock "time"; func f() { clock.Sleep(1) }`, "time.Sleep"},
		{`import . "time"`, "imports all of time"},
		{`import "os"`, "imports os"},
		{`import "net/http/httptest"`, "imports net/http/httptest"},
		{`import "sync"; var mu sync.Mutex`, "sync.Mutex"},
		{`func f() { go f() }`, "starts a goroutine"},
		{`var c chan int`, "uses a channel"},
		{`func init() {}`, "has an init"},
		{`import "time"; var d = 3 * time.Second; var t = time.Unix(0, 0)`, ""},
		{`import "sync"; var p sync.Pool`, ""},
		{`import "sync"; var p = sync.OnceValue(f)`, ""},
		{`import "sync"; var o sync.Once`, "sync.Once"},
		{`import ("net/netip"; "net/url")`, ""},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "f.go", "package p; "+c.src, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(offences(f, true, true), "; ")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: found %q, want %q", c.src, got, c.want)
		}
	}
}

// source is a parsed file, not a test.
type source struct {
	name string // from the root, with slashes
	ast  *ast.File
}

// sources parses the whole module except for its tests, by package path within it.
func sources(t *testing.T) map[string][]source {
	t.Helper()
	out := map[string][]source{}
	for _, name := range files(t) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		out[path.Dir(name)] = append(out[path.Dir(name)], source{name, f})
	}
	return out
}

// files returns the paths of the module's Go files from the root, with slashes.
func files(t *testing.T) (out []string) {
	t.Helper()
	root := os.DirFS("..")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := path.Base(name)
		if d.IsDir() {
			_, nested := fs.Stat(root, path.Join(name, "go.mod"))
			if name != "." && (base[0] == '.' || base[0] == '_' || base == "testdata" || nested == nil) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(base) == ".go" {
			out = append(out, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// imports returns the paths that files import, sorted.
func imports(files []source) []string {
	set := map[string]bool{}
	for _, f := range files {
		for _, imp := range f.ast.Imports {
			set[importPath(imp)] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// own returns the imports from this module, by their path within it.
func own(files []source) (out []string) {
	for _, imp := range imports(files) {
		if within(imp, module) {
			out = append(out, strings.TrimPrefix(imp, module+"/"))
		}
	}
	return out
}

func importPath(imp *ast.ImportSpec) string {
	p, err := strconv.Unquote(imp.Path.Value)
	if err != nil {
		panic(err) // the parser has unquoted it before
	}
	return p
}

func within(imp, mod string) bool { return imp == mod || strings.HasPrefix(imp, mod+"/") }

// parse reads the picture, and checks that each package names only those above it.
func parse(t *testing.T, picture string) map[string][]string {
	t.Helper()
	allowed := map[string][]string{}
	var above []string
	for pkg, list := range lines(picture) {
		may := strings.Fields(list)
		if slices.Equal(may, []string{"..."}) {
			may = slices.Clone(above)
		}
		for _, p := range may {
			if !slices.Contains(above, p) {
				t.Errorf("the picture lets %s import %s, which is not above it", pkg, p)
			}
		}
		allowed[pkg] = may
		above = append(above, pkg)
	}
	return allowed
}

// lines yields the lines of a table, cut at the colon.
func lines(table string) func(yield func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for line := range strings.Lines(strings.TrimSpace(table)) {
			name, list, _ := strings.Cut(line, ":")
			if !yield(name, list) {
				return
			}
		}
	}
}

// offences returns what a file of the core does although it must not.
func offences(f *ast.File, pool, table bool) (out []string) {
	names := map[string]string{} // package paths, by their names in the file
	for _, imp := range f.Imports {
		p := importPath(imp)
		name := path.Base(p)
		if imp.Name != nil {
			name = imp.Name.Name
		}
		names[name] = p
		for _, bad := range impure {
			if p == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(p, bad) {
				out = append(out, "imports "+p)
			}
		}
		if name == "." {
			out = append(out, "imports all of "+p)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			out = append(out, "starts a goroutine")
		case *ast.ChanType, *ast.SelectStmt:
			out = append(out, "uses a channel")
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				out = append(out, "has an init")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			switch p, sel := names[x.Name], n.Sel.Name; {
			case p == "time" && slices.Contains(clock, sel):
				out = append(out, fmt.Sprintf("calls time.%s: the time is an argument", sel))
			case p == "sync" && !(pool && sel == "Pool") && !(table && sel == "OnceValue"):
				out = append(out, fmt.Sprintf("uses sync.%s: an actor's state needs no locks", sel))
			}
		}
		return true
	})
	return slices.Compact(out)
}
