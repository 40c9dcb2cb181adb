package fsck

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// readWARCs reads the WARC objects of a commit one after another, and begins to compare them with its page records, in
// parallel with those of other commits: this is most of the work of a check. verified waits until it is done. Then the
// addresses that pages were requested at are set too.
func (c *checker) readWARCs(f *commit) (verified func()) {
	in := map[string][]*page{}
	for i := range f.pages {
		in[f.pages[i].WARC] = append(in[f.pages[i].WARC], &f.pages[i])
	}
	f.warcs = make([][]string, len(f.m.WARCs))
	var wg sync.WaitGroup
	for i, w := range f.m.WARCs {
		c.report.WARCs++
		if c.opt.Quick && (c.report.WARCs-1)%sampleEvery != 0 {
			f.unread = true
			if !c.exists(w, f.name) {
				c.report.WARCsBad++
			}
			continue
		}
		data, ok := c.object(w, f.name)
		if !ok {
			c.report.WARCsBad++
			f.unread = true
			continue
		}
		c.report.WARCsRead++
		c.judge("I6").Checked += int64(len(in[w]))
		f.counted.Stored += int64(len(data))
		c.verifying <- struct{}{}
		wg.Go(func() {
			defer func() { <-c.verifying }()
			f.warcs[i] = verify(w, data, in[w])
		})
	}
	return func() {
		wg.Wait()
		for _, faults := range f.warcs {
			if len(faults) > 0 {
				c.report.WARCsBad++
				c.report.WARCsRead--
			}
		}
	}
}

// maxPerWARC bounds the messages about one object.
const maxPerWARC = 20

// verify checks one WARC object: every record's digests, and that its responses and
// revisits are those that pages names.
func verify(name string, data []byte, pages []*page) (found []string) {
	say := func(format string, args ...any) {
		if len(found) < maxPerWARC {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	byOffset := make(map[int64]*page, len(pages))
	for _, pg := range pages {
		if old, ok := byOffset[pg.Offset]; ok {
			say("two page records name the record at %d: %s and %s", pg.Offset, old.URL, pg.URL)
		}
		byOffset[pg.Offset] = pg
	}
	r := warc.NewReader(bytes.NewReader(data))
	for first := true; ; first = false {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			say("%v", err)
			return found // the rest cannot be read, and that is one damage, not many
		}
		if first && (rec.Type != warc.TypeInfo || path.Base(rec.Filename) != path.Base(name)) {
			say("it begins with a %s record of file %q", rec.Type, rec.Filename)
		}
		if err := rec.Verify(); err != nil {
			say("record at %d: %v", rec.Offset, err)
		}
		if rec.Type != warc.TypeResponse && rec.Type != warc.TypeRevisit {
			continue
		}
		pg, ok := byOffset[rec.Offset]
		if !ok {
			say("the %s at %d, of %s, has no page record", rec.Type, rec.Offset, rec.TargetURI)
			continue
		}
		delete(byOffset, rec.Offset)
		if what := differs(rec, pg.Page); what != "" {
			say("record at %d: %s", rec.Offset, what)
		}
		if a, err := netip.ParseAddr(rec.IPAddress); err == nil {
			pg.contacted = a.Unmap()
		}
	}
	for _, pg := range pages {
		if byOffset[pg.Offset] == pg {
			say("no response begins at %d, where %s should be", pg.Offset, pg.URL)
		}
	}
	return found
}

// differs says what of a response or revisit is not what its page record says. A revisit has
// no body, and refers to the original that has its payload (WARC 1.1, section 6.7).
func differs(rec *warc.Record, pg *blobschema.Page) string {
	kind, profile, of, body := warc.TypeResponse, "", blobschema.Original{}, pg.BodyBytes
	if pg.Original != nil {
		kind, profile, of, body = warc.TypeRevisit, warc.ProfileIdenticalPayload, *pg.Original, 0
	}
	status := uint16(0)
	if pg.Outcome == blobschema.OutcomeUnchanged {
		profile = warc.ProfileNotModified
		if len(rec.Header) == 0 {
			status = pg.Status // it may have no header
		}
	}
	if m, err := rec.HTTP(); err == nil {
		status = uint16(m.Status)
	}
	instant := func(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
	for _, f := range []struct {
		what     string
		is, says any
	}{
		{"type", rec.Type, kind}, {"profile", rec.Profile, profile},
		{"original", rec.RefersToTargetURI, of.URL}, {"original's date", instant(rec.RefersToDate), instant(of.Time)},
		{"URL", rec.TargetURI, pg.URL}, {"date", instant(rec.Date), instant(pg.Time)}, {"length", rec.Length, pg.Length},
		{"status", status, pg.Status}, {"digest", rec.PayloadDigest, pg.Digest}, {"size of the body", int64(len(rec.Body)), body},
	} {
		if f.is != f.says {
			return fmt.Sprintf("its %s is %v, by the page record of %s %v", f.what, f.is, pg.URL, f.says)
		}
	}
	return ""
}
