package schedule

// QualityFirst asks for the best URL of all that may be requested: a politeness key is worth what its
// best URL is (Cao, Jiang, Singh, "quality").
type QualityFirst struct{ byQuality }

// Name is "quality".
func (QualityFirst) Name() string { return "quality" }

// KeyRank is the quality of the politeness key's best URL.
func (p QualityFirst) KeyRank(h *KeyView) float64 {
	for _, w := range h.Best(1) {
		return p.Quality(w.Rank)
	}
	return 0
}

// relevantFactor is what the quality of a relevant URL is multiplied with: as much as two or
// three links that lead to it more, or that it is three links nearer to a seed.
const relevantFactor = 4

// byQuality orders URLs by their quality, as source has it; nil is [Depth].
type byQuality struct{ source Quality }

func (p byQuality) quality() Quality {
	if p.source == nil {
		return Depth{}
	}
	return p.source
}

// URLRank falls as quality rises.
func (p byQuality) URLRank(c Candidate) uint32 {
	q := p.quality().Of(c)
	if c.Relevant {
		q *= relevantFactor
	}
	return rankOf(q)
}

// Found is the rank of the sum of both qualities if the source adds, else the lower rank.
func (p byQuality) Found(rank, again uint32) uint32 {
	if !p.Adds() || rank == 0 || again == 0 {
		return min(rank, again)
	}
	return rankOf(qualityOf(rank) + qualityOf(again))
}

// Quality is that of a rank.
func (byQuality) Quality(rank uint32) float64 {
	if rank == 0 {
		return 1
	}
	return qualityOf(rank)
}

// Adds is the source's.
func (p byQuality) Adds() bool { return p.quality().Adds() }
