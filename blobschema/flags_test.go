package blobschema

import "testing"

func TestFlagsJoin(t *testing.T) {
	var all []QueuedFlags
	for f := range FlagRequisite * 2 {
		if !f.Requisite() || f&(FlagSeed|FlagSitemap) == 0 { // requisites are neither
			all = append(all, f)
		}
	}
	for _, a := range all {
		if a.Join(a) != a {
			t.Fatalf("%08b joined with itself is %08b", a, a.Join(a))
		}
		for _, b := range all {
			ab := a.Join(b)
			if ab != b.Join(a) || ab.Join(a) != ab || ab&0xf != (a|b)&0xf {
				t.Fatalf("%08b and %08b: %08b, or %08b", a, b, ab, b.Join(a))
			}
			if !ab.Requisite() && a.Requisite() && ab.Hops() != b.Hops() {
				t.Fatalf("%09b and %09b: %09b has the hops of a requisite", a, b, ab)
			}
			for i := 0; i < len(all); i += 3 {
				c := all[i]
				if ab.Join(c) != a.Join(b.Join(c)) {
					t.Fatalf("%08b, %08b and %08b: %08b, or %08b", a, b, c, ab.Join(c), a.Join(b.Join(c)))
				}
			}
		}
	}
	if got := (FlagSeed | 3<<4).Join(0); got != FlagSeed|3<<4 {
		t.Errorf("a seed's third hop that a page links to has the flags %08b", got)
	}
}

func TestNextHop(t *testing.T) {
	f := FlagSeed | FlagPlaced
	for hop := 1; hop <= 20; hop++ {
		f = f.NextHop()
		if f.Hops() != min(hop, 14) || f&FlagSeed != 0 != (hop <= 5) || f&FlagPlaced != 0 {
			t.Errorf("hop %d has the flags %08b", hop, f)
		}
	}
}
