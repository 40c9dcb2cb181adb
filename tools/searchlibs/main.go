// Searchlibs compares the project's segments (blobschema/segment) with bleve, the
// search library for Go that is kept best: the same made-up documents, the same
// queries. It is a module of its own, so that bleve is no dependency of the project:
//
//	cd tools/searchlibs && go run . -documents 20000
//
// It prints the table of docs/adr/0031-segments.md.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// What an object store is taken to take, for the time to a cold answer: from the
// request to the first byte, and then bytes per second of one connection.
const (
	latency   = 20 * time.Millisecond
	bandwidth = 80e6
)

// An engine is one of those that are compared.
type engine interface {
	name() string
	add(doc page) error
	finish() error                          // what was added is in the folder
	open() error                            // anew, with nothing in memory
	search(q query) (int, error)            // how many documents are found; the best ten with their titles
	cold() (reads, rounds int, bytes int64) // since open; a round is what can be asked for at once
	close() error
}

// query is two words: documents with either, best first, or with both as a phrase.
type query struct {
	words  [2]string
	phrase bool
}

func queries() (either, phrases []query) {
	for i := range uint64(20) {
		words := [2]string{word(3 + i), word(400 + 30*i)}
		either = append(either, query{words, false})
		phrases = append(phrases, query{[2]string{word(i), word(2 * i)}, true})
	}
	return either, phrases
}

func main() {
	log.SetFlags(0)
	n := flag.Int("documents", 20_000, "how many")
	only := flag.String("only", "", "one engine: own or bleve")
	flag.Parse()
	folder, err := os.MkdirTemp("", "searchlibs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	fmt.Println("| | bytes of the index per byte of text | CPU per document | cold: reads, bytes | first answer, from an object store | two words, ten best of many | phrase |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, e := range []engine{newOwn(filepath.Join(folder, "own")), newBleve(filepath.Join(folder, "bleve"))} {
		if *only != "" && *only != e.name() {
			continue
		}
		if err := compare(e, *n, folder); err != nil {
			log.Printf("%s: %v", e.name(), err)
		}
	}
}

func compare(e engine, n int, folder string) error {
	c := newCorpus()
	text, spent := int64(0), time.Duration(0)
	for i := range n {
		p := c.page(i)
		text += int64(len(p.text))
		before := cpu()
		if err := e.add(p); err != nil {
			return err
		}
		spent += cpu() - before
	}
	before := cpu()
	if err := e.finish(); err != nil {
		return err
	}
	spent += cpu() - before
	size, err := folderSize(filepath.Join(folder, e.name()))
	if err != nil {
		return err
	}
	either, phrases := queries()
	if err := e.open(); err != nil {
		return err
	}
	defer e.close()
	begin := time.Now()
	if _, err := e.search(either[0]); err != nil {
		return err
	}
	computing := time.Since(begin)
	reads, rounds, bytes := e.cold()
	first := time.Duration(rounds)*latency + time.Duration(float64(bytes)/bandwidth*1e9) + computing
	twoWords, found, err := warm(e, either)
	if err != nil {
		return err
	}
	phrase, matches, err := warm(e, phrases)
	if err != nil {
		return err
	}
	fmt.Printf("| %s | %.2f | %d µs | %d, %d KB | %d ms | %d µs (%d found) | %d µs (%d found) |\n", e.name(), float64(size)/float64(text), spent.Microseconds()/int64(n),
		reads, bytes>>10, first.Milliseconds(), twoWords.Microseconds(), found, phrase.Microseconds(), matches)
	return nil
}

// warm asks the queries a few times and says what one takes in CPU time.
func warm(e engine, list []query) (time.Duration, int, error) {
	const rounds = 10
	found := 0
	var before time.Duration
	for round := range rounds + 1 {
		if round == 1 { // the first fills what caches there are
			before, found = cpu(), 0
		}
		for _, q := range list {
			n, err := e.search(q)
			if err != nil {
				return 0, 0, err
			}
			found += n
		}
	}
	return (cpu() - before) / time.Duration(rounds*len(list)), found / (rounds * len(list)), nil
}

// cpu is the time that the process has computed: others may be busy on this machine.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		log.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func folderSize(name string) (size int64, err error) {
	err = filepath.WalkDir(name, func(_ string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return err
	})
	return size, err
}
