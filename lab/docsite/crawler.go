package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
)

// A crawler is the orbweaver program, used from outside as anybody would.
type crawler struct {
	binary     string
	data       string    // its folder
	partitions int       // 0 for the program's default
	progress   io.Writer // what it does, for people
}

// summary is what of a run's summary is used; totals are of the whole crawl.
type summary struct {
	Reason string            `json:"reason"`
	Status int               `json:"status"`
	Totals blobschema.Totals `json:"totals"`

	// Requested is what came of each URL that recrawl was given.
	Requested []struct {
		URL    string `json:"url"`
		Result string `json:"result"`
	} `json:"requested"`
}

// event is a line of a run's output with --json.
type event struct {
	Event   string   `json:"event"`
	Summary *summary `json:"summary"`

	// of progress
	Seconds float64 `json:"seconds"`
	Pages   int64   `json:"pages"`
	Queue   int64   `json:"queue"`
}

// allowed is the network that the server is in.
const allowed = "--allow-net=127.0.0.1"

// crawl crawls from a URL until nothing is left to do.
func (c *crawler) crawl(ctx context.Context, home string) (*summary, error) {
	args := []string{"crawl", "--json", "--data", c.data, allowed, "--delay", "0s", "--scope", "host"}
	if c.partitions > 0 {
		args = append(args, "--partitions", strconv.Itoa(c.partitions))
	}
	return c.work(ctx, append(args, home), nil)
}

// recrawl asks once more for URLs.
func (c *crawler) recrawl(ctx context.Context, urls []string) (*summary, error) {
	return c.work(ctx, []string{"recrawl", "--json", "--data", c.data, allowed, "--urls", "-"}, strings.NewReader(strings.Join(urls, "\n")+"\n"))
}

// work runs a command that fetches, and tells now and then how far it is.
func (c *crawler) work(ctx context.Context, args []string, stdin io.Reader) (*summary, error) {
	var sum *summary
	err := c.run(ctx, args, stdin, func(out io.Reader) error {
		last := 0.0
		for lines := json.NewDecoder(out); ; {
			var e event
			if err := lines.Decode(&e); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			switch {
			case e.Summary != nil:
				sum = e.Summary
			case e.Event == "progress" && e.Seconds-last >= 5:
				last = e.Seconds
				fmt.Fprintf(c.progress, "  %3.0f s: %d pages, %d URLs waiting\n", e.Seconds, e.Pages, e.Queue)
			}
		}
	})
	switch {
	case err != nil:
		return nil, err
	case sum == nil:
		return nil, fmt.Errorf("%s: it gave no summary", args[0])
	}
	return sum, nil
}

// fsck returns what it found.
func (c *crawler) fsck(ctx context.Context) (wrong []string, err error) {
	var report struct {
		Found      int               `json:"found"`
		Violations []json.RawMessage `json:"violations"`
	}
	err = c.run(ctx, []string{"fsck", "--json", "--data", c.data}, nil, func(out io.Reader) error {
		return json.NewDecoder(out).Decode(&report)
	})
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && report.Found > 0 {
		err = nil // the findings say more than the status
	}
	for _, v := range report.Violations {
		wrong = append(wrong, string(v))
	}
	if report.Found > len(wrong) {
		wrong = append(wrong, fmt.Sprintf("and %d more", report.Found-len(wrong)))
	}
	return wrong, err
}

// pages returns all page records, those of earlier generations too.
func (c *crawler) pages(ctx context.Context) (all []blobschema.Page, err error) {
	err = c.run(ctx, []string{"export", "--format", "jsonl", "--history", "--data", c.data, "--out", "-"}, nil, func(out io.Reader) error {
		for lines := json.NewDecoder(out); ; {
			var p blobschema.Page
			if err := lines.Decode(&p); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			all = append(all, p)
		}
	})
	return all, err
}

// export writes WARC files and their index into a new folder.
func (c *crawler) export(ctx context.Context, dir string) error {
	return c.run(ctx, []string{"export", "--format", "warc", "--data", c.data, "--out", dir}, nil, nil)
}

// run runs a command, and has read read its output to the end. The error of the program
// says what it wrote to its standard error.
func (c *crawler) run(ctx context.Context, args []string, stdin io.Reader, read func(io.Reader) error) error {
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = stdin, &said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	var bad error
	if read != nil {
		bad = read(out)
	}
	_, _ = io.Copy(io.Discard, out) // so that it can end
	if err := errors.Join(cmd.Wait(), bad); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", filepath.Base(c.binary), args[0], err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
