package blobschema

import (
	"crypto/sha1"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

func testHash(t testing.TB) partition.Hash {
	t.Helper()
	h, err := partition.NewHash([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, partition.DefaultSlots)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 17)) }

var words = strings.Fields(`news article category product archive image video blog post tag user profile
	forum thread topic help about contact search result list detail view item shop cart world sport science
	health travel music culture opinion weather local market finance review guide recipe event calendar`)

// web generates URLs like those of crawls: few large hosts and many small ones, three kinds of site, slugs, numbers and
// dates.
type web struct {
	r    *rand.Rand
	h    partition.Hash
	pick *rand.Zipf
}

func newWeb(t testing.TB, seed uint64) *web {
	r := newRand(seed)
	return &web{r: r, h: testHash(t), pick: rand.NewZipf(r, 1.2, 8, 5000)}
}

func (w *web) word() string { return words[w.r.IntN(len(words))] }

func (w *web) host() string {
	n := w.pick.Uint64()
	tld := []string{"com", "org", "net", "de", "co.uk"}[n%5]
	return fmt.Sprintf("www.%s%s%d.%s", words[n%uint64(len(words))], words[n*7%uint64(len(words))], n, tld)
}

func (w *web) url(host string) string {
	switch len(host) % 3 {
	case 0:
		return fmt.Sprintf("https://%s/%s/%d/%02d/%02d/%s-%s-%s-%s.html", host, w.word(), 2015+w.r.IntN(11),
			1+w.r.IntN(12), 1+w.r.IntN(28), w.word(), w.word(), w.word(), w.word())
	case 1:
		return fmt.Sprintf("https://%s/%s/%s/%d", host, w.word(), w.word(), w.r.IntN(1_000_000))
	}
	return fmt.Sprintf("https://%s/%s/%s?id=%d&page=%d", host, w.word(), w.word(), w.r.IntN(100_000), w.r.IntN(20))
}

// slot spreads hosts over the 16 slots of one partition of a large crawl.
func (w *web) slot(host string) partition.Slot { return w.h.Slot(host) / 1024 * 1024 }

func (w *web) queued(n int) []Queued {
	out := make([]Queued, n)
	for i := range out {
		host := w.host()
		q := &out[i]
		*q = Queued{Slot: w.slot(host), Key: host, URL: w.url(host), Rank: uint32(w.r.IntN(1 << 16)), Depth: uint16(1 + w.r.IntN(6))}
		if w.r.IntN(50) == 0 {
			q.Attempts, q.NotBefore = 1, 1_760_000_000_000+w.r.Int64N(3_600_000)
			q.Topic, q.Change = uint8(w.r.IntN(256)), Change{w.r.Float32(), 1000 * w.r.Float32()}
		}
	}
	return out
}

func (w *web) settled(n int) []Settled {
	out := make([]Settled, n)
	for i := range out {
		out[i] = Settled{Slot: w.slot(w.host()), Fingerprint: w.r.Uint64(), State: Fetched, Record: RecordRef{Partition: 3, Seq: 1 + w.r.Uint32N(250)}}
		if w.r.IntN(20) == 0 {
			out[i].State = Refused
		}
	}
	return out
}

func (w *web) hosts(n int) []KeyState {
	out := make([]KeyState, n)
	for i := range out {
		host := fmt.Sprintf("h%d.%s", i, w.host())
		out[i] = KeyState{Slot: w.slot(host), Key: host, Version: uint64(w.r.IntN(100)), Data: fmt.Appendf(nil, "%060d", w.r.Uint64())}
	}
	return out
}

func (w *web) run(settled, queued, hosts int) *Run {
	return &Run{Settled: w.settled(settled), Queued: w.queued(queued), Keys: w.hosts(hosts)}
}

func (w *web) pages(n int) []Page {
	out := make([]Page, n)
	at := int64(0)
	for i := range out {
		length := 8000 + w.r.Int64N(50_000)
		out[i] = Page{
			URL: w.url(w.host()), Depth: uint16(w.r.IntN(6)), Outcome: OutcomeOK, Status: 200,
			Time: time.Unix(1_760_000_000+int64(i)/40, w.r.Int64N(1e9)).UTC().Truncate(time.Microsecond),
			MIME: "text/html", Digest: fmt.Sprintf("sha1:%x", sha1.Sum(fmt.Append(nil, i))), BodyBytes: length * 5,
			WARC:   naming.WARC("test", 3, 2, uint64(i/1000), true),
			Offset: at, Length: length, ETag: fmt.Sprintf(`"%x"`, w.r.Uint64()), Links: 50, Attempts: 1,
		}
		at += length
	}
	return out
}

// links gives each page of a site the site's menu and some links of its own.
func (w *web) links(pages, each int) []PageLinks {
	type menu []Target
	menus := make(map[string]menu)
	target := func(host string) Target {
		if w.r.IntN(10) == 0 {
			host = w.host()
		}
		return Target{Fingerprint: w.h.Fingerprint(w.url(host)), Slot: w.slot(host), Host: host, Followed: true,
			Anchor: strings.Repeat(w.word()+" ", 1+w.r.IntN(4)) + w.word()}
	}
	out := make([]PageLinks, pages)
	for i := range out {
		host := w.host()
		m := menus[host]
		for len(m) < each/2 {
			m = append(m, target(host))
		}
		menus[host] = m
		list := slices.Clone(m)
		for len(list) < each {
			list = append(list, target(host))
		}
		out[i] = PageLinks{Source: w.r.Uint64(), Slot: w.slot(host), Host: host, Targets: list}
	}
	return out
}

// mailURLs returns URLs with the fields of mail.
func (w *web) mailURLs(n int) []Queued {
	out := w.queued(n)
	for i := range out {
		q := &out[i]
		*q = Queued{URL: q.URL, Rank: q.Rank % 8, Depth: q.Depth}
		if i%100 == 0 {
			q.Generation, q.Flags = 2, FlagSeed
		}
	}
	slices.SortFunc(out, byURL)
	return out
}
