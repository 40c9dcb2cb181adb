package naming

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	seeds := []byte("https://example.org/")
	for got, want := range map[string]string{
		Commit("web-1", 3, 17, 2):                     "web-1/p00003/c0000000017-f00000002",
		Commit("a", 4095, math.MaxUint64, 1234567890): "a/p04095/c18446744073709551615-f1234567890",
		Run("web-1", 3, 17, 2, 1):                     "web-1/p00003/r0000000017-f00000002-t1",
		WARCPrefix("web-1"):                           "web-1/warc/",
		WARC("web-1", 3, 2, 17, true):                 "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz",
		WARC("web-1", 3, 2, 17, false):                "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc",
		Seeds("web-1", seeds):                         "web-1/seeds/8198d1bac40a",
		Dead("web-1", seeds):                          "web-1/dead/8198d1bac40a1033653a78e48800cefc",
		Replayed(Dead("web-1", seeds)):                "web-1/dead/8198d1bac40a1033653a78e48800cefc.replayed",
		CDXJIndex("web-1"):                            "web-1/cdxj/index.cdxj",
		ActiveKey:                                     "active",
		CrawlKey("web-1"):                             "web-1/crawl",
		HeadKey("web-1", 3):                           "web-1/head/00003",
		DesiredKey("web-1"):                           "web-1/wish",
		GrantsKey("web-1"):                            "web-1/grants",
		HostsKey("web-1", 3, 12):                      "web-1/hosts/00003/0012",
		MailboxQueue(3):                               "mailbox-00003",
		RankKey("c"):                                  "c/rank",
		RankHeadKey("c", 3):                           "c/rank/00003",
		RankObject("c", 3, 12, "graph", nil):          "c/rank/p00003/j00000012-graph-e3b0c44298fc1c14",
		RankPrefix("c"):                               "c/rank/",
		RequestsKey("c"):                              "c/requests",
		ClaimsKey("c"):                                "c/claims",
		TickKey("c"):                                  "c/tick",
		MapKey("c"):                                   "c/map",
		IndexKey("c", 3):                              "c/index/00003",
		IndexPrefix("c"):                              "c/index/",
		Ranks("c", seeds):                             "c/ranks/8198d1bac40a1033",
		Request("c", seeds):                           "c/requests/8198d1bac40a1033653a78e4",
		Map("c", 12, seeds):                           "c/maps/e00000012-8198d1bac40a1033",
		Segment("c", 3, 17, seeds):                    "c/index/p00003/s0000000017-8198d1bac40a1033",
		IndexManifest("c", 3, 17, seeds):              "c/index/p00003/m0000000017-8198d1bac40a1033",
		WakesQueue:                                    "wakes",
		IntakeQueue:                                   "intake",
		DeadLettersQueue:                              "dead-letters",
	} {
		if got != want {
			t.Errorf("name is %s, want %s", got, want)
		}
	}
	if dead := Dead("c", seeds); IsReplayed(dead) || !IsReplayed(Replayed(dead)) {
		t.Errorf("%s, or its note, is taken for the other", dead)
	}
	if a, b := Commit("a", 1, 9_999_999_999, 1), Commit("a", 1, 10, 1); a < b {
		t.Errorf("%s sorts before %s", a, b)
	}
}

