package extract

import (
	"slices"
	"testing"
)

func TestSrcset(t *testing.T) {
	for _, tt := range []struct {
		srcset string
		want   []string
	}{
		{"", nil},
		{" , ,", nil},
		{"a.jpg", []string{"a.jpg"}},
		{"a.jpg, b.jpg 2x", []string{"a.jpg", "b.jpg"}},
		{" a.jpg  100w ,\n\tb.jpg 200w,c.jpg", []string{"a.jpg", "b.jpg", "c.jpg"}},
		{"a,b.jpg 1x,c.jpg", []string{"a,b.jpg", "c.jpg"}},
		{"a.jpg,b.jpg", []string{"a.jpg,b.jpg"}},
		{"a.jpg,,, b.jpg", []string{"a.jpg", "b.jpg"}},
		{"data:image/png;base64,AA== 1x, b.jpg 2x", []string{"data:image/png;base64,AA==", "b.jpg"}},
		{"a.jpg x(1, 2) 3w, b.jpg", []string{"a.jpg", "b.jpg"}},
		{"a.jpg x(1, b.jpg", []string{"a.jpg"}},
		{"a.jpg x), b.jpg", []string{"a.jpg", "b.jpg"}},
	} {
		var got []string
		for u := range images([]byte(tt.srcset)) {
			got = append(got, string(u))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.srcset, got, tt.want)
		}
	}
}
