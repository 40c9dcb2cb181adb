package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// maxFiles bounds what is copied.
const maxFiles = 1_000_000

// copyTree copies the files below src to dst, which does not exist yet: with their
// times, which servers make validators of, and with files in place of symbolic links.
func copyTree(dst, src string) (files int, err error) {
	c := copier{}
	err = c.folder(dst, src)
	return c.files, err
}

type copier struct {
	files int
	above []string // the folder being copied and those around it, links resolved
}

func (c *copier) folder(dst, src string) error {
	real, err := filepath.EvalSymlinks(src)
	if err != nil {
		return err
	}
	if slices.Contains(c.above, real) {
		return nil // a link to a folder around it
	}
	c.above = append(c.above, real)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		from, to := filepath.Join(src, e.Name()), filepath.Join(dst, e.Name())
		info, err := os.Stat(from)
		switch {
		case errors.Is(err, os.ErrNotExist): // a link to nothing
		case err != nil:
			return err
		case info.IsDir():
			if err := c.folder(to, from); err != nil {
				return err
			}
		case info.Mode().IsRegular():
			if c.files++; c.files > maxFiles {
				return fmt.Errorf("there are more than %d files", maxFiles)
			}
			if err := copyFile(to, from, info); err != nil {
				return err
			}
		}
	}
	return nil
}

func copyFile(dst, src string, info os.FileInfo) error {
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close())
	}
	return errors.Join(out.Close(), os.Chtimes(dst, info.ModTime(), info.ModTime()))
}
