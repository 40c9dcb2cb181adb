package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/partition"
)

// TestMain runs more tests at once than there are processors, unless -parallel is set, because most of them wait.
func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8")
	testscript.Main(m, map[string]func(){"orbweaver": main})
}

// TestScripts runs testdata/*.txtar. In the environment of each script, SITE is the URL of the script's own site without the
// final slash, OTHER is the same site at another port, and MAPPED the same with a sitemap. Additional commands are
//
//	ends STATUS COMMAND...  run a command that must end with that exit status
//	asked N                 wait until the site got requests for N pages
//	held                    check that the site gets no more requests for some time
//	store FILE FORMAT       write a store's file, of another format
//	readonly DIR            take away all permissions to write a folder, and hold the lock that
//	                        its readers share, so that writers fail as root too
//	deadletter DIR REASON PARTITION BODY
//	                        put a dead letter into a folder, and set LETTER to its id
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts("testdata"))
}

// scripts returns the parameters of the scripts in a folder.
func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			s := newSite()
			env.Defer(s.close)
			env.Setenv("SITE", s.url)
			env.Setenv("OTHER", s.other)
			env.Setenv("MAPPED", s.mapped)
			env.Values[siteKey{}] = s
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"ends": ends, "asked": asked, "held": held, "store": writeStore, "readonly": makeReadOnly, "deadletter": writeDeadLetter,
		},
	}
}

type siteKey struct{}

func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends STATUS COMMAND...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: asked N")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	if s := ts.Value(siteKey{}).(*site); !s.wait(n) {
		ts.Fatalf("the site got requests for fewer than %d pages", n)
	}
}

// held gives requests under way half a second to end, and then allows none for one second.
func held(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: held")
	}
	s := ts.Value(siteKey{}).(*site)
	time.Sleep(500 * time.Millisecond)
	before := s.count()
	time.Sleep(time.Second)
	if n := s.count() - before; n > 0 {
		ts.Fatalf("the site got requests for %d more pages", n)
	}
}

// writeDeadLetter stores a dead letter as a step or an intake does.
func writeDeadLetter(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: deadletter DIR REASON PARTITION BODY")
	}
	p, err := strconv.ParseUint(args[2], 10, 32)
	ts.Check(err)
	crawls, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "blobs", "2*"))
	ts.Check(err)
	id := filepath.Base(crawls[0])
	letter, err := json.Marshal(crawl.DeadLetter{Crawl: id, Partition: partition.ID(p), Reason: args[1], Body: []byte(args[3])})
	ts.Check(err)
	name := filepath.Join(filepath.Dir(crawls[0]), filepath.FromSlash(naming.Dead(id, []byte(args[3]))))
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
	ts.Check(os.WriteFile(name, letter, 0o600))
	ts.Setenv("LETTER", filepath.Base(name))
}

// writeStore makes a file like one of another version of package drivers.
func writeStore(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: store FILE FORMAT")
	}
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	db, err := bbolt.Open(path, 0o600, nil)
	ts.Check(err)
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket([]byte("about"))
		if err != nil {
			return fmt.Errorf("create bucket: %w", err)
		}
		return b.Put([]byte("format"), []byte(args[1]))
	})
	ts.Check(errors.Join(err, db.Close()))
}

// makeReadOnly changes the modes back at the end of the script.
func makeReadOnly(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: readonly DIR")
	}
	dir := ts.MkAbs(args[0])
	db, err := bbolt.Open(filepath.Join(dir, naming.DatabaseFile), 0, &bbolt.Options{ReadOnly: true})
	ts.Check(err)
	ts.Defer(func() { ts.Check(db.Close()) })
	var paths []string // folders before their contents
	ts.Check(filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	change := func(mask, set fs.FileMode) {
		for _, path := range paths {
			info, err := os.Stat(path)
			ts.Check(err)
			ts.Check(os.Chmod(path, info.Mode().Perm()&^mask|set))
		}
	}
	ts.Defer(func() { change(0, 0o200) })
	change(0o222, 0)
}
