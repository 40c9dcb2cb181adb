package blobschema

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

const testCommit = "web/p00003/c0000000017-f00000002"

func fullManifest() Manifest {
	return Manifest{
		Version: wire.Version, Crawl: "web", Partition: 3, Seq: 17, Fence: 2, Epoch: 4,
		Time:    time.Date(2026, 11, 21, 8, 0, 0, 123456000, time.UTC),
		Commits: []CommitRange{{1, 1, 9}, {2, 11, 16}},
		Runs:    []RunRef{{Object: "web/p00003/r0000000016-f00000002-t1", Tier: 1, Offset: 5, Length: 100, Index: 60, First: 1, Last: 9, Entries: 7}},
		Dropped: []string{"a", "b"}, Unsent: []uint64{15, 16},
		BufferedFrom: map[partition.ID]uint64{1: 12}, Sent: map[partition.ID]uint64{1: 5, 2: 6},
		Applied: map[partition.ID]Marks{1: {Low: 4, Above: []uint64{6, 9}}, partition.Intake: {Low: 1}},
		Totals:  Totals{Known: 10, Pending: 5, Outcomes: map[string]int64{"ok": 3, "dns": 1}, Bytes: 1 << 40},
		Slots:   []SlotSummary{{Slot: 5, Known: 7, Pending: 2, Unexamined: 1, Due: 1_760_000_000_000}, {Slot: 9}},
		Desired: 3, Scope: []string{"a.example"}, NewScope: []string{"b.example"}, Suspects: []string{"https://c.example/"},
		WARCs: []string{"web/warc/x.warc.gz"}, Calls: Calls{QueueRequests: 7, FunctionMBMillis: 1 << 40},
	}
}

func fullCommit(t testing.TB) *Commit {
	w := newWeb(t, 1)
	pages := w.pages(30)
	pages[0] = Page{URL: "https://a.example/", Outcome: OutcomeDNS, Time: pages[1].Time, Detail: "no such host", Robots: true, NoIndex: true, Truncated: "length",
		Redirect: "https://b.example/", Modified: "yesterday", Generation: 4, Change: PageChanged}
	links := w.links(20, 10)
	links = append(links, PageLinks{Source: 1, Slot: 2, Host: "a.example"}, PageLinks{Source: 3, Targets: []Target{
		{Fingerprint: 4, NoFollow: true}, {Fingerprint: 4, Slot: 1, Host: "b.example:8080", Followed: true, NoFollow: true, Anchor: "x"}, {Fingerprint: 4, Anchor: "\xff"},
		{Fingerprint: 5, Kind: 11, URL: "http://a.example/x.png"}, {Fingerprint: 5, Kind: 1, URL: "http://a.example/x.png"}}})
	return &Commit{
		Manifest: fullManifest(), Pages: pages, Links: links,
		Buffered: map[partition.ID][]Queued{1: w.mailURLs(20), 7: w.mailURLs(1), 9: nil},
		Outbox:   []OutMail{{To: 1, Number: 5, Body: []byte("body")}, {To: 2, Number: 6, Body: []byte{}}},
		Outside:  w.mailURLs(5),
		Hosts: []HostObservation{{Host: "a.example", Slot: 5, Conn: time.Millisecond, Resp: time.Second, PerConnection: 49.5, Requests: 10, Failures: 1, Score: 0.1},
			{Host: "b.example"}},
		State: w.run(50, 50, 5),
	}
}

// readCommit decodes all sections.
func readCommit(data []byte) (c Commit, err error) {
	r, err := OpenCommit(data)
	if err != nil {
		return c, err
	}
	var errs [8]error
	c.Manifest, errs[0] = r.Manifest()
	c.Pages, errs[1] = r.Pages()
	c.Links, errs[2] = r.Links()
	c.Buffered, errs[3] = r.Buffered()
	c.Outbox, errs[4] = r.Outbox()
	c.Outside, errs[5] = r.Outside()
	c.Hosts, errs[6] = r.Hosts()
	run, err := r.Run()
	if errs[7] = err; run != nil && err == nil && len(c.Manifest.Runs) > 0 {
		c.State = &Run{}
		errs[7] = DecodeRun(run, c.Manifest.Runs[len(c.Manifest.Runs)-1], c.State)
	}
	return c, errors.Join(errs[:]...)
}

