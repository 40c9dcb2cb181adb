package ranks

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// coder writes or reads a section. The functions below serve both directions, so that a format is described once.
type coder struct {
	out []byte
	in  *wire.Cursor // nil when writing
}

// packSection returns the compressed section that code writes.
func packSection(name string, code func(*coder)) (s wire.Section, err error) {
	var x coder
	code(&x)
	if len(x.out) > wire.MaxSection {
		return s, fmt.Errorf("%d bytes are above the bound of %d", len(x.out), wire.MaxSection)
	}
	return wire.Section{Name: name, Data: wire.AppendPacked(nil, x.out)}, nil
}

// readSection lets code read a section of packSection.
func readSection(p *wire.Pack, name string, code func(*coder)) error {
	raw, err := p.Unpacked(name)
	if err != nil {
		return err
	}
	x := coder{in: &wire.Cursor{Rest: raw}}
	code(&x)
	return x.in.End()
}

// numbered yields the section names with the numbers 0, 1 and so on that exist.
func numbered(p *wire.Pack, name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; p.Has(fmt.Sprint(name, i)) && yield(fmt.Sprint(name, i)); i++ {
		}
	}
}

// texts codes one text per entry of a list, of at most limit bytes.
func texts[E any](x *coder, list *[]E, limit uint64, field func(*E) *string) {
	if x.in == nil {
		x.out = wire.AppendTexts(x.out, len(*list), func(i int) string { return *field(&(*list)[i]) })
		return
	}
	all := x.in.Texts(limit)
	*list = make([]E, len(all))
	for i, s := range all {
		*field(&(*list)[i]) = s
	}
}

// fingerprints codes one number of 8 bytes per entry of a list.
func fingerprints[E any](x *coder, list *[]E, field func(*E) *uint64) {
	if x.in == nil {
		x.out = binary.AppendUvarint(x.out, uint64(len(*list)))
		for i := range *list {
			x.out = binary.LittleEndian.AppendUint64(x.out, *field(&(*list)[i]))
		}
		return
	}
	*list = make([]E, x.in.Count(8))
	for i := range *list {
		*field(&(*list)[i]) = x.in.Uint64()
	}
}

// column codes one number per entry, of at most limit.
func column[E any, N ~uint8 | ~uint32](x *coder, list []E, limit uint64, field func(*E) *N) {
	if x.in == nil {
		x.out = wire.AppendColumn(x.out, len(list), func(i int) uint64 { return uint64(*field(&list[i])) })
		return
	}
	x.in.Column(len(list), limit, func(i int, v uint64) { *field(&list[i]) = N(v) })
}

// places codes one index per entry, into another list of n entries.
func places[E any](x *coder, list []E, n int, field func(*E) *uint32) {
	if n == 0 && len(list) > 0 && x.in != nil {
		x.in.Fail("%d places in no list", len(list))
	}
	column(x, list, uint64(max(n, 1)-1), field)
}

func self[T any](v *T) *T { return v }

// appendNumbers appends numbers of a fixed width.
func appendNumbers[T uint32 | uint64 | float32 | float64](dst []byte, list []T) []byte {
	dst, err := binary.Append(dst, binary.LittleEndian, list)
	if err != nil {
		panic(err) // unreachable: the types have a fixed width
	}
	return dst
}

// sectionNumbers returns a section of appendNumbers.
func sectionNumbers[T uint32 | uint64 | float64](p *wire.Pack, section string) ([]T, error) {
	b, err := p.Section(section)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(b)/binary.Size(T(0)))
	if n, err := binary.Decode(b, binary.LittleEndian, list); err != nil || n != len(b) {
		return nil, wire.Damaged("section %s of %d bytes", section, len(b))
	}
	return list, nil
}

// name wraps an error, unless it is nil, with what failed.
func name(err *error, what string) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", what, *err)
	}
}
