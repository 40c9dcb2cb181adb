package crawl

import (
	"fmt"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Trap says why a URL looks like one of endlessly many, "" if it does not: a path of
// too many segments, or one that holds the same segment again and again, as relative
// links that are resolved wrongly make them. It looks at the URL alone; that a host has
// too many URLs only the owner of its slot can know.
func Trap(s *blobschema.Settings, u weburl.URL) string {
	path := u.Path()
	segments := strings.Count(path, "/")
	if s.MaxSegments > 0 && segments > s.MaxSegments {
		return fmt.Sprintf("its path has %d segments, more than the %d allowed", segments, s.MaxSegments)
	}
	if s.MaxRepeats <= 0 || segments <= s.MaxRepeats {
		return ""
	}
	var seen [64]string // further segments are not compared: few URLs have more, and MaxSegments refuses them by default
	n := 0
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" {
			segment = "/"
		}
		count := 1
		for _, old := range seen[:n] {
			if old == segment {
				count++
			}
		}
		if count > s.MaxRepeats {
			return fmt.Sprintf("its path has the segment %q more than the %d times allowed", segment, s.MaxRepeats)
		}
		if n < len(seen) {
			seen[n] = segment
			n++
		}
	}
	return ""
}
