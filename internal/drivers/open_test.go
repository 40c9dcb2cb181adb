package drivers_test

import (
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/internal/drivers"
)

func TestOpen(t *testing.T) {
	for location, want := range map[string]string{
		"azure://name?x=y":          "the scheme azure is unknown",
		"aws://name":                "bucket is missing",
		"aws://name?bucket=b&part=": "parameter part needs one value",
	} {
		if p, err := drivers.Open(t.Context(), location, nil); p != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", location, err, want)
		}
	}
	for location, want := range map[string]string{"aws://name?bucket=b&partitions=2": "aws://name", "data/crawl?": "data/crawl?"} {
		if got := drivers.ShortName(location); got != want {
			t.Errorf("%s: %s, want %s", location, got, want)
		}
	}
}
