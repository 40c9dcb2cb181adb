package fsck

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"path"
	"runtime"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// readWARCs reads the WARC objects of a commit, and compares them with its page records.
// Objects are read one after another and verified side by side, which is nearly all the
// work of a check. Pages get the addresses that were asked for them.
func (c *checker) readWARCs(f *commit) {
	in := map[string][]*page{}
	for i := range f.pages {
		in[f.pages[i].WARC] = append(in[f.pages[i].WARC], &f.pages[i])
	}
	f.warcs = make([][]string, len(f.m.WARCs))
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, w := range f.m.WARCs {
		c.report.WARCs++
		if c.opt.WARCs == SomeWARCs && (c.report.WARCs-1)%sampleEvery != 0 {
			f.unread = true
			if !c.listed[w] {
				c.report.WARCsBad++
				c.damaged(w, "the object does not exist; %s names it", f.name)
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
		f.stored += int64(len(data))
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			f.warcs[i] = verify(w, data, in[w])
		})
	}
	wg.Wait()
}

// maxPerWARC bounds what is said of one object.
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
		if what := cmp.Or(differsRevisit(rec, pg.Page), differs(rec, pg.Page)); what != "" {
			say("record at %d: %s", rec.Offset, what)
		}
		if a, err := netip.ParseAddr(rec.IPAddress); err == nil {
			pg.asked = a.Unmap()
		}
	}
	for _, pg := range pages {
		if byOffset[pg.Offset] == pg {
			say("no response begins at %d, where %s should be", pg.Offset, pg.URL)
		}
	}
	return found
}

// differs says what of a response or revisit is not what its page record says.
func differs(rec *warc.Record, pg *blobschema.Page) string {
	status := uint16(0)
	if m, err := rec.HTTP(); err == nil {
		status = uint16(m.Status)
	}
	switch {
	case rec.TargetURI != pg.URL:
		return fmt.Sprintf("it is of %s, its page record of %s", rec.TargetURI, pg.URL)
	case rec.Length != pg.Length:
		return fmt.Sprintf("it has %d bytes, by the page record of %s %d", rec.Length, pg.URL, pg.Length)
	case status != pg.Status && (len(rec.Header) > 0 || pg.Outcome != blobschema.OutcomeUnchanged): // what is unchanged has no header
		return fmt.Sprintf("its status is %d, by the page record of %s %d", status, pg.URL, pg.Status)
	case rec.PayloadDigest != pg.Digest:
		return fmt.Sprintf("its digest is %s, by the page record of %s %s", rec.PayloadDigest, pg.URL, pg.Digest)
	case pg.Original == nil && int64(len(rec.Body)) != pg.BodyBytes:
		return fmt.Sprintf("its body has %d bytes, by the page record of %s %d", len(rec.Body), pg.URL, pg.BodyBytes)
	case !rec.Date.Equal(pg.Time.Truncate(time.Microsecond)):
		return fmt.Sprintf("its date is %s, by the page record of %s %s", rec.Date, pg.URL, pg.Time)
	}
	return ""
}

// differsRevisit says what of a record is not what its page record says of where the
// payload is: in a response here, with a revisit in the original that it refers to (WARC
// 1.1 section 6.7).
func differsRevisit(rec *warc.Record, pg *blobschema.Page) string {
	o := pg.Original
	if revisit := rec.Type == warc.TypeRevisit; revisit != (o != nil) {
		return fmt.Sprintf("it is a %s, by the page record of %s it is not", rec.Type, pg.URL)
	}
	if o == nil {
		return ""
	}
	profile := warc.ProfileIdenticalPayload
	if pg.Outcome == blobschema.OutcomeUnchanged {
		profile = warc.ProfileNotModified
	}
	switch {
	case rec.Profile != profile:
		return fmt.Sprintf("its profile is %s, for a page that is %s", rec.Profile, pg.Outcome)
	case rec.RefersToTargetURI != o.URL || !rec.RefersToDate.Equal(o.Time.Truncate(time.Microsecond)):
		return fmt.Sprintf("it refers to %s of %s, by the page record of %s to %s of %s", rec.RefersToTargetURI, rec.RefersToDate, pg.URL, o.URL, o.Time)
	case len(rec.Body) > 0:
		return fmt.Sprintf("it has a body of %d bytes, and refers to another", len(rec.Body))
	}
	return ""
}