func TestParseNames(t *testing.T) {
	name := "web-1/p00003/c0000000017-f00000002"
	if p, seq, fence, err := ParseCommit(name); p != 3 || seq != 17 || fence != 2 || err != nil {
		t.Errorf("ParseCommitName(%s) = %d, %d, %d, %v", name, p, seq, fence, err)
	}
	name = "web-1/p00003/r0000000017-f00000002-t1"
	if p, seq, fence, tier, err := ParseRun(name); p != 3 || seq != 17 || fence != 2 || tier != 1 || err != nil {
		t.Errorf("ParseRunName(%s) = %d, %d, %d, %d, %v", name, p, seq, fence, tier, err)
	}
	for _, name := range []string{
		"web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz",
		"web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc",
		"p1/warc/orbweaver-p1-p00003-f00000002-000017.warc",
	} {
		if p, fence, serial, err := ParseWARC(name); p != 3 || fence != 2 || serial != 17 || err != nil {
			t.Errorf("ParseWARCName(%s) = %d, %d, %d, %v", name, p, fence, serial, err)
		}
	}
	for _, name := range []string{
		"", "/", "web-1", "web-1/p00003/", "web-1/p3/c0000000017-f00000002", "web-1/p00003/c17-f2",
		"web-1/p00003/c0000000017-f00000002/", "/p00003/c0000000017-f00000002", "Web/p00003/c0000000017-f00000002",
		"web-1/p00003/c0000000017-f00000002.tmp", "web-1/p00003/c+000000017-f00000002", "web-1/p-0003/c0000000017-f00000002",
		"web-1/p00003/c99999999999999999999-f00000002", "web-1/p00003/r0000000017-f00000002-t256", "web-1/p00003/r0000000017-f00000002-t01",
		"Web/p00003/r0000000017-f00000002-t1", "Web/warc/orbweaver-Web-p00003-f00000002-000017.warc",
		"web-1/warc/orbweaver-web-2-p00003-f00000002-000017.warc.gz", "web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.zst",
		"orbweaver-web-1-p00003-f00000002-000017.warc.gz",
	} {
		if _, _, _, err := ParseCommit(name); err == nil {
			t.Errorf("ParseCommitName took %q", name)
		}
		if _, _, _, _, err := ParseRun(name); err == nil {
			t.Errorf("ParseRunName took %q", name)
		}
		if _, _, _, err := ParseWARC(name); err == nil {
			t.Errorf("ParseWARCName took %q", name)
		}
	}
}

func TestParseIndexAndRankNames(t *testing.T) {
	seg, man := Segment("web-1", 3, 17, []byte("x")), IndexManifest("web-1", 3, 17, []byte("x"))
	for _, name := range []string{seg, man} {
		if p, n, err := ParseIndex(name); p != 3 || n != 17 || err != nil || !strings.HasPrefix(name, IndexPrefix("web-1")) {
			t.Errorf("ParseIndexName(%s) = %d, %d, %v", name, p, n, err)
		}
		for _, bad := range []string{name + "0", name[:len(name)-1], name + ".tmp", strings.ToUpper(name), strings.Replace(name, "p00003", "p3", 1), strings.Replace(name, "index", "rank", 1),
			strings.Replace(name, "web-1", "Web", 1), strings.NewReplacer("/s", "/c", "/m", "/c").Replace(name)} {
			if _, _, err := ParseIndex(bad); err == nil {
				t.Errorf("ParseIndexName took %q", bad)
			}
		}
	}
	rank := RankObject("web-1", 3, 17, "r0004", []byte("x"))
	if p, job, what, err := ParseRankObject(rank); p != 3 || job != 17 || what != "r0004" || err != nil {
		t.Errorf("ParseRankObjectName(%s) = %d, %d, %q, %v", rank, p, job, what, err)
	}
	for _, bad := range []string{seg, rank + "0", "/" + rank, strings.Replace(rank, "r0004", "", 1), strings.Replace(rank, "r0004", "a-b", 1), strings.Replace(rank, "j00000017", "j17", 1)} {
		if _, _, _, err := ParseRankObject(bad); err == nil {
			t.Errorf("ParseRankObjectName took %q", bad)
		}
	}
}

