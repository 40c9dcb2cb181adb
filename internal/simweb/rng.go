package simweb

import "math/bits"

// rng is SplitMix64 (Steele, Lea, Flood 2014). Its state is one word, so each page and each purpose can have
// its own generator. It gives the same numbers on every machine and with every release of Go.
type rng uint64

// Purposes of random numbers. Each has its own stream, so that drawing more for one does not change the others.
const (
	streamPreset = iota + 1
	streamText
	streamHost
	streamKind
	streamPath
	streamParent
	streamLinks
	streamBody
	streamDetail
	streamTarget
	streamShareOneRequest
	streamShareGzip
	streamShareChunked
	streamShareTrap
	streamShareRobots
	streamShareDown
	streamShareSitemap
	streamShareValidators
	streamUnlinked
	streamRequisites
)

func draw(seed uint64, host, page int, stream uint64) rng {
	r := rng(seed)
	s := r.next() ^ uint64(uint32(host))<<32 ^ uint64(uint32(page))
	r = rng(s)
	return rng(r.next() ^ stream*0xd1342543de82ef95)
}

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number in [0, n); 0 if n is not positive.
func (r *rng) below(n int) int {
	if n <= 0 {
		r.next()
		return 0
	}
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// unit returns a number in [0, 1).
func (r *rng) unit() float64 { return float64(r.next()>>11) / (1 << 53) }

// skewed returns a number in [0, n) that is u^skew*n for a uniform u: with a skew of 2 half of them are in the
// first quarter.
func (r *rng) skewed(n, skew int) int {
	u := r.unit()
	p := u
	for range skew - 1 {
		p = float64(p * u)
	}
	return int(float64(p) * float64(n))
}

// about returns a number between 0.5 and 1.5 times mean.
func (r *rng) about(mean int) int { return mean/2 + r.below(mean+1) }
