package corpus

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestDocuments checks that documents are the same when generated again, that titles and unique words occur in one document,
// and that pages have a typical size.
func TestDocuments(t *testing.T) {
	const docs = 2_000
	c, err := New(7, docs)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := New(7, docs)
	titles, urls, langs, text, html := map[string]int{}, map[string]bool{}, map[string]int{}, 0, 0
	var all bytes.Buffer
	var uniques []string
	for i := range docs {
		d := c.Document(i, nil)
		if i%97 == 0 && !bytes.Equal(d.HTML, again.Document(i, nil).HTML) {
			t.Fatalf("document %d differs when generated again", i)
		}
		if before, ok := titles[d.Title]; ok {
			t.Errorf("%d and %d have the title %s", before, i, d.Title)
		}
		if !utf8.Valid(d.HTML) || urls[d.URL] || !strings.HasPrefix(d.URL, "http://"+d.Host+"/") {
			t.Errorf("document %d: %s", i, d.URL)
		}
		if got := bytes.Count(d.HTML, []byte(d.Unique)); got != 1 {
			t.Errorf("document %d has %s %d times", i, d.Unique, got)
		}
		titles[d.Title], urls[d.URL] = i, true
		langs[d.Lang]++
		text, html = text+d.Text, html+len(d.HTML)
		all.Write(d.HTML)
		uniques = append(uniques, d.Unique)
	}
	for i := 0; i < docs; i += 41 {
		if n := bytes.Count(all.Bytes(), []byte(uniques[i])); n != 1 {
			t.Errorf("%s occurs %d times", uniques[i], n)
		}
	}
	if langs["en"] != 72*docs/100 || langs["zh"] != 15*docs/100 || langs["ja"] != 8*docs/100 || langs["ko"] != 5*docs/100 {
		t.Errorf("languages: %v", langs)
	}
	if mean := text / docs; mean < 4_500 || mean > 5_800 {
		t.Errorf("%d bytes of text per document", mean)
	}
	if mean := html / docs; mean < 13_000 || mean > 17_000 {
		t.Errorf("%d bytes per page", mean)
	}
}

func TestTitlesOfMost(t *testing.T) {
	c, err := New(1, Most)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool, 2*Most)
	for i := range Most {
		title, unique := c.Title(i), c.Unique(i)
		if seen[title] || seen[unique] {
			t.Fatalf("document %d: %s, %s", i, title, unique)
		}
		seen[title], seen[unique] = true, true
	}
	if c.host(0) != 0 || c.host(Most-1) != len(c.starts)-2 {
		t.Errorf("the hosts are %d to %d of %d", c.host(0), c.host(Most-1), len(c.starts)-1)
	}
	if _, err := New(1, Most+1); err == nil {
		t.Error("no error for more than Most documents")
	}
}

func BenchmarkDocument(b *testing.B) {
	c, err := New(1, 10_000)
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	for i := 0; b.Loop(); i++ {
		buf = c.Document(i%10_000, buf).HTML
	}
}
