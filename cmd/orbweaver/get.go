package main

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

type getFlags struct {
	reading
	headers, warc, raw bool
	generation         int
}

func newGet() *cobra.Command {
	var f getFlags
	cmd := f.newCommand("get", one("URL"), func(cmd *cobra.Command, args []string) error {
		u, err := parseURL(args[0])
		if err == nil {
			err = f.check()
		}
		if err != nil {
			return err
		}
		return f.read(cmd.Context(), func(v *view.View) error {
			history, err := v.History(cmd.Context(), u)
			if err != nil {
				return err
			}
			pg, note, err := f.choose(u, history)
			if err != nil {
				return err
			}
			if note != "" {
				warn(cmd.ErrOrStderr(), "%s", note)
			}
			return f.write(cmd, v, pg)
		})
	})
	f.registerCrawl(cmd)
	cmd.Flags().BoolVar(&f.headers, "headers", false, "write the status line and header instead of the body")
	cmd.Flags().BoolVar(&f.warc, "warc", false, "write the WARC record as it is stored")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "leave the body compressed if it was sent so")
	cmd.Flags().IntVar(&f.generation, "generation", -1,
		"the answer of this generation: 0 for the first one, 1 for the first revisit; -1 for the latest")
	cmd.Flags().Lookup("json").Usage = "write the page record instead of the body"
	return cmd
}

// check refuses two formats together.
func (f *getFlags) check() error {
	n := 0
	for _, set := range []bool{f.headers, f.warc, f.raw, f.json} {
		if set {
			n++
		}
	}
	if n > 1 {
		return usagef("give only one of --headers, --warc, --raw and --json")
	}
	return nil
}

// choose returns a record of a URL from its history, the latest first: the record of --generation, or else
// the latest one with an answer. The note says that a later request got no answer. With --json choose
// returns the latest record, with or without an answer.
func (f *getFlags) choose(u weburl.URL, history []blobschema.Page) (pg blobschema.Page, note string, err error) {
	if f.generation >= 0 {
		history = slices.DeleteFunc(slices.Clone(history), func(p blobschema.Page) bool { return int64(p.Generation) != int64(f.generation) })
	}
	if len(history) == 0 {
		return pg, "", fmt.Errorf("nothing is stored of %s; see 'orbweaver explain %[1]s'", u)
	}
	answered := slices.IndexFunc(history, func(p blobschema.Page) bool { return p.WARC != "" })
	if answered <= 0 || f.json {
		return history[0], "", nil
	}
	note = fmt.Sprintf("this answer is of %s; the request at %s got none: %s",
		at(history[answered].Time), at(history[0].Time), history[0].Outcome)
	return history[answered], note, nil
}

// write writes the part of the answer that the flags select.
func (f *getFlags) write(cmd *cobra.Command, v *view.View, pg blobschema.Page) error {
	out := cmd.OutOrStdout()
	if f.json {
		return writeJSON(out, pg)
	}
	if pg.WARC == "" {
		return fmt.Errorf("no answer of %s is stored: %s; see 'orbweaver explain %[1]s'", pg.URL, pg.Outcome)
	}
	rec, err := v.Response(cmd.Context(), pg) // it is verified in any case
	if err == nil && !f.warc && !f.headers {
		rec, err = v.Payload(cmd.Context(), pg)
	}
	if err != nil {
		return err
	}
	switch {
	case f.warc:
		data, err := v.Member(cmd.Context(), pg)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	case f.headers && len(rec.Header) == 0:
		return fmt.Errorf("no header is stored: the server said that nothing has changed since %s", at(pg.Payload().Time))
	case f.headers:
		_, err := out.Write(withoutControl(rec.Header))
		return err
	}
	if pg.Outcome != blobschema.OutcomeOK && pg.Original == nil {
		warn(cmd.ErrOrStderr(), "the answer has status %d", pg.Status)
	}
	if pg.Redirect != "" {
		warn(cmd.ErrOrStderr(), "it redirects to %s", pg.Redirect)
	}
	if pg.Truncated != "" {
		warn(cmd.ErrOrStderr(), "the body was cut when it was stored (%s)", pg.Truncated)
	}
	if f.raw {
		_, err := out.Write(rec.Body)
		return err
	}
	_, body, err := view.Body(rec)
	if err != nil {
		return fmt.Errorf("%w; use --raw", err)
	}
	_, err = out.Write(body)
	return err
}

// withoutControl replaces control characters, except tabs and line ends, by spaces: a stored header holds what the server sent,
// and the output may be a terminal.
func withoutControl(header []byte) []byte {
	clean := bytes.Clone(header)
	for i, c := range clean {
		if c < ' ' && c != '\t' && c != '\r' && c != '\n' || c == 0x7f {
			clean[i] = ' '
		}
	}
	return clean
}
