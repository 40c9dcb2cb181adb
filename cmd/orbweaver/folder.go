package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/platform/local"
)

// storeFile is the file that makes a folder a crawl's; see package local.
const storeFile = "orbweaver.db"

// folder says what is in a data folder before anything opens it.
type folder uint8

const (
	folderEmpty   folder = iota // or not there
	folderCrawl                 // it was used by a crawl
	folderForeign               // it holds other files
)

// lookAt looks at a data folder and changes nothing.
func lookAt(dir string) (folder, error) {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return folderEmpty, nil
	case errors.Is(err, syscall.ENOTDIR):
		return folderForeign, usagef("--data %s is no folder, but a file or below one; give another", dir)
	case err != nil:
		return folderForeign, explain(dir, err)
	case len(entries) == 0:
		return folderEmpty, nil
	}
	if _, err := os.Stat(filepath.Join(dir, storeFile)); err == nil {
		return folderCrawl, nil
	}
	return folderForeign, nil
}

// checkFolder refuses a folder that a crawl with or without seeds cannot use, before it
// is touched.
func checkFolder(dir string, seeds int) error {
	what, err := lookAt(dir)
	switch {
	case err != nil:
		return err
	case what == folderForeign:
		return usagef("the folder %s holds other files and no crawl; give an empty or new one with --data", dir)
	case what == folderEmpty && seeds == 0:
		return errNoCrawl(dir)
	}
	return nil
}

func errNoCrawl(dir string) error { return folderPlace(dir).noCrawl() }

// explain turns an error of opening or working on a folder into one that says what to
// do, with the status to end with.
func explain(dir string, err error) error {
	var f *failure
	switch {
	case err == nil || errors.As(err, &f):
		return err
	case errors.Is(err, local.ErrInUse):
		return fail(exitInUse, fmt.Errorf("the folder %s is in use: another process works on it.\n"+
			"Wait until it ends, or work in another folder (--data)", dir))
	case errors.Is(err, local.ErrVersion), errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("the folder %s was not written by this version: %w.\n"+
			"Use the version that wrote it, or begin another crawl in another folder (--data)", dir, err)
	case errors.Is(err, local.ErrDamaged), errors.Is(err, wire.ErrDamaged):
		return fmt.Errorf("the folder %s is damaged: %w.\n"+
			"Restore it from a copy, or begin another crawl in another folder (--data); WARC files in %s can be read all the same",
			dir, err, filepath.Join(dir, "blobs"))
	case noRoom(err):
		return fmt.Errorf("no room in %s: %w.\nMake room and go on with '%s': what was committed is kept", dir, err, resumeCommand(dir))
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail(exitError, fmt.Errorf("the folder %s cannot be read or written: %w.\nChange its permissions, or give another folder with --data", dir, err))
	case errors.Is(err, crawl.ErrNoCrawl):
		return errNoCrawl(dir)
	}
	return err
}

// noRoom reports whether an error comes of a full disk or an exhausted quota. Some on the
// way keep the text of an error only.
func noRoom(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EFBIG, syscall.EDQUOT} {
		if errors.Is(err, e) || strings.Contains(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// resumeCommand is the command that goes on with the crawl in dir. flags are those of
// this run that the record does not keep.
func resumeCommand(dir string, flags ...string) string {
	return folderPlace(dir).command("crawl", flags...)
}

// quotedWords writes a command line for a shell.
func quotedWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellQuote(w)
	}
	return strings.Join(quoted, " ")
}

// shellQuote writes a word so that a shell reads it as one.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:,+=@%", r)
	}
	if word != "" && strings.TrimFunc(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
