package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/platform"
)

// trouble returns the error of damaged data or of a full disk: the problem, what is safe and what to do.
func trouble(status exit, what, safe, todo string) error {
	return fail(status, fmt.Errorf("%s.\nSafe: %s.\nTo do: %s", what, safe, todo))
}

// damage explains an error of reading something that is damaged or missing; nil for other errors.
func (t *target) damage(err error) error {
	cause := err.Error()
	object, kind := objectIn(cause)
	switch {
	case errors.Is(err, drivers.ErrDamaged):
		kind = naming.NoObject
	case object != "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, actor.ErrNotFound)):
		cause = object + " is missing"
	case errors.Is(err, wire.ErrDamaged), errors.Is(err, warc.ErrDamaged):
	default:
		return nil
	}
	safe, todo := t.remedy(kind)
	if object != "" {
		todo += fmt.Sprintf(". '%s' lists all damage", t.command("fsck"))
	}
	if t.live {
		todo = "try again first, because the crawl may just have replaced the object. If the error stays, " + todo
	}
	return trouble(exitDamaged, t.words().contents+" is damaged: "+cause, safe, todo)
}

// objectIn returns the last name of an object in a text. An error names what it read last.
func objectIn(text string) (name string, kind naming.Kind) {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" :,;\"'()\n", r) }) {
		if k := naming.KindOf(strings.TrimSuffix(word, ".")); k != naming.NoObject {
			name, kind = word, k
		}
	}
	return name, kind
}

// remedy returns what is safe if an object of a kind is damaged, and what to do. NoObject means the database.
func (t *target) remedy(kind naming.Kind) (safe, todo string) {
	w := t.words()
	again := ". Without a copy, start another crawl in " + w.another
	switch kind {
	case naming.Derived:
		return "the crawl with all its pages and links, from which index and ranks are made",
			fmt.Sprintf("make index and ranks again with '%s'", t.command("index", "--rebuild"))
	case naming.Answers:
		return "the pages in all other WARC files, and the state of the crawl, which can continue",
			"restore the file from a copy" + again + " to fetch its pages again"
	}
	return "the pages in the WARC files, which other programs can read too" + w.archives, w.restore + again
}

// noRoom explains an error of a full disk; nil for other errors.
func (t *target) noRoom(err error) error {
	if !platform.NoRoom(err) {
		return nil
	}
	cause, _, _ := strings.Cut(err.Error(), "\n")
	dir, todo := t.data, fmt.Sprintf("make room, or move the folder to a larger disk. Then resume with '%s'", t.command("crawl"))
	if f := (*fs.PathError)(nil); errors.As(err, &f) {
		if cause = f.Error(); !below(dir, f.Path) { // a file that the command writes for its user
			dir, todo = filepath.Dir(f.Path), "make room, or choose another place, and run the command again"
		}
	}
	return trouble(exitError, fmt.Sprintf("no room in %s: %s", dir, cause), "all pages that were committed; those fetched since then will be fetched again", todo)
}

// below reports whether a file is in a folder.
func below(dir, file string) bool {
	dir, dirErr := filepath.Abs(dir)
	file, fileErr := filepath.Abs(file)
	rel, err := filepath.Rel(dir, file)
	return errors.Join(dirErr, fileErr, err) == nil && filepath.IsLocal(rel)
}

// remedy is advice after damage: the damaged data, the safe data and the next step.
type remedy struct{ What, Safe, Todo string }

// damageFound returns advice about damaged objects that a check has found.
func (t *target) damageFound(r *fsck.Report) (out []remedy) {
	found := map[naming.Kind]bool{}
	for _, v := range r.Violations {
		kind := naming.KindOf(v.Where)
		if v.Invariant == "I6" && kind != naming.NoObject {
			found[kind] = true
		} else if v.Invariant == "I11" || v.Invariant == "ranks" {
			found[naming.Derived] = true
		}
	}
	for kind, name := range []string{naming.State: "commits", naming.Answers: "WARC files", naming.Derived: "index or ranks"} {
		if found[naming.Kind(kind)] {
			safe, todo := t.remedy(naming.Kind(kind))
			out = append(out, remedy{name, safe, todo})
		}
	}
	return out
}
