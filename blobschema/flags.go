package blobschema

// QueuedFlags mark a pending URL.
type QueuedFlags uint16

// The flags. Bits 4 to 7 count hops, see [QueuedFlags.NextHop].
const (
	FlagSeed    QueuedFlags = 1 << iota // a seed, or a URL that a seed redirects to (at most maxHops hops)
	FlagSitemap                         // a sitemap of any media type
	FlagAgain                           // requested by the operator, in mail only: the owner sets the generation
	FlagPlaced                          // Key is the address to which the URL's name is pinned, and is part of mail

	// FlagListed replaces the hops of a URL that only sitemaps list. Such URLs may use half of a cap.
	FlagListed QueuedFlags = 15 << 4

	// FlagRequisite marks a URL that was found only as something that a page needs to be displayed. It may be
	// out of scope, and its own links are followed only as far as the page needs them.
	FlagRequisite QueuedFlags = 1 << 8
)

// Listed reports whether only sitemaps list the URL.
func (f QueuedFlags) Listed() bool { return f&hopBits == FlagListed }

const (
	hopBits  = 15 << 4
	flagBits = 1<<9 - 1 // all flags that are stored
)

// Requisite reports whether the URL was found only as a requisite of pages.
func (f QueuedFlags) Requisite() bool { return f&FlagRequisite != 0 }

// maxHops bounds the chain of redirects from a seed that widens the scope, and the
// nesting of sitemaps.
const maxHops = 5

// Hops returns the number of redirects, sitemaps or style sheets that led to a URL, up to 14.
func (f QueuedFlags) Hops() int {
	if f.Listed() {
		return 0
	}
	return int(f & hopBits >> 4)
}

// Join returns the flags of a URL that was found with f and with g: all marks, and the fewer hops. If only one of them
// is marked as a seed or sitemap, its hops count. A find as a requisite adds nothing to a find as a page.
// Join is commutative, associative and idempotent.
func (f QueuedFlags) Join(g QueuedFlags) QueuedFlags {
	const hands = FlagSeed | FlagSitemap
	hops := min(f&hopBits, g&hopBits)
	switch {
	case f.Requisite() != g.Requisite():
		if f.Requisite() {
			f, g = g, f
		}
		return f | g&15
	case f&hands != 0 && g&hands == 0:
		hops = f & hopBits
	case f&hands == 0 && g&hands != 0:
		hops = g & hopBits
	}
	return (f|g)&^hopBits | hops
}

// NextHop returns the flags of a URL to which a URL with flags f redirects, or which it lists as a
// sitemap, or needs as a requisite: one hop more, the mark of a requisite, and the marks of a seed and a sitemap
// up to maxHops.
func (f QueuedFlags) NextHop() QueuedFlags {
	hops := min(f.Hops()+1, 14)
	next := QueuedFlags(hops<<4) | f&FlagRequisite
	if hops <= maxHops {
		next |= f & (FlagSeed | FlagSitemap)
	}
	return next
}
