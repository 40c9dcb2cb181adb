package segment

import (
	"fmt"
	"runtime"
	"testing"
)

// TestSizeOfBuilder fills a builder with almost only tokens, like texts of links. Its size covers the memory of Finish; the
// allocations of Finish include the garbage of growing lists.
func TestSizeOfBuilder(t *testing.T) {
	b := NewBuilder()
	for doc := range 2000 {
		var fields [NumFields][]TermPosition
		for i := range 500 {
			fields[Anchor] = append(fields[Anchor], TermPosition{Term: fmt.Sprint("term", (doc+i)%1000), Position: int32(i)})
		}
		if err := b.Add(Document{Fingerprint: uint64(doc)}, fields); err != nil {
			t.Fatal(err)
		}
	}
	size := b.Size()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.Finish()
	runtime.ReadMemStats(&after)
	if took := int(after.TotalAlloc - before.TotalAlloc); took > 2*size {
		t.Errorf("Finish allocated %d bytes, of a size of %d", took, size)
	}
}
