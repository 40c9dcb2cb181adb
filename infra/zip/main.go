// Command zip packs one executable for AWS Lambda: a zip file that holds only "bootstrap". Its bytes depend on the
// executable alone, not on its name, times or mode, so that a deployment changes only what has changed.
//
//	go run ./infra/zip OUT.zip EXECUTABLE
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"os"
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

// run packs in memory, so that a failure does not damage the previous zip.
func run(out, executable string) error {
	content, err := os.ReadFile(executable)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := pack(&b, content); err != nil {
		return fmt.Errorf("pack %s: %w", executable, err)
	}
	return os.WriteFile(out, b.Bytes(), 0o644)
}

// pack writes the zip of one executable.
func pack(w io.Writer, executable []byte) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	h := &zip.FileHeader{
		Name:     "bootstrap",
		Method:   zip.Deflate,
		Modified: time.Date(1980, time.January, 1, 0, 0, 0, 0, time.UTC), // the earliest time in a zip
	}
	h.SetMode(0o755)
	f, err := z.CreateHeader(h)
	if err != nil {
		return err
	}
	if _, err := f.Write(executable); err != nil {
		return err
	}
	return z.Close()
}
