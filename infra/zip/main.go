// Command zip packs one executable for AWS Lambda: a zip file that holds only "bootstrap". Its bytes depend on the
// executable alone, not on its name, times or mode, so that a deployment changes only what has changed.
//
//	go run ./infra/zip OUT.zip EXECUTABLE
package main

import (
	"archive/zip"
	"compress/flate"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: zip OUT.zip EXECUTABLE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "zip: "+err.Error())
		os.Exit(1)
	}
}

// run writes the zip beside its final name first, so that one that is there is whole.
func run(out, executable string) error {
	in, err := os.Open(executable)
	if err != nil {
		return err
	}
	defer in.Close()
	f, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out))
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // of no effect once it is renamed
	if err := pack(f, in); err != nil {
		f.Close()
		return fmt.Errorf("pack %s: %w", executable, err)
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), out)
}

// pack writes the zip of one executable.
func pack(w io.Writer, executable io.Reader) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{
		Name:     "bootstrap",
		Method:   zip.Deflate,
		Modified: time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC), // the earliest that zip knows
	}
	h.SetMode(0o755)
	f, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, executable); err != nil {
		return err
	}
	return z.Close()
}