func TestCommitRoundTrip(t *testing.T) {
	h := testHash(t)
	want := fullCommit(t)
	before := cloneRun(want.State)
	runs := want.Manifest.Runs[:1:1]
	want.Manifest.Runs = make([]RunRef, 1, 10) // EncodeCommit must not use this spare room
	copy(want.Manifest.Runs, runs)
	data, manifest, err := EncodeCommit(want, testCommit, h)
	if err != nil {
		t.Fatal(err)
	}
	if spare := want.Manifest.Runs[:2][1]; spare != (RunRef{}) {
		t.Errorf("EncodeCommit wrote %+v behind the caller's runs", spare)
	}
	if len(manifest.Runs) != 2 || manifest.Runs[0] != runs[0] {
		t.Fatalf("the manifest names the runs %+v", manifest.Runs)
	}
	ref := manifest.Runs[1]
	if ref.Object != testCommit || ref.Tier != 0 || ref.Entries != int64(before.Len()) {
		t.Errorf("the commit's run is %+v", ref)
	}
	var state Run
	if err := DecodeRun(data[ref.Offset:][:ref.Length], ref, &state); err != nil {
		t.Errorf("the run is not where the manifest says: %v", err)
	}
	if diff := diffRuns(before, &state); diff != "" {
		t.Errorf("state differs (-want +got):\n%s", diff)
	}
	got, err := readCommit(data)
	if err != nil {
		t.Fatal(err)
	}
	want.Manifest = manifest
	got.State = &state
	want.State.Sort()
	state.Sort()
	if diff := cmp.Diff(*want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("commit differs (-want +got):\n%s", diff)
	}
}

func TestCommitEmpty(t *testing.T) {
	for _, state := range []*Run{nil, {}} {
		data, manifest, err := EncodeCommit(&Commit{Manifest: Manifest{Crawl: "c", Seq: 1}, State: state}, testCommit, testHash(t))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readCommit(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Commit{Manifest: manifest}, got, cmpopts.EquateEmpty()); diff != "" || len(manifest.Runs) != 0 || manifest.Version != wire.Version {
			t.Errorf("commit differs (-want +got):\n%s", diff)
		}
		if len(data) > 300 {
			t.Errorf("an empty commit takes %d bytes", len(data))
		}
	}
}

