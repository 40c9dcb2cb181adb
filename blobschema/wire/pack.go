package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Section is a named part of a pack.
type Section struct {
	Name string // at most 32 bytes, unique in the pack
	Data []byte
}

// A pack is
//
//	"OWPK" version, the sections' bytes one after another,
//	table: count, then per section: name, length (both varint-prefixed), CRC-32C,
//	tail: length of the table, CRC-32C of header, table and that length, "KPWO"
//
// Checksums cover every byte. Offsets are not stored but computed, so that no
// two sections can overlap.
const (
	packMagic      = "OWPK"
	packEnd        = "KPWO"
	packTail       = 4 + 4 + len(packEnd)
	maxSections    = 64
	maxSectionName = 32
)

// Version is the version of every format in this package. A folder or table
// written by another version is refused at the start, never guessed at.
const Version = 5

// HeaderSize is the number of bytes before the first section.
const HeaderSize = len(packMagic) + 1

// Append appends a pack of the sections, in their order. The first begins
// [HeaderSize] bytes into the pack.
func Append(dst []byte, sections []Section) []byte {
	start, size := len(dst), HeaderSize+packTail+1
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
		dst = AppendPrefixed(dst, s.Name)
		dst = binary.AppendUvarint(dst, uint64(len(s.Data)))
		dst = binary.LittleEndian.AppendUint32(dst, Checksum(s.Data))
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dst)-table))
	dst = binary.LittleEndian.AppendUint32(dst, packSum(dst[start:start+HeaderSize], dst[table:]))
	return append(dst, packEnd...)
}

func packSum(header, table []byte) uint32 { return Checksum(slices.Concat(header, table)) }

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

// Open reads the table of a whole pack. The pack keeps data, which must not
// change afterwards.
func Open(data []byte) (*Pack, error) {
	if len(data) < HeaderSize+packTail || string(data[:len(packMagic)]) != packMagic {
		return nil, fmt.Errorf("open pack: %w", Damaged("no pack of %d bytes", len(data)))
	}
	if v := data[HeaderSize-1]; v != Version {
		return nil, fmt.Errorf("open pack: %w: %d", ErrVersion, v)
	}
	tail := &Cursor{Rest: data[len(data)-packTail:]}
	size, sum := int64(tail.Uint32()), tail.Uint32()
	table := int64(len(data)-packTail) - size
	if string(tail.Rest) != packEnd || table < int64(HeaderSize) {
		return nil, fmt.Errorf("open pack: %w", Damaged("tail"))
	}
	if packSum(data[:HeaderSize], data[table:len(data)-packTail+4]) != sum {
		return nil, fmt.Errorf("open pack: %w", Damaged("checksum of the table"))
	}
	p := &Pack{data: data}
	c := &Cursor{Rest: data[table : len(data)-packTail]}
	off := int64(HeaderSize)
	for range c.Uvarint(maxSections) {
		s := packSection{name: string(c.Prefixed(maxSectionName)), off: off}
		s.length = int64(c.Uvarint(uint64(table - off)))
		s.sum = c.Uint32()
		off += s.length
		if p.find(s.name) != nil {
			c.Fail("two sections %q", s.name)
		}
		p.sections = append(p.sections, s)
	}
	if off != table {
		c.Fail("sections of %d bytes in %d", off, table)
	}
	if err := c.End(); err != nil {
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

// Section checks the checksum of a section and returns its bytes, a part of the pack. It
// returns an error if there is no such section.
func (p *Pack) Section(name string) ([]byte, error) {
	s := p.find(name)
	if s == nil {
		return nil, fmt.Errorf("read section %s: %w", name, Damaged("not in the pack"))
	}
	b := p.data[s.off : s.off+s.length : s.off+s.length]
	if Checksum(b) != s.sum {
		return nil, fmt.Errorf("read section %s: %w", name, Damaged("checksum"))
	}
	return b, nil
}

// Unpacked returns the argument of [AppendPacked] of a section, of at most [MaxSection] bytes.
func (p *Pack) Unpacked(name string) ([]byte, error) {
	b, err := p.Section(name)
	if err != nil {
		return nil, err
	}
	return Unpack(b, MaxSection)
}

// SectionAt returns the place of a section's bytes in the pack. If there is no such section, the
// offset is 0, which no section has.
func (p *Pack) SectionAt(name string) (off, length int64) {
	if s := p.find(name); s != nil {
		return s.off, s.length
	}
	return 0, 0
}

// Names returns the names of the sections, in their order.
func (p *Pack) Names() []string {
	names := make([]string, len(p.sections))
	for i := range p.sections {
		names[i] = p.sections[i].name
	}
	return names
}

// Has reports whether there is a section of that name.
func (p *Pack) Has(name string) bool { return p.find(name) != nil }
