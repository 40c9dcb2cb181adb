package fsck

// i1 checks that every stored URL, politeness key and site is canonical: it canonicalises to itself.
func i1(v *judge, fact any) {
	switch f := fact.(type) {
	case *urls:
		v.Checked += int64(len(f.list))
		for i := range f.list {
			v.canonical(&f.list[i], f.where)
		}
	case *page:
		v.Checked++
		v.canonical(&f.address, f.in.name)
	case *located:
		v.must(f.err == nil, f.object, "%s %q: %v", f.what, f.name, f.err)
	}
}

func (v *judge) canonical(a *address, where string) {
	if a.err != nil {
		v.violate(where, "stored URL %q %v", a.text, a.err)
	}
}
