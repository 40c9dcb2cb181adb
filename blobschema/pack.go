package blobschema

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Section is a named part of a pack.
type Section struct {
	Name string // at most 32 bytes, unlike the others of the pack
	Data []byte
}

// A pack is
//
//	"OWPK" version, the sections' bytes one after another,
//	table: count, then per section: name, length (both varint-prefixed), CRC-32C,
//	tail: length of the table, CRC-32C of header, table and that length, "KPWO"
//
// Every byte is under a checksum. Offsets are not stored but added up, so that no
// two sections can overlap.
const (
	packMagic      = "OWPK"
	packEnd        = "KPWO"
	packHeader     = len(packMagic) + 1
	packTail       = 4 + 4 + len(packEnd)
	maxSections    = 64
	maxSectionName = 32
)

// AppendPack appends a pack of the sections, in their order. The first begins
// [PackHeader] bytes into the pack.
func AppendPack(dst []byte, sections []Section) []byte {
	start, size := len(dst), packHeader+packTail+1
	for _, s := range sections {
		size += len(s.Data) + len(s.Name) + 16
	}
	dst = slices.Grow(dst, size)
	dst = append(append(dst, packMagic...), Version)
	for _, s := range sections {
		dst = append(dst, s.Data...)
	}
	table := len(dst)
	dst = binary.AppendUvarint(dst, uint64(len(sections)))
	for _, s := range sections {
		dst = appendPrefixed(dst, s.Name)
		dst = binary.AppendUvarint(dst, uint64(len(s.Data)))
		dst = binary.LittleEndian.AppendUint32(dst, checksum(s.Data))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-table))
	dst = binary.LittleEndian.AppendUint32(dst, packSum(dst[start:start+packHeader], dst[table:]))
	return append(dst, packEnd...)
}

func packSum(header, table []byte) uint32 { return checksum(slices.Concat(header, table)) }

// Pack is an opened pack: a view of its bytes. It is safe for concurrent use.
type Pack struct {
	data     []byte
	sections []packSection
}

type packSection struct {
	name        string
	off, length int64
	sum         uint32
}

// OpenPack reads the table of a whole pack. The pack keeps data, which must not
// change any more.
func OpenPack(data []byte) (*Pack, error) {
	if len(data) < packHeader+packTail || string(data[:len(packMagic)]) != packMagic {
		return nil, fmt.Errorf("open pack: %w", damaged("no pack of %d bytes", len(data)))
	}
	if v := data[packHeader-1]; v != Version {
		return nil, fmt.Errorf("open pack: %w: %d", ErrVersion, v)
	}
	tail := cursor{b: data[len(data)-packTail:]}
	size, sum := int64(tail.uint32()), tail.uint32()
	table := int64(len(data)-packTail) - size
	if string(tail.b) != packEnd || table < int64(packHeader) {
		return nil, fmt.Errorf("open pack: %w", damaged("tail"))
	}
	if packSum(data[:packHeader], data[table:len(data)-packTail+4]) != sum {
		return nil, fmt.Errorf("open pack: %w", damaged("checksum of the table"))
	}
	p := &Pack{data: data}
	c := cursor{b: data[table : len(data)-packTail]}
	off := int64(packHeader)
	for range c.uvarint(maxSections) {
		s := packSection{name: string(c.prefixed(maxSectionName)), off: off}
		s.length = int64(c.uvarint(uint64(table - off)))
		s.sum = c.uint32()
		off += s.length
		if p.find(s.name) != nil {
			c.fail("two sections %q", s.name)
		}
		p.sections = append(p.sections, s)
	}
	if off != table {
		c.fail("sections of %d bytes in %d", off, table)
	}
	if err := c.end(); err != nil {
		return nil, fmt.Errorf("open pack: %w", err)
	}
	return p, nil
}

func (p *Pack) find(name string) *packSection {
	for i := range p.sections {
		if p.sections[i].name == name {
			return &p.sections[i]
		}
	}
	return nil
}

// Section returns a section's bytes, a view of the pack's, once their checksum is
// found right. A section that is not there is an error.
func (p *Pack) Section(name string) ([]byte, error) {
	s := p.find(name)
	if s == nil {
		return nil, fmt.Errorf("read section %s: %w", name, damaged("not in the pack"))
	}
	b := p.data[s.off : s.off+s.length : s.off+s.length]
	if checksum(b) != s.sum {
		return nil, fmt.Errorf("read section %s: %w", name, damaged("checksum"))
	}
	return b, nil
}

// SectionAt says where in the pack a section's bytes are. The offset of a section
// that is not there is 0, which no section has.
func (p *Pack) SectionAt(name string) (off, length int64) {
	if s := p.find(name); s != nil {
		return s.off, s.length
	}
	return 0, 0
}
