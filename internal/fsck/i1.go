package fsck

// i1 checks that every stored URL, unit and site is canonical: it canonicalises to itself.
func i1(v *judge, fact any) {
	url := func(a *address, where string) {
		v.Checked++
		if a.err != nil {
			v.violate(where, "stored URL %q %v", a.text, a.err)
		}
	}
	switch f := fact.(type) {
	case *batch:
		for i := range f.urls {
			url(&f.urls[i], f.object)
		}
	case *block:
		for i := range f.urls {
			url(&f.urls[i], f.object)
		}
		for _, h := range f.hosts {
			err := v.checkUnitName(h.Host)
			v.must(err == nil, f.object, "stored host %q: %v", h.Host, err)
		}
	case *commit:
		for i := range f.pages {
			url(&f.pages[i].address, f.name)
		}
		for _, h := range f.hosts {
			err := v.checkUnit(h.Host)
			v.must(err == nil, f.name, "observed host %q: %v", h.Host, err)
		}
	case *outside:
		for i := range f.list {
			a := parse(f.list[i].URL)
			url(&a, f.name)
		}
	case *letter:
		for i := range f.urls {
			url(&f.urls[i], f.name)
		}
	case *located:
		if f.url != nil {
			url(f.url, f.object)
		}
	}
}
