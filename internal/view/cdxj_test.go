package view

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/warc"
)

// TestSorter compares the sorter, in memory and in pieces, with sorting everything at once.
func TestSorter(t *testing.T) {
	for _, memory := range []int{1 << 20, 5000, 100} {
		t.Run(fmt.Sprint(memory), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, uint64(memory)))
			dir := t.TempDir()
			s := &sorter{tmp: dir, memory: memory, compare: warc.CompareCDXJ}
			var want []string
			for range 1000 {
				line := strings.Repeat(string(rune('a'+rng.IntN(3))), rng.IntN(40)) + fmt.Sprintln(rng.IntN(500))
				if rng.IntN(300) == 0 {
					line = strings.Repeat("z", 300_000) + line
				}
				want = append(want, line)
				if err := s.add([]byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(want)
			var got bytes.Buffer
			if err := s.write(&got); err != nil {
				t.Fatal(err)
			}
			if got.String() != strings.Join(want, "") {
				t.Error("the lines are not those, or not in order")
			}
			if pieces := len(s.files) > 0; pieces != (memory < 1<<20 || got.Len() > memory) {
				t.Errorf("%d files for %d bytes", len(s.files), got.Len())
			}
			if err := s.close(); err != nil {
				t.Error(err)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
				t.Errorf("left behind: %v, %v", list, err)
			}
		})
	}
}

// BenchmarkSorter sorts lines like those of an index, half of them through files.
func BenchmarkSorter(b *testing.B) {
	lines := make([][]byte, 200_000)
	rng := rand.New(rand.NewPCG(1, 2))
	bytes := int64(0)
	for i := range lines {
		lines[i] = fmt.Appendf(nil, "com,example%d)/%x 20260101000000 {\"url\": \"https://www.example%d.com/%x\", \"mime\": \"text/html\", \"status\": \"200\", \"digest\": \"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\", \"length\": \"12345\", \"offset\": \"1234567\", \"filename\": \"orbweaver-x.warc.gz\"}\n",
			rng.IntN(1000), rng.Uint64(), rng.IntN(1000), rng.Uint64())
		bytes += int64(len(lines[i]))
	}
	b.SetBytes(bytes)
	for b.Loop() {
		s := &sorter{tmp: b.TempDir(), memory: int(bytes / 5), compare: warc.CompareCDXJ}
		for _, l := range lines {
			if err := s.add(l); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.write(io.Discard); err != nil {
			b.Fatal(err)
		}
		if err := s.close(); err != nil {
			b.Fatal(err)
		}
	}
}
