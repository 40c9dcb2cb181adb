package blobschema

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/partition"
)

func TestNames(t *testing.T) {
	seeds := []byte("https://example.org/")
	for got, want := range map[string]string{
		CommitName("web-1", 3, 17, 2):                     "web-1/p00003/c0000000017-f00000002",
		CommitName("a", 4095, math.MaxUint64, 1234567890): "a/p04095/c18446744073709551615-f1234567890",
		RunName("web-1", 3, 17, 2, 1):                     "web-1/p00003/r0000000017-f00000002-t1",
		PartitionPrefix("web-1", 3):                       "web-1/p00003/",
		WARCPrefix("web-1"):                               "web-1/warc/",
		WARCName("web-1", 3, 2, 17, GzipFast):             "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz",
		WARCName("web-1", 3, 2, 17, Gzip6):                "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz",
		WARCName("web-1", 3, 2, 17, None):                 "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc",
		SeedsName("web-1", seeds):                         "web-1/seeds/8198d1bac40a",
		DeadName("web-1", seeds):                          "web-1/dead/8198d1bac40a1033653a78e48800cefc",
		ReplayedName(DeadName("web-1", seeds)):            "web-1/dead/8198d1bac40a1033653a78e48800cefc.replayed",
		CDXJName("web-1", 3, 17):                          "web-1/cdxj/p00003-c0000000017.cdxj",
		CDXJIndexName("web-1"):                            "web-1/cdxj/index.cdxj",
		ActiveKey:                                         "active",
		CrawlKey("web-1"):                                 "web-1/crawl",
		HeadKey("web-1", 3):                               "web-1/head/00003",
		WishKey("web-1"):                                  "web-1/wish",
		GrantsKey("web-1"):                                "web-1/grants",
		HostsKey("web-1", 3, 12):                          "web-1/hosts/00003/0012",
		MailboxQueue(3):                                   "mailbox-00003",
		WakesQueue:                                        "wakes",
		IntakeQueue:                                       "intake",
		DeadLettersQueue:                                  "dead-letters",
	} {
		if got != want {
			t.Errorf("name is %s, want %s", got, want)
		}
	}
	if a, b := CommitName("a", 1, 9_999_999_999, 1), CommitName("a", 1, 10, 1); a < b {
		t.Errorf("%s sorts before %s", a, b)
	}
}

func TestParseNames(t *testing.T) {
	name := "web-1/p00003/c0000000017-f00000002"
	if p, seq, fence, err := ParseCommitName(name); p != 3 || seq != 17 || fence != 2 || err != nil {
		t.Errorf("ParseCommitName(%s) = %d, %d, %d, %v", name, p, seq, fence, err)
	}
	name = "web-1/p00003/r0000000017-f00000002-t1"
	if p, seq, fence, tier, err := ParseRunName(name); p != 3 || seq != 17 || fence != 2 || tier != 1 || err != nil {
		t.Errorf("ParseRunName(%s) = %d, %d, %d, %d, %v", name, p, seq, fence, tier, err)
	}
	for _, name := range []string{
		"web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz",
		"web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc",
		"p1/warc/orbweaver-p1-p00003-f00000002-000017.warc",
	} {
		if p, fence, serial, err := ParseWARCName(name); p != 3 || fence != 2 || serial != 17 || err != nil {
			t.Errorf("ParseWARCName(%s) = %d, %d, %d, %v", name, p, fence, serial, err)
		}
	}
	for _, name := range []string{
		"", "/", "web-1", "web-1/p00003/", "web-1/p3/c0000000017-f00000002", "web-1/p00003/c17-f2",
		"web-1/p00003/c0000000017-f00000002/", "/p00003/c0000000017-f00000002", "Web/p00003/c0000000017-f00000002",
		"web-1/p00003/c0000000017-f00000002.tmp", "web-1/p00003/c+000000017-f00000002", "web-1/p-0003/c0000000017-f00000002",
		"web-1/p00003/c99999999999999999999-f00000002", "web-1/p00003/r0000000017-f00000002-t256", "web-1/p00003/r0000000017-f00000002-t01",
		"web-1/warc/orbweaver-web-2-p00003-f00000002-000017.warc.gz", "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.zst",
		"orbweaver-web-1-p00003-f00000002-000017.warc.gz",
	} {
		if _, _, _, err := ParseCommitName(name); err == nil {
			t.Errorf("ParseCommitName took %q", name)
		}
		if _, _, _, _, err := ParseRunName(name); err == nil {
			t.Errorf("ParseRunName took %q", name)
		}
		if _, _, _, err := ParseWARCName(name); err == nil {
			t.Errorf("ParseWARCName took %q", name)
		}
	}
}

