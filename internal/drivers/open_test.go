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
}

func TestNames(t *testing.T) {
	for location, want := range map[string]struct{ short, safe string }{
		"aws://name?bucket=b&partitions=2":    {"aws://name", "aws://name?bucket=b&partitions=2"},
		"postgres://u:p%40@h:1/d?blobs=x@y":   {"postgres://h:1/d", "postgres://u@h:1/d?blobs=x@y"},
		"postgres://h/d":                      {"postgres://h/d", "postgres://h/d"},
		"nats://u:p@w@h:1,i:2?sync=confirmed": {"nats://h:1,i:2", "nats://u@h:1,i:2?sync=confirmed"},
	} {
		if short, safe := drivers.ShortName(location), drivers.WithoutPassword(location); short != want.short || safe != want.safe {
			t.Errorf("%s: %s and %s, want %s", location, short, safe, want)
		}
	}
	if got := drivers.ShortName("data/crawl?"); got != "data/crawl?" {
		t.Error(got)
	}
}
