package fsck

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// limit checks the limit of pages: no partition stores more than it was granted, and no
// more is granted than the limit. A grant is made before its pages are fetched, and a part
// that is given back was never used: so the record may be newer than the heads.
func limit(v *judge, fact any) {
	if _, ends := fact.(end); !ends || v.crawl.Settings.MaxPages <= 0 {
		return
	}
	key := naming.GrantsKey(v.id)
	g, found := record[blobschema.Grants](v.checker, key)
	if !found {
		v.must(v.bad > 0, key, "there is no record, but a limit of %d pages", v.crawl.Settings.MaxPages)
		return
	}
	var granted int64
	unused := false
	for _, p := range v.parts {
		n, pages := g.Granted[p.id], p.head.Totals.Pages
		granted, unused = granted+n, unused || pages < n
		v.must(pages <= n, key, "partition %d has %d pages and was granted %d", p.id, pages, n)
	}
	// An operator may lower the limit below the number of stored pages.
	v.must(granted <= g.Limit || !unused, key, "%d pages are granted of a limit of %d", granted, g.Limit)
}
