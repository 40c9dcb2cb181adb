package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/drivers"
	"github.com/orbweaver/orbweaver/internal/drivers/local"
)

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
		return folderForeign, folderPlace(dir).explain(err)
	case len(entries) == 0:
		return folderEmpty, nil
	}
	if _, err := os.Stat(filepath.Join(dir, naming.DatabaseFile)); err == nil {
		return folderCrawl, nil
	}
	return folderForeign, folderPlace(dir).explain(drivers.CheckFolder(dir))
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

// explainFolder is explain for errors that only a folder has.
func explainFolder(dir string, err error) error {
	switch {
	case errors.Is(err, local.ErrInUse):
		return fail(exitInUse, fmt.Errorf("the folder %s is in use: another process works on it.\n"+
			"Wait until it ends, or work in another folder (--data)", dir))
	case errors.Is(err, local.ErrVersion), errors.Is(err, wire.ErrVersion):
		return fmt.Errorf("the folder %s was not written by this version: %w.\n"+
			"Use the version that wrote it, or begin another crawl in another folder (--data)", dir, err)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fail(exitError, fmt.Errorf("the folder %s cannot be read or written: %w.\nChange its permissions, or give another folder with --data", dir, err))
	case errors.Is(err, crawl.ErrNoCrawl):
		return errNoCrawl(dir)
	}
	return err
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
