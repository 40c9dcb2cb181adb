package partition_test

import (
	"slices"
	"testing"

	"github.com/orbweaver/orbweaver/partition"
)

func TestSlotsText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "3": "3", "3,4": "3,4", "5,4,3": "3-5", "8-15": "8-15", "0-12/4": "0-12/4", "1-9/2": "1-9/2",
		"0-5,3-7": "0-7", " 1, 2 ,3": "1-3", "65535": "65535",
	} {
		got, err := partition.ParseSlots(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		again, err := partition.ParseSlots(got.String())
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q became %v, and by way of %q %v (%v)", text, got, got.String(), again, err)
		}
		if got.String() != want {
			t.Errorf("%q is written %q, want %q", text, got.String(), want)
		}
	}
	for _, text := range []string{"x", "-1", "1-", "5-3", "65536", "1-4/0", "1-4/2", "1,,2", "1/2", "2-1", "1-x", "1-4/x", "99999999999999999999"} {
		if got, err := partition.ParseSlots(text); err == nil {
			t.Errorf("%q was taken for %v", text, got)
		}
	}
}

func TestSlotsEncoding(t *testing.T) {
	for _, text := range []string{"", "3", "3,8-15,100-400/4"} {
		var got partition.Slots
		if err := got.UnmarshalText([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if again, err := got.MarshalText(); err != nil || string(again) != text {
			t.Errorf("%q became %q, %v", text, again, err)
		}
		if got.Has(8) != (len(got) > 1) || got.Has(7) {
			t.Errorf("%q has 8: %v, 7: %v", text, got.Has(8), got.Has(7))
		}
		if err := got.UnmarshalText([]byte("x")); err == nil || got.String() != text {
			t.Errorf("invalid text is accepted: %v, %v", got, err)
		}
	}
}

// FuzzSlots checks that ParseSlots neither panics nor grows without bound, and that accepted slots are stored the same.
func FuzzSlots(f *testing.F) {
	for _, s := range []string{"3,8-15,100-400/4", "0-65535,0-65535,0-65535", "1-3/2", ",", "5-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := partition.ParseSlots(text)
		if err != nil {
			return
		}
		if !slices.IsSorted(got) || len(got) > partition.MaxSlots {
			t.Fatalf("%d slots, sorted: %v", len(got), slices.IsSorted(got))
		}
		again, err := partition.ParseSlots(got.String())
		if err != nil || !slices.Equal(got, again) {
			t.Fatalf("%v became %v: %v", got, again, err)
		}
	})
}
