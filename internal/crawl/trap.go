package crawl

import (
	"fmt"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// Trap returns why a URL looks like one of infinitely many, or "" if it does not. Such a URL has a path with too many
// segments, or repeats a segment, as wrongly resolved relative links do. Trap sees the URL alone; only the owner of its
// slot can know that a host has too many URLs.
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
