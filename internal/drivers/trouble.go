package drivers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// CheckFolder returns ErrDamaged if a folder has lost its database. It changes nothing.
func CheckFolder(dir string) error {
	info, err := os.Stat(filepath.Join(dir, naming.DatabaseFile))
	if err == nil && info.Size() > 0 {
		return nil
	}
	return checkLost(dir)
}

// openWhole opens a folder, and returns ErrDamaged if either its table or its objects are gone.
func openWhole(dir string, opts Options, open func(string, Options) (*Store, error)) (*Store, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	s, err := open(dir, opts)
	if err != nil {
		return nil, err
	}
	if s.Empty() {
		err = checkLost(dir)
	} else if _, noBlobs := os.Stat(filepath.Join(dir, naming.ObjectsFolder)); errors.Is(noBlobs, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it has records of a crawl, but %s is missing", ErrDamaged, naming.ObjectsFolder)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// checkLost is called when the table of a folder is missing or empty. It returns ErrDamaged if
// the folder has commits: a step makes them only after it has written to the table, and a new crawl would
// hide the old one. Seeds may come before the first record, so a crash can leave them alone.
func checkLost(dir string) error {
	commits, err := fs.Glob(os.DirFS(filepath.Join(dir, naming.ObjectsFolder)), naming.CommitGlob)
	if err != nil || len(commits) == 0 {
		return err
	}
	crawl, _, _ := strings.Cut(commits[0], "/")
	return fmt.Errorf("%w: %s is missing or empty, but %s holds crawl %s", ErrDamaged, naming.DatabaseFile, naming.ObjectsFolder, crawl)
}
