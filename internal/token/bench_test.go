package token

import (
	"strings"
	"testing"
)

// prose is 5 KB of text with about 300 different words, as a page has.
func prose() string {
	words := strings.Fields(texts["en"] + ` Orbweaver is a web crawler made of queues and functions. Nothing is always on: a message on a queue starts a fetch
		step for one partition; the step crawls as long as there is polite work to do, stores pages packed in blob storage, publishes outlinks
		to the partitions that own them, and ends. A coordinator function, on a schedule, keeps the partition map and the hosts' capability scores,
		and wakes partitions that have work due. The same code runs in one local process on embedded drivers, on serverless functions and on
		other clouds. Mail that cannot be decoded twice goes to a store with its reason, is counted, and can be replayed.`)
	var b strings.Builder
	for n := 1; b.Len() < 5<<10; n = n*31 + 7 {
		b.WriteString(words[n>>3&0xFFFF%len(words)] + " ")
	}
	return b.String()
}

func benchmark(b *testing.B, text, lang string) {
	tokens := Append(nil, text, lang)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		tokens = Append(tokens[:0], text, lang)
	}
	b.ReportMetric(float64(len(tokens)), "tokens")
}

func BenchmarkTokens(b *testing.B) {
	b.Run("english", func(b *testing.B) { benchmark(b, prose(), "en") })
	for _, lang := range []string{"ru", "zh", "ja", "ko"} {
		b.Run(lang, func(b *testing.B) { benchmark(b, strings.Repeat(texts[lang]+"\n", 5<<10/len(texts[lang])), lang) })
	}
}

// BenchmarkNewWords repeats no word, so each one is stemmed.
func BenchmarkNewWords(b *testing.B) {
	text := prose()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		a := newAnalyzer()
		a.open(text, "en", nil)
		for a.next() {
			a.emit()
		}
	}
}

func BenchmarkQuery(b *testing.B) {
	for b.Loop() {
		Query("polite web crawlers 长江大桥", nil)
	}
}

// BenchmarkDictionary measures the cost of the first Chinese text.
func BenchmarkDictionary(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := openDictionary(packed); err != nil {
			b.Fatal(err)
		}
	}
}
