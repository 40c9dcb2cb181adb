package blobschema

// QueuedFlags mark a pending URL.
type QueuedFlags uint8

// The flags. The upper four bits count hops, see [QueuedFlags.NextHop].
const (
	FlagSeed    QueuedFlags = 1 << iota // a seed, or a URL that a seed redirects to (at most maxHops hops)
	FlagSitemap                         // a sitemap of any media type
	FlagAgain                           // requested by the operator, in mail only: the owner sets the generation
	FlagPlaced                          // Key is the address to which the URL's name is pinned, and is part of mail

	// FlagListed replaces the hops of a URL that only sitemaps list. Such URLs may use half of a cap.
	FlagListed QueuedFlags = 15 << 4
)

// Listed reports whether only sitemaps list the URL.
func (f QueuedFlags) Listed() bool { return f>>4 == FlagListed>>4 }

// maxHops bounds the chain of redirects from a seed that widens the scope, and the
// nesting of sitemaps.
const maxHops = 5

// Hops returns the number of redirects or sitemaps that led to a URL, up to 14.
func (f QueuedFlags) Hops() int {
	if f.Listed() {
		return 0
	}
	return int(f >> 4)
}

// Join returns the flags of a URL that was found with f and with g: all marks, and the fewer hops. If only one of them
// is marked as a seed or sitemap, its hops count. Join is commutative, associative and idempotent.
func (f QueuedFlags) Join(g QueuedFlags) QueuedFlags {
	const hands = FlagSeed | FlagSitemap
	hops := min(f>>4, g>>4)
	switch {
	case f&hands != 0 && g&hands == 0:
		hops = f >> 4
	case f&hands == 0 && g&hands != 0:
		hops = g >> 4
	}
	return (f|g)&0xf | hops<<4
}

// NextHop returns the flags of a URL to which a URL with flags f redirects, or which it lists as a
// sitemap: one hop more, and the marks of a seed and a sitemap up to maxHops.
func (f QueuedFlags) NextHop() QueuedFlags {
	hops := min(f.Hops()+1, 14)
	next := QueuedFlags(hops << 4)
	if hops <= maxHops {
		next |= f & (FlagSeed | FlagSitemap)
	}
	return next
}