func TestParseMap(t *testing.T) {
	name := Map("web-1", 12, []byte("x"))
	if epoch, err := ParseMap(name); epoch != 12 || err != nil || !strings.HasPrefix(name, MapPrefix("web-1")) {
		t.Errorf("ParseMap(%s) = %d, %v", name, epoch, err)
	}
	for _, bad := range []string{"", "/" + name, name + "0", name[:len(name)-1], strings.ToUpper(name), strings.Replace(name, "web-1", "Web", 1),
		strings.Replace(name, "e00000012", "e12", 1), strings.Replace(name, "maps", "map", 1)} {
		if _, err := ParseMap(bad); err == nil {
			t.Errorf("ParseMap took %q", bad)
		}
	}
}

func TestCheckCrawlID(t *testing.T) {
	for _, id := range []string{"a", "web-2026", "-", "09", strings.Repeat("z", 32)} {
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

func FuzzNames(f *testing.F) {
	f.Add("web-1/p00003/c0000000017-f00000002")
	f.Add("web-1/p00003/r0000000017-f00000002-t1")
	f.Add("web-1/warc/orbweaver-web-1-p00003-f00000002-000017.warc.gz")
	f.Add("web-1/index/p00003/s0000000017-8198d1bac40a1033")
	f.Add("web-1/rank/p00003/j00000012-graph-e3b0c44298fc1c14")
	f.Fuzz(func(t *testing.T, name string) {
		crawl, _, _ := strings.Cut(name, "/")
		_, hash, _ := strings.Cut(name[max(len(name)-17, 0):], "-")
		if p, n, err := ParseIndex(name); err == nil && fmt.Sprintf("%s/index/p%05d/s%010d-%s", crawl, p, n, hash) != name &&
			fmt.Sprintf("%s/index/p%05d/m%010d-%s", crawl, p, n, hash) != name {
			t.Errorf("%q is not the name of its index object", name)
		}
		if p, job, what, err := ParseRankObject(name); err == nil && fmt.Sprintf("%s/rank/p%05d/j%08d-%s-%s", crawl, p, job, what, hash) != name {
			t.Errorf("%q is not the name of its rank object", name)
		}
		if p, seq, fence, err := ParseCommit(name); err == nil && Commit(crawl, p, seq, fence) != name {
			t.Errorf("%q is not the name of its commit", name)
		}
		if p, seq, fence, tier, err := ParseRun(name); err == nil && Run(crawl, p, seq, fence, tier) != name {
			t.Errorf("%q is not the name of its run", name)
		}
		if p, fence, serial, err := ParseWARC(name); err == nil && WARC(crawl, p, fence, serial, true) != name &&
			WARC(crawl, p, fence, serial, false) != name {
			t.Errorf("%q is not the name of its WARC", name)
		}
	})
}

func TestKindOf(t *testing.T) {
	data := []byte("data")
	for name, want := range map[string]Kind{
		Commit("c", 3, 17, 2): State, Run("c", 3, 17, 2, 1): State, Map("c", 12, data): State, Seeds("c", data): State,
		Request("c", data): State, Dead("c", data): State, Replayed(Dead("c", data)): State,
		WARC("web-1", 3, 2, 17, true): Answers, WARC("c", 3, 2, 17, false): Answers,
		Segment("c", 3, 17, data): Derived, IndexManifest("c", 3, 17, data): Derived, RankObject("c", 3, 12, "graph", nil): Derived,
		Ranks("c", data): Derived, CDXJIndex("c"): Derived,
		IndexKey("c", 3): NoObject, RankHeadKey("c", 3): NoObject, HeadKey("c", 3): NoObject, ActiveKey: NoObject, CrawlKey("c"): NoObject,
		"": NoObject, "/": NoObject, SeedsPrefix("c"): NoObject, "/tmp/" + Commit("c", 3, 17, 2): NoObject, "C" + Seeds("c", data): NoObject,
	} {
		if got := KindOf(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
}

func TestUnfinished(t *testing.T) {
	object := Commit("c", 1, 2, 3)
	for name, want := range map[string]bool{
		object: false, object + ".18a3c5f012345678.tmp": true, object + ".tmp": false, object + ".18a3c5f012345678": false, "notes.tmp": false,
	} {
		if Unfinished(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
