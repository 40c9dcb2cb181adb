//go:build unix

package extract

import (
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/internal/ledger"
)

func TestHostile(t *testing.T) {
	self := mustParse(t, selfURL)
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) {
			body := []byte(tt.make(*hostileBytes))
			contentType := tt.contentType
			if contentType == "" {
				contentType = "text/html; charset=utf-8"
			}
			start := ledger.Processor()
			r := Links(body, contentType, self, Options{Requisites: true})
			took := ledger.Processor() - start
			t.Logf("%v of CPU for %d bytes, %d links", took, len(body), len(r.Links))
			if took > 2*time.Second {
				t.Error("too slow")
			}
			if len(r.Links) > MaxLinks+MaxRequisites {
				t.Errorf("%d links", len(r.Links))
			}
		})
	}
}

func TestHostileXML(t *testing.T) {
	self := mustParse(t, selfURL)
	for _, h := range append(hostileSitemaps, hostileFeeds...) {
		body := []byte(h.make(*hostileBytes))
		start := ledger.Processor()
		r := Links(body, "text/xml; charset=utf-8", self, Options{})
		took := ledger.Processor() - start
		t.Logf("%s: %v of CPU for %d bytes, %d links", h.name, took, len(body), len(r.Links))
		if took > time.Second {
			t.Errorf("%s: too slow", h.name)
		}
	}
}

// TestAfterManyAttributes checks that small tags are as fast after a tag with many attributes as without it.
func TestAfterManyAttributes(t *testing.T) {
	self := mustParse(t, selfURL)
	small := strings.Repeat("<b a>", 200_000)
	fastest := func(body string) time.Duration {
		best := time.Hour
		for range 3 {
			start := ledger.Processor()
			HTML([]byte(body), "text/html; charset=utf-8", self, Options{})
			best = min(best, ledger.Processor()-start)
		}
		return best
	}
	alone, behind := fastest(small), fastest("<b "+attributeBomb(maxToken-5)+">"+small)
	t.Logf("alone %v, behind %v", alone, behind)
	if behind > 2*alone {
		t.Errorf("%v behind many attributes, %v alone", behind, alone)
	}
}