func TestParseIndexAndRankNames(t *testing.T) {
	seg, man := SegmentName("web-1", 3, 17, []byte("x")), IndexManifestName("web-1", 3, 17, []byte("x"))
	for _, name := range []string{seg, man} {
		if p, n, err := ParseIndexName(name); p != 3 || n != 17 || err != nil || !strings.HasPrefix(name, IndexPrefix("web-1")) {
			t.Errorf("ParseIndexName(%s) = %d, %d, %v", name, p, n, err)
		}
		for _, bad := range []string{name + "0", name[:len(name)-1], name + ".tmp", strings.ToUpper(name), strings.Replace(name, "p00003", "p3", 1), strings.Replace(name, "index", "rank", 1)} {
			if _, _, err := ParseIndexName(bad); err == nil {
				t.Errorf("ParseIndexName took %q", bad)
			}
		}
	}
	rank := RankObjectName("web-1", 3, 17, "r0004", []byte("x"))
	if p, job, what, err := ParseRankObjectName(rank); p != 3 || job != 17 || what != "r0004" || err != nil {
		t.Errorf("ParseRankObjectName(%s) = %d, %d, %q, %v", rank, p, job, what, err)
	}
	for _, bad := range []string{seg, rank + "0", "/" + rank, strings.Replace(rank, "r0004", "", 1), strings.Replace(rank, "r0004", "a-b", 1), strings.Replace(rank, "j00000017", "j17", 1)} {
		if _, _, _, err := ParseRankObjectName(bad); err == nil {
			t.Errorf("ParseRankObjectName took %q", bad)
		}
	}
}

func TestCheckCrawlID(t *testing.T) {
	for _, id := range []string{"a", "web-2026", "-", strings.Repeat("z", 32)} {
		if err := CheckCrawlID(id); err != nil {
			t.Error(err)
		}
	}
	for _, id := range []string{"", "A", "a b", "a/b", "ä", "a_b", "a.b", "a\n", strings.Repeat("z", 33)} {
		if CheckCrawlID(id) == nil {
			t.Errorf("crawl id %q is taken", id)
		}
	}
}

func TestCommitNames(t *testing.T) {
	m := Manifest{Crawl: "c", Partition: partition.ID(7), Seq: 6, Fence: 4, Commits: []CommitRange{{2, 1, 3}, {3, 5, 5}}}
	want := []string{
		"c/p00007/c0000000001-f00000002", "c/p00007/c0000000002-f00000002", "c/p00007/c0000000003-f00000002",
		"c/p00007/c0000000005-f00000003", "c/p00007/c0000000006-f00000004",
	}
	if diff := cmp.Diff(want, slices.Collect(CommitNames(&m))); diff != "" {
		t.Errorf("names differ (-want +got):\n%s", diff)
	}
	for name := range CommitNames(&m) {
		if name != want[0] {
			t.Errorf("went on to %s after the loop ended", name)
		}
		break
	}
	// Ranges that no manifest may hold still come to an end.
	m.Commits = []CommitRange{{1, 5, math.MaxUint64}}
	if n := len(slices.Collect(CommitNames(&m))); n != 2 {
		t.Errorf("%d names of a range without end", n)
	}
}

func FuzzNames(f *testing.F) {
	f.Add("web-1/p00003/c0000000017-f00000002")
	f.Add("web-1/p00003/r0000000017-f00000002-t1")
	f.Add("web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz")
	f.Fuzz(func(t *testing.T, name string) {
		crawl, _, _ := strings.Cut(name, "/")
		if p, seq, fence, err := ParseCommitName(name); err == nil && CommitName(crawl, p, seq, fence) != name {
			t.Errorf("%q is not the name of its commit", name)
		}
		if p, seq, fence, tier, err := ParseRunName(name); err == nil && RunName(crawl, p, seq, fence, tier) != name {
			t.Errorf("%q is not the name of its run", name)
		}
		if p, fence, serial, err := ParseWARCName(name); err == nil && WARCName(crawl, p, fence, serial, GzipFast) != name &&
			WARCName(crawl, p, fence, serial, None) != name {
			t.Errorf("%q is not the name of its WARC", name)
		}
	})
}
