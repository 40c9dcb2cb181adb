package partition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Slots is a set of slots, in ascending order. Its text is a list of slots and of
// ranges with their step, "3,8-15,100-400/4": short for slots that were dealt in turn, and
// easy to write by hand.
type Slots []Slot

// minRange is the least number of slots in equal steps that form a range.
const minRange = 3

// SlotsOf returns the set of some slots in any order.
func SlotsOf(list []Slot) Slots {
	out := slices.Clone(list)
	slices.Sort(out)
	return slices.Compact(out)
}

// Has reports whether s is in the set.
func (l Slots) Has(s Slot) bool {
	_, ok := slices.BinarySearch(l, s)
	return ok
}

// String returns the set as text. Equal sets have equal texts.
func (l Slots) String() string {
	var b strings.Builder
	for i := 0; i < len(l); {
		if i > 0 {
			b.WriteByte(',')
		}
		n, step := 1, Slot(0)
		if i+1 < len(l) {
			step = l[i+1] - l[i]
			for i+n < len(l) && l[i+n]-l[i+n-1] == step {
				n++
			}
		}
		if n < minRange {
			n = 1
		}
		b.WriteString(strconv.FormatUint(uint64(l[i]), 10))
		if n > 1 {
			fmt.Fprintf(&b, "-%d", l[i+n-1])
			if step > 1 {
				fmt.Fprintf(&b, "/%d", step)
			}
		}
		i += n
	}
	return b.String()
}

var errSlots = errors.New("not a list of slots like 3,8-15,100-400/4")

// ParseSlots parses a set of slots. Slots and ranges may come in any order, and overlap.
func ParseSlots(text string) (Slots, error) {
	var out Slots
	if text == "" {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		first, rest, ranged := strings.Cut(strings.TrimSpace(item), "-")
		a, err := parseSlot(first)
		if err != nil {
			return nil, err
		}
		if !ranged {
			out = append(out, a)
			continue
		}
		last, by, stepped := strings.Cut(rest, "/")
		b, err := parseSlot(last)
		if err != nil {
			return nil, err
		}
		step := Slot(1)
		if stepped {
			if step, err = parseSlot(by); err != nil {
				return nil, err
			}
		}
		if step == 0 || b < a || (b-a)%step != 0 {
			return nil, fmt.Errorf("%w: %.40q", errSlots, item)
		}
		for s := a; s <= b; s += step {
			out = append(out, s)
		}
		if len(out) > 4*MaxSlots { // ranges overlap: there are at most MaxSlots slots
			out = SlotsOf(out)
		}
	}
	return SlotsOf(out), nil
}

func parseSlot(s string) (Slot, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n >= MaxSlots {
		return 0, fmt.Errorf("%w: %.40q", errSlots, s)
	}
	return Slot(n), nil
}

// MarshalText returns String as bytes.
func (l Slots) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText sets l to the result of ParseSlots.
func (l *Slots) UnmarshalText(b []byte) error {
	got, err := ParseSlots(string(b))
	if err != nil {
		return err
	}
	*l = got
	return nil
}