// TestCommitHostileText checks that no text from a server makes a commit unreadable.
func TestCommitHostileText(t *testing.T) {
	bad := "a\xffb\xed\xa0\x80"
	p := Page{URL: bad, MIME: bad, Truncated: bad, Redirect: bad, ETag: bad, Modified: bad, Detail: bad, Digest: bad, WARC: bad,
		Time: time.Date(2026, 1, 1, 1, 0, 0, 1999, time.FixedZone("", 3600))}
	c := &Commit{
		Manifest: Manifest{Suspects: []string{bad}, Scope: []string{bad}, Totals: Totals{Outcomes: map[string]int64{bad: 1}}},
		Pages:    []Page{p}, Outside: []Queued{{URL: bad}}, Buffered: map[partition.ID][]Queued{1: {{URL: bad}}},
		Hosts: []HostObservation{{Host: bad, Score: math.NaN(), PerConnection: math.Inf(1)}},
	}
	data, _, err := EncodeCommit(c, testCommit, testHash(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := readCommit(data)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ToValidUTF8(bad, "\uFFFD")
	if g := got.Pages[0]; g.URL != want || g.MIME != want || g.Redirect != want || g.ETag != want || g.Modified != want || g.Detail != want {
		t.Errorf("page is %+v", g)
	}
	if g := got.Pages[0].Time; g != time.Date(2026, 1, 1, 0, 0, 0, 1000, time.UTC) {
		t.Errorf("time is %v", g)
	}
	if got.Manifest.Suspects[0] != bad || got.Outside[0].URL != bad || got.Buffered[1][0].URL != bad || got.Hosts[0].Host != bad {
		t.Errorf("commit has %+v", got)
	}
	if !reflect.DeepEqual(c.Pages[0], p) {
		t.Error("EncodeCommit changed a page")
	}
}

// TestCommitHandsOver checks that a hand-over names all runs that may hold entries of its slots, including that of its own
// commit.
func TestCommitHandsOver(t *testing.T) {
	run := func(object string, first, last partition.Slot) RunRef {
		return RunRef{Object: object, First: first, Last: last}
	}
	c := &Commit{Manifest: Manifest{
		Seq: 1, Runs: []RunRef{run("below", 1, 9), run("to", 1, 10), run("from", 20, 30), run("above", 21, 30), run("all", 0, 99)},
		Given: []Handover{{Epoch: 2, Slots: partition.Slots{10, 20}}, {Epoch: 2}, {Epoch: 2, Slots: partition.Slots{10}, Runs: []RunRef{}}},
	}}
	_, man, err := EncodeCommit(c, testCommit, testHash(t))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range man.Given[0].Runs {
		names = append(names, r.Object)
	}
	if !slices.Equal(names, []string{"to", "from", "all"}) || man.Given[1].Runs == nil || len(man.Given[1].Runs)+len(man.Given[2].Runs) > 0 || c.Manifest.Given[0].Runs != nil {
		t.Errorf("%v are handed over; without slots, and where it was said: %+v", names, man.Given[1:])
	}
}

func TestCommitBounds(t *testing.T) {
	long := strings.Repeat("u", wire.MaxURL+1)
	for name, c := range map[string]*Commit{
		"state":          {State: &Run{Settled: []Settled{{}}}},
		"held":           {Buffered: map[partition.ID][]Queued{1: {{URL: long}}}},
		"outside":        {Outside: []Queued{{URL: long}}},
		"anchor":         {Links: []PageLinks{{Targets: []Target{{Anchor: long}}}}},
		"link slot":      {Links: []PageLinks{{Targets: []Target{{Slot: maxSlot + 1}}}}},
		"page slot":      {Links: []PageLinks{{Slot: maxSlot + 1}}},
		"page host":      {Links: []PageLinks{{Host: long}}},
		"link host":      {Links: []PageLinks{{Targets: []Target{{Host: long}}}}},
		"link kind":      {Links: []PageLinks{{Targets: []Target{{Kind: maxKind + 1}}}}},
		"link URL":       {Links: []PageLinks{{Targets: []Target{{URL: long}}}}},
		"hosts":          {Hosts: make([]HostObservation, maxSequence+1)},
		"commits twice":  {Manifest: Manifest{Seq: 9, Commits: []CommitRange{{1, 1, 3}, {2, 3, 4}}}},
		"commits back":   {Manifest: Manifest{Seq: 9, Commits: []CommitRange{{1, 3, 1}}}},
		"itself":         {Manifest: Manifest{Seq: 9, Commits: []CommitRange{{1, 1, 9}}}},
		"endless":        {Manifest: Manifest{Seq: 9, Commits: []CommitRange{{1, 1, math.MaxUint64}}}},
		"before the end": {Manifest: Manifest{Seq: 9, Commits: []CommitRange{{1, 5, 6}, {1, 1, 2}}}},
	} {
		if data, _, err := EncodeCommit(c, testCommit, testHash(t)); err == nil {
			t.Errorf("%s: %d bytes are written", name, len(data))
		}
	}
}

func TestCommitDamage(t *testing.T) {
	h := testHash(t)
	c := fullCommit(t)
	c.Pages, c.Links, c.State, c.Buffered = c.Pages[:2], c.Links[19:], newWeb(t, 1).run(2, 2, 2), map[partition.ID][]Queued{1: newWeb(t, 1).mailURLs(2)}
	data, _, err := EncodeCommit(c, testCommit, h)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readCommit(data); err != nil {
		t.Fatal(err)
	}
	eachDamage(data, func(what string, b []byte) {
		err := readPack(b) // a reader of all sections does this too
		if err == nil {
			_, err = readCommit(b)
		}
		if !isRefusal(err) {
			t.Errorf("%s: error %v", what, err)
		}
	})
	// Right checksums around content that our writer never writes.
	withSection := func(name string, raw []byte) []byte {
		p, err := wire.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		var sections []wire.Section
		for _, n := range p.Names() {
			b, err := p.Section(n)
			if err != nil {
				t.Fatal(err)
			}
			if n == name {
				b = raw
			}
			sections = append(sections, wire.Section{Name: n, Data: b})
		}
		return wire.Append(nil, sections)
	}
	other := fullManifest()
	other.Version = wire.Version + 1
	otherVersion, err := cborEnc.Marshal(&other)
	if err != nil {
		t.Fatal(err)
	}
	endless := fullManifest()
	endless.Commits = []CommitRange{{1, 0, math.MaxUint64}}
	endlessCommits, err := cborEnc.Marshal(&endless)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		section string
		raw     []byte
		want    error
	}{
		"another version":    {sectionManifest, wire.AppendPacked(nil, otherVersion), wire.ErrVersion},
		"endless commits":    {sectionManifest, wire.AppendPacked(nil, endlessCommits), wire.ErrDamaged},
		"no manifest":        {sectionManifest, nil, wire.ErrDamaged},
		"bytes after":        {sectionManifest, wire.AppendPacked(nil, append(bytes.Clone(endlessCommits), 0)), wire.ErrDamaged},
		"indefinite":         {sectionPages, wire.AppendPacked(nil, []byte{0xbf, 0xff}), wire.ErrDamaged},
		"tagged":             {sectionPages, wire.AppendPacked(nil, []byte{0xa1, 6, 0xc1, 0}), wire.ErrDamaged},
		"half a page":        {sectionPages, wire.AppendPacked(nil, []byte{0xa1, 1}), wire.ErrDamaged},
		"pages of nothing":   {sectionPages, wire.AppendPacked(nil, bytes.Repeat([]byte{0xa0}, maxSequence+1)), wire.ErrDamaged},
		"pages claim much":   {sectionPages, []byte{0xff, 0xff, 0xff, 0x7f, 0}, wire.ErrDamaged},
		"host claims much":   {sectionHosts, wire.AppendPacked(nil, []byte{0x9a, 0xff, 0xff, 0xff, 0xff}), wire.ErrDamaged},
		"outbox claims much": {sectionOutbox, []byte{0xff, 0xff, 0x03}, wire.ErrDamaged},
		"receiver twice":     {sectionBuffered, wire.AppendPacked(nil, []byte{2, 1, 1, 0, 1, 1, 0}), wire.ErrDamaged},
		"links claim much":   {sectionLinks, wire.AppendPacked(nil, []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xff, 0x7f, 0}), wire.ErrDamaged},
		"run of nothing":     {sectionRun, nil, wire.ErrDamaged},
	} {
		if _, err := readCommit(withSection(tt.section, tt.raw)); !errors.Is(err, tt.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestLinksSize pins the stored size of links, for a site with a menu.
func TestLinksSize(t *testing.T) {
	links := newWeb(t, 1).links(500, 50)
	raw, err := encodeLinks(&Commit{Links: links})
	if err != nil {
		t.Fatal(err)
	}
	n := len(wire.AppendPacked(nil, raw))
	t.Logf("%d bytes a page, %.1f a link", n/500, float64(n)/25_000)
	if n > 500*650 {
		t.Errorf("links of a page take %d bytes", n/500)
	}
	got, err := decodeLinks(raw)
	if err != nil || !reflect.DeepEqual(got, links) {
		t.Errorf("links come back differently, %v", err)
	}
}

func FuzzLinks(f *testing.F) {
	raw, err := encodeLinks(&Commit{Links: newWeb(f, 1).links(3, 4)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		links, err := decodeLinks(raw)
		if err != nil {
			if !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := encodeLinks(&Commit{Links: links})
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeLinks(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(links, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// FuzzCommit puts any bytes into any section.
func FuzzCommit(f *testing.F) {
	data, _, err := EncodeCommit(fullCommit(f), testCommit, testHash(f))
	if err != nil {
		f.Fatal(err)
	}
	p, err := wire.Open(data)
	if err != nil {
		f.Fatal(err)
	}
	names := []string{sectionManifest, sectionPages, sectionBuffered, sectionOutside, sectionHosts, sectionOutbox, sectionLinks, sectionRun}
	for i, name := range names {
		b, err := p.Section(name)
		if err != nil {
			f.Fatal(err)
		}
		if name != sectionOutbox && name != sectionRun {
			if b, err = wire.Unpack(b, wire.MaxSection); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(byte(i), b)
	}
	f.Fuzz(func(t *testing.T, which byte, raw []byte) {
		name := names[int(which)%len(names)]
		if name != sectionOutbox && name != sectionRun {
			raw = wire.AppendPacked(nil, raw)
		}
		c, err := readCommit(wire.Append(nil, []wire.Section{{Name: name, Data: raw}}))
		if err == nil || !isRefusal(err) {
			t.Fatalf("commit of one section: %v", err)
		}
		for name := range CommitNames(&c.Manifest) {
			if _, _, _, err := naming.ParseCommit(name); err != nil && naming.CheckCrawlID(c.Manifest.Crawl) == nil {
				t.Fatal(err)
			}
			break
		}
	})
}

// FuzzPages checks that pages that were read are written and read the same.
func FuzzPages(f *testing.F) {
	raw, err := encodePages(fullCommit(f))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[:len(raw)/8])
	one, err := encodePages(&Commit{Pages: fullCommit(f).Pages[:1]})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(one)
	f.Fuzz(func(t *testing.T, raw []byte) {
		pages, err := decodeSequence[Page](raw)
		if err != nil {
			if !isRefusal(err) {
				t.Fatal(err)
			}
			return
		}
		again, err := encodePages(&Commit{Pages: pages})
		if err != nil {
			t.Skip() // a year that RFC 3339 cannot express
		}
		got, err := decodeSequence[Page](again)
		if err != nil {
			t.Fatal(err)
		}
		third, err := encodePages(&Commit{Pages: got})
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%x\nis written again as\n%x, %v", again, third, err)
		}
	})
}

func ExampleEncodeCommit() {
	h, err := partition.NewHash([16]byte{1}, partition.DefaultSlots)
	if err != nil {
		panic(err)
	}
	name := naming.Commit("web", 3, 1, 1)
	state := &Run{Queued: []Queued{{Slot: 5, Key: "a.example", URL: "https://a.example/"}}}
	data, manifest, err := EncodeCommit(&Commit{Manifest: Manifest{Crawl: "web", Partition: 3, Seq: 1, Fence: 1}, State: state}, name, h)
	if err != nil {
		panic(err)
	}
	ref := manifest.Runs[0]
	var back Run
	if err := DecodeRun(data[ref.Offset:][:ref.Length], ref, &back); err != nil {
		panic(err)
	}
	fmt.Println(ref.Object, ref.Entries, back.Queued[0].URL)
	fmt.Println(slices.Collect(CommitNames(&manifest)))
	// Output:
	// web/p00003/c0000000001-f00000001 1 https://a.example/
	// [web/p00003/c0000000001-f00000001]
}

// TestManifestGolden pins the numbers and types of the manifest's fields.
func TestManifestGolden(t *testing.T) {
	m := fullManifest()
	got, err := cborEnc.Marshal(&m)
	if err != nil {
		t.Fatal(err)
	}
	const want = "b601050263776562030304110502060407781b323032362d31312d32315430383a30303a30302e3132333435365a0882a3010102010309a30102020b" +
		"03100981a80178237765622f7030303030332f72303030303030303031362d6630303030303030322d74310201030504186405183c0601070908070a" +
		"82616161620b820f100ca1010c0da2010502060ea201a20104028206091affffffffa101010fa4010a020507a2626f6b0363646e7301081b00000100" +
		"00000000108287058200000702011b00000199c82cc00000870982000000000000001103128169612e6578616d706c65138169622e6578616d706c65" +
		"14817268747470733a2f2f632e6578616d706c652f1581727765622f776172632f782e776172632e677a181da20107091b0000010000000000"
	if hex.EncodeToString(got) != want {
		t.Errorf("manifest is\n%x\nwant\n%s", got, want)
	}
}
