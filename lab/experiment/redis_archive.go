package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/lab/corpus"
	"github.com/orbweaver/orbweaver/partition"
	"github.com/orbweaver/orbweaver/platform"
)

// archive is the stored result of a crawl of a corpus: WARC objects, commits and records, made by the crawler's own packages.
type archive struct {
	*platform.Platform
	docs  *corpus.Corpus
	crawl blobschema.Crawl
	of    [][]int // documents by partition
	text  int64   // bytes of the text of all documents
	pages int64   // bytes of all pages
}

// Sizes of commits in an archive.
const (
	archiveFence = 1
	archiveChunk = 1000 // pages of a commit, in one WARC object
	archiveSlots = 4096
)

var archiveTime = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// newArchive stores documents as a crawl with that many partitions does. The archive owns the platform.
func newArchive(p *platform.Platform, docs *corpus.Corpus, partitions int) (*archive, error) {
	a := &archive{Platform: p, docs: docs, of: make([][]int, partitions)}
	if err := a.fill(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return a, nil
}

func (a *archive) fill() error {
	e, err := a.engine()
	if err != nil {
		return err
	}
	first, err := weburl.Parse(a.docs.URL(0))
	if err != nil {
		return err
	}
	key, err := a.deal()
	if err != nil {
		return err
	}
	a.crawl, _, _, err = e.Begin(blobschema.Crawl{
		ID: "corpus", HashKey: key, Created: archiveTime, Slots: archiveSlots, Partitions: len(a.of),
		Settings: blobschema.Settings{Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: liveAgent},
	}, crawl.Seeds([]weburl.URL{first}), nil)
	if err != nil {
		return err
	}
	hash, err := a.crawl.Hash()
	if err != nil {
		return err
	}
	var chunks []*archiveCommit
	var jobs []func() error
	for p, list := range a.of {
		for seq := 1; len(list) > 0; seq++ {
			n := min(archiveChunk, len(list))
			c := &archiveCommit{archive: a, hash: hash, part: partition.ID(p), seq: uint64(seq), list: list[:n], last: n == len(list)}
			chunks, list = append(chunks, c), list[n:]
			jobs = append(jobs, c.store)
		}
	}
	if err := parallel(jobs); err != nil {
		return err
	}
	for _, c := range chunks {
		a.text, a.pages = a.text+c.text, a.pages+c.bytes
	}
	return nil
}

// deal deals the documents to partitions with the most even of several hash keys, because another experiment is about the
// balance of partitions.
func (a *archive) deal() (key []byte, err error) {
	owners, err := partition.NewMap(archiveSlots, len(a.of))
	if err != nil {
		return nil, err
	}
	var hosts []string
	var docs [][]int // documents by partition
	for i := range a.docs.Len() {
		host, _, _ := strings.Cut(strings.TrimPrefix(a.docs.URL(i), "http://"), "/")
		if n := len(hosts); n == 0 || hosts[n-1] != host {
			hosts, docs = append(hosts, host), append(docs, nil)
		}
		docs[len(docs)-1] = append(docs[len(docs)-1], i)
	}
	least := a.docs.Len() + 1
	for try := range byte(64) {
		k := append(make([]byte, 15), try)
		hash, err := partition.NewHash([16]byte(k), archiveSlots)
		if err != nil {
			return nil, err
		}
		of, most := make([][]int, len(a.of)), 0
		for h, host := range hosts {
			p := owners.Owner(hash.Slot(host))
			of[p] = append(of[p], docs[h]...)
			most = max(most, len(of[p]))
		}
		if most < least {
			least, key, a.of = most, k, of
		}
	}
	return key, nil
}

// engine returns a service for the archive.
func (a *archive) engine() (*service.Service, error) {
	e, err := service.New(a.Platform, service.Config{})
	if err == nil && a.crawl.ID != "" {
		e.Use(a.crawl)
	}
	return e, err
}

// archiveCommit is a commit of an archive.
type archiveCommit struct {
	*archive
	hash partition.Hash
	part partition.ID
	seq  uint64
	list []int // documents
	last bool  // the head names it

	text, bytes int64
}

// store stores the WARC object and the commit. The last one is named by the head.
func (c *archiveCommit) store() error {
	ctx := context.Background()
	man := blobschema.Manifest{
		Crawl: c.crawl.ID, Partition: c.part, Seq: c.seq, Fence: archiveFence, Epoch: 1, Time: archiveTime.Add(time.Duration(c.seq) * time.Hour),
		Totals: blobschema.Totals{Pages: int64(c.seq-1)*archiveChunk + int64(len(c.list))},
	}
	if c.seq > 1 {
		man.Commits = []blobschema.CommitRange{{Fence: archiveFence, From: 1, To: c.seq - 1}}
	}
	commit := blobschema.Commit{Manifest: man}
	parts, err := c.records(&commit)
	if err != nil {
		return err
	}
	warc := commit.Pages[0].WARC
	commit.Manifest.WARCs = []string{warc}
	if err := engine.PutObject(ctx, c.Platform, actor.PutObject{Name: warc, Parts: parts}); err != nil {
		return err
	}
	name := naming.Commit(c.crawl.ID, c.part, c.seq, archiveFence)
	data, _, err := blobschema.EncodeCommit(&commit, name, c.hash)
	if err != nil {
		return err
	}
	if err := engine.PutObject(ctx, c.Platform, actor.PutObject{Name: name, Parts: [][]byte{data}}); err != nil || !c.last {
		return err
	}
	head, err := json.Marshal(blobschema.Head{Partition: c.part, Fence: archiveFence, Commit: name, Seq: c.seq, Epoch: 1, Totals: man.Totals})
	if err != nil {
		return err
	}
	_, err = engine.WriteRecord(ctx, c.Platform, actor.WriteRecord{Key: naming.HeadKey(c.crawl.ID, c.part), Value: head})
	return err
}

// records returns the WARC records of the answers, as the fetcher makes them, and adds their pages and links to the commit.
func (c *archiveCommit) records(commit *blobschema.Commit) (parts [][]byte, err error) {
	name := naming.WARC(c.crawl.ID, c.part, archiveFence, c.seq, true)
	scratch := fetch.NewScratch(fetch.Config{UserAgent: liveAgent, Token: liveAgent})
	html := make([]byte, 0, 32<<10)
	size := 0
	for k, i := range c.list {
		d := c.docs.Document(i, html)
		html = d.HTML
		u, err := weburl.Parse(d.URL)
		if err != nil {
			return nil, err
		}
		at := archiveTime.Add(time.Duration(int(c.seq)*archiveChunk+k) * time.Second)
		out := fetch.Assemble(scratch, actor.Request{URL: u, Key: string(u.Host())}, fetch.Response{
			Status: 200, Proto: "HTTP/1.1", Body: d.HTML, Addr: "192.0.2.1", Started: at, Ended: at,
			Header:      []warc.HeaderField{{Name: "Content-Type", Value: "text/html; charset=utf-8"}},
			RequestHead: []byte("GET " + u.RequestURI() + " HTTP/1.1\r\nHost: " + d.Host + "\r\n\r\n"),
		})
		if out.Page.Outcome != blobschema.OutcomeOK {
			return nil, fmt.Errorf("%s: %v", d.URL, out.Page.Outcome)
		}
		out.Page.WARC, out.Page.Offset = name, int64(size+out.ResponseAt)
		links := blobschema.PageLinks{Source: c.hash.Fingerprint(d.URL), Slot: c.hash.Slot(d.Host), Host: d.Host}
		for _, l := range out.Links {
			host := string(l.URL.Host())
			links.Targets = append(links.Targets, blobschema.Target{
				Fingerprint: c.hash.Fingerprint(l.URL.String()), Slot: c.hash.Slot(host), Host: host, NoFollow: l.NoFollow, Followed: !l.NoFollow, Anchor: l.Anchor,
			})
		}
		parts, size = append(parts, out.Record), size+len(out.Record)
		commit.Pages, commit.Links = append(commit.Pages, out.Page), append(commit.Links, links)
		c.text, c.bytes = c.text+int64(d.Text), c.bytes+int64(len(d.HTML))
	}
	return parts, nil
}
