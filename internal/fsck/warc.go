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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// capture is a page record with what its WARC record adds: the address asked, if it says.
type capture struct {
	*blobschema.Page
	addr *netip.Addr
}

// checkWARCs checks the WARC objects of one commit, and that they hold what its page
// records say. Objects are read one after another and verified side by side, which
// is nearly all the work of a check; what is found is reported in their order. It
// returns the addresses that were asked for the pages, as far as they were read.
func (c *checker) checkWARCs(h *history, name string, m *blobschema.Manifest, pages []blobschema.Page) ([]netip.Addr, error) {
	in, addrs := map[string][]capture{}, make([]netip.Addr, len(pages))
	for i := range pages {
		if w := pages[i].WARC; w != "" {
			in[w] = append(in[w], capture{&pages[i], &addrs[i]})
			if !slices.Contains(m.WARCs, w) {
				c.violate("I4", name, "%s is in %s, which is no object of this commit", pages[i].URL, w)
			}
		}
	}
	found := make([][]string, len(m.WARCs))
	var wg sync.WaitGroup
	defer wg.Wait()
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, w := range m.WARCs {
		c.report.WARCs++
		c.checked["I4"]++
		if p, fence, _, err := naming.ParseWARC(w); err != nil || p != h.id || fence != m.Fence || !strings.HasPrefix(w, naming.WARCPrefix(c.id)) {
			c.violate("I4", name, "it names %s, which is not of its partition and fence", w)
		}
		if !c.name(w, name) {
			c.violate("I4", name, "it names %s, as %s does", w, c.named[w])
		}
		again, sample := h.takenOver(), c.report.WARCs-1
		if again {
			c.report.TakenOver++
			sample += c.next.Checks
		}
		if (again || c.opt.WARCs == SomeWARCs) && sample%sampleEvery != 0 {
			if !c.listed[w] {
				c.report.WARCsBad++
				c.violate("I6", w, "the object does not exist; %s names it", name)
			}
			continue
		}
		data, err := c.object(w, name)
		if err != nil {
			return nil, err
		}
		if data == nil {
			c.report.WARCsBad++
			h.unread = true
			continue
		}
		c.report.WARCsRead++
		c.checked["I6"] += int64(len(in[w]))
		if again {
			c.report.TakenOver--
		} else {
			h.read += int64(len(data))
		}
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			found[i] = verify(w, data, in[w])
		})
	}
	wg.Wait()
	for i, w := range m.WARCs {
		if len(found[i]) > 0 {
			c.report.WARCsRead--
			c.report.WARCsBad++
		}
		for _, what := range found[i] {
			c.violate("I6", w, "%s", what)
		}
	}
	c.progressPages(len(pages))
	return addrs, nil
}

// maxPerWARC bounds what is said of one object.
const maxPerWARC = 20

// verify checks one WARC object: every record's digests, and that its responses and
// revisits are those that pages names.
func verify(name string, data []byte, pages []capture) (found []string) {
	say := func(format string, args ...any) {
		if len(found) < maxPerWARC {
			found = append(found, fmt.Sprintf(format, args...))
		}
	}
	byOffset := make(map[int64]capture, len(pages))
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
			*pg.addr = a.Unmap()
		}
	}
	for _, pg := range pages {
		if byOffset[pg.Offset].Page == pg.Page {
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

// progressPages tells how many pages were read, now and then.
func (c *checker) progressPages(n int) {
	if c.opt.Progress != nil && n > 0 {
		done := 0
		for _, p := range c.parts {
			if p.done {
				done++
			}
		}
		c.opt.Progress(Progress{Phase: c.phase, Done: done, Total: len(c.parts), Pages: c.report.Pages})
	}
}
