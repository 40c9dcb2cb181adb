package polite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
)

// lines joins the lines of a robots.txt.
func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

// verdicts returns "+" for each allowed path and "-" for each other.
func verdicts(r *Robots, paths []string) string {
	var b strings.Builder
	for _, p := range paths {
		if ok, _ := r.Allowed(p); ok {
			b.WriteByte('+')
		} else {
			b.WriteByte('-')
		}
	}
	return b.String()
}

// TestAllowed checks paths, separated by spaces; want has "+" or "-" for each.
func TestAllowed(t *testing.T) {
	const token = "FooBot"
	star := func(rules ...string) string { return lines(append([]string{"User-agent: *"}, rules...)...) }
	for _, c := range []struct {
		name, robots, paths, want string
	}{
		// RFC 9309 section 2.2.2, the examples of the table, escaped on one side or both.
		{"rfc query", star("Disallow: /foo/bar?baz=quz"), "/foo/bar?baz=quz /foo/bar?baz=qu /foo/bar", "-++"},
		{"rfc query with URL", star("Disallow: /foo/bar?baz=https://foo.bar"), "/foo/bar?baz=https://foo.bar", "-"},
		{"rfc query with escaped URL", star("Disallow: /foo/bar?baz=https%3A%2F%2Ffoo.bar"), "/foo/bar?baz=https%3a%2f%2ffoo.bar", "-"},
		{"rfc UTF-8", star("Disallow: /foo/bar/ツ"), "/foo/bar/ツ /foo/bar/%E3%83%84 /foo/bar/%e3%83%84 /foo/bar/%E3", "---+"},
		{"rfc escaped UTF-8", star("Disallow: /foo/bar/%E3%83%84"), "/foo/bar/ツ /foo/bar/%E3%83%84", "--"},
		{"rfc escaped ASCII", star("Disallow: /foo/bar/%62%61%7A"), "/foo/bar/baz /foo/bar/%62a%7a", "--"},
		// Section 2.2.3, special characters.
		{"rfc comment", star("Disallow: / # all of it"), "/ /x", "--"},
		{"rfc end", star("Allow: /this/path/exactly$", "Disallow: /"), "/this/path/exactly /this/path/exactly/no", "+-"},
		{"rfc star", star("Allow: /this/*/exactly", "Disallow: /"), "/this/x/y/exactly/z /this/exactly", "+-"},
		{"rfc literal star", star("Disallow: /path/file-with-a-%2A.html"), "/path/file-with-a-*.html /path/file-with-a-%2a.html /path/file-with-a-x.html", "--+"},
		{"rfc literal dollar", star("Disallow: /path/foo-%24"), "/path/foo-$ /path/foo-$x /path/foo-", "--+"},
		// Section 5.1, the simple example.
		{"rfc 5.1 *", lines("User-Agent: *", "Disallow: *.gif$", "Disallow: /example/", "Allow: /publications/",
			"", "User-Agent: otherbot", "Disallow: /", "", "User-Agent: EOF"),
			"/a.gif /a.gifs /example/x /publications/x.gif /publications/ /x", "-+-+++"},
		{"rfc 5.1 own", lines("User-Agent: *", "Disallow: *.gif$", "Disallow: /example/", "Allow: /publications/",
			"", "User-Agent: foobot", "Disallow:/", "Allow:/example/page.html", "Allow:/example/allowed.gif",
			"", "User-Agent: barbot", "User-Agent: bazbot", "Disallow: /example/page.html", "", "User-Agent: quxbot"),
			"/ /example/page.html /example/allowed.gif /a.gif /publications/", "-++--"},
		// Section 5.2, the longest match.
		{"rfc 5.2", lines("User-Agent: foobot", "Allow: /example/page/", "Disallow: /example/page/disallowed.gif"),
			"/example/page/disallow.gif /example/page/disallowed.gif", "+-"},
		// Section 2.2.1, groups.
		{"rfc merged groups", lines("user-agent: foobot", "disallow: /foo", "disallow: /bar", "", "user-agent: barbot",
			"disallow: /baz", "", "user-agent: foobot", "disallow: /qux"), "/foo /bar /baz /qux", "--+-"},
		{"rfc no group", lines("user-agent: barbot", "disallow: /"), "/", "+"},

		{"empty", "", "/ /x", "++"},
		{"html", "<!doctype html>\n<title>User-agent: *</title>\n<p>Disallow: /</p>", "/", "+"},
		{"system test", star("Disallow: /"), "/robots.txt /robots.txt?x /robots.txtx /", "+---"},
		{"system test escaped", star("Disallow: /"), "/%72obots.txt", "+"},

		// Lines.
		{"no colon", lines("user-agent FooBot", "disallow /"), "/x", "-"},
		{"no colon, colon in value", lines("user-agent FooBot", "disallow /a:b"), "/a:bc /a", "-+"},
		{"no colon, three words", star("disallow / x"), "/", "+"},
		{"no colon, three words, the first path ours", star("disallow /x y"), "/x%20y /x", "++"},
		{"no colon, blanks around", star("\t disallow /x \t"), "/x /y", "-+"},
		{"blanks around", "\t user-agent \t:  FooBot \n\vdisallow \t: /x\t \n", "/x /y", "-+"},
		{"case of keys", lines("USER-AGENT: FOOBOT", "DisAllow: /X"), "/X /x", "-+"},
		{"misspelt", lines("useragent: *", "dissallow: /a", "dissalow: /b", "disalow: /c", "diasllow: /d", "disallaw: /e"), "/a /b /c /d /e", "-----"},
		{"unknown", lines("foo: FooBot", "bar: /"), "/x", "+"},
		{"CR", "user-agent: FooBot\rdisallow: /x\r", "/x /y", "-+"},
		{"CRLF", "user-agent: FooBot\r\n\r\ndisallow: /x", "/x /y", "-+"},
		{"byte order mark", "\xEF\xBB\xBFUser-Agent: foobot\nDisallow: /", "/", "-"},
		{"part of one", "\xEF\xBBUser-Agent: foobot\nDisallow: /", "/", "-"},
		{"none", "\xEF\x11\xBFUser-Agent: foobot\nDisallow: /", "/", "+"},
		{"mark not at the start", "User-Agent: foobot\n\xEF\xBB\xBFDisallow: /", "/", "+"},
		{"comment lines", lines("User-agent: *#x", "#Disallow: /a", "Disallow: /b#c"), "/a /b /bx /b#c", "+---"},
		{"bad bytes", "User-agent: *\n\x00\xff\xfe: \x00\nDisallow: /\xff\x00\nDisallow: /b", "/b /%FF%00x /a", "--+"},

		// Groups.
		{"rules before any", lines("disallow: /a", "user-agent: *", "disallow: /b"), "/a /b", "+-"},
		{"consecutive agents", lines("User-agent: a", "User-agent: FooBot", "", "# x", "User-agent: b", "Disallow: /"), "/", "-"},
		{"agent after rules", lines("User-agent: FooBot", "Disallow: /a", "User-agent: b", "Disallow: /b"), "/a /b", "-+"},
		{"empty rule ends agents", lines("User-agent: FooBot", "Disallow:", "User-agent: b", "Disallow: /"), "/", "+"},
		{"sitemap does not", lines("User-agent: FooBot", "Sitemap: https://a.example/", "User-agent: *", "Disallow: /"), "/", "-"},
		{"unknown does not", lines("User-agent: FooBot", "Noindex: /", "User-agent: b", "Disallow: /"), "/", "-"},
		{"crawl-delay does not", lines("User-agent: FooBot", "Crawl-delay: 1", "User-agent: b", "Disallow: /"), "/", "-"},
		{"unknown in a group", lines("User-agent: FooBot", "Disallow: /a", "Foo: bar", "Disallow: /b"), "/a /b", "--"},
		{"own over star", lines("User-agent: *", "Disallow: /", "User-agent: foobot", "Allow: /"), "/", "+"},
		{"own before star", lines("User-agent: foobot", "Disallow: /a", "User-agent: *", "Disallow: /b"), "/a /b", "-+"},
		{"own and empty", lines("User-agent: *", "Disallow: /", "User-agent: FooBot"), "/", "+"},
		{"star and own in one", lines("User-agent: *", "User-agent: foobot", "Disallow: /a", "User-agent: *", "Disallow: /b"), "/a /b", "-+"},
		{"star with words", lines("User-agent: * everyone", "Disallow: /"), "/", "-"},
		{"star within", lines("User-agent: *bot", "Disallow: /"), "/", "+"},
		{"version", lines("User-agent: FooBot/1.2", "Disallow: /"), "/", "-"},
		{"words", lines("User-agent: foobot nowhere", "Disallow: /"), "/", "-"},
		{"prefix of ours", lines("User-agent: foo", "Disallow: /"), "/", "+"},
		{"ours is a prefix", lines("User-agent: foobot-images", "Disallow: /"), "/", "+"},
		{"suffix of ours", lines("User-agent: bot", "Disallow: /"), "/", "+"},
		{"nobody", lines("User-agent: *", "Disallow: /a", "User-agent:", "Disallow: /b", "User-agent: /", "Disallow: /c"), "/a /b /c", "-++"},

		// Precedence.
		{"longest", star("disallow: /x/page.html", "allow: /x/"), "/x/page.html /x/", "-+"},
		{"longest allow", star("allow: /x/page.html", "disallow: /x/"), "/x/page.html /x/ /x", "+-+"},
		{"both empty", star("disallow: ", "allow: "), "/", "+"},
		{"tie", star("disallow: /", "allow: /"), "/x", "+"},
		{"tie of patterns", star("disallow: /x*", "allow: /x/"), "/x/ /xy", "+-"},
		{"tie with end", star("allow: /page", "disallow: /*.html"), "/page.html /page", "-+"},
		{"longer pattern", star("allow: /x/page.", "disallow: /*.html"), "/x/page.html /x/y.html", "+-"},
		{"end is an octet", star("allow: /x/page", "disallow: /*/page$"), "/x/page", "-"},
		{"escaped counts as escaped", star("allow: /*******", "disallow: /ツ"), "/ツ", "-"},
		{"star at the end counts", star("disallow: /fish", "allow: /fish*"), "/fish", "+"},
		{"home only", star("disallow: /", "allow: /$"), "/ /page.html /?x", "+--"},
		{"case of paths", star("disallow: /X/"), "/x/y /X/y", "+-"},

		// Wildcards.
		{"fish", star("Disallow: /fish"), "/fish /fish.html /fish/salmon.html /fishheads /fish.php?id=x /Fish.asp /catfish /?id=fish", "-----+++"},
		{"fish*", star("Disallow: /fish*"), "/fish /fish.html /fish/salmon.html /fishheads /fish.php?id=x /Fish.bar /catfish", "-----++"},
		{"fish/", star("Disallow: /fish/"), "/fish/ /fish/salmon /fish/?salmon /fish /fish.html /Fish/", "---+++"},
		{"*.php", star("Disallow: /*.php"), "/filename.php /folder/filename.php /folder/filename.php?p /f.php.html /php/ /index?php /windows.PHP", "----+++"},
		{"*.php$", star("Disallow: /*.php$"), "/filename.php /folder/filename.php /filename.php?p /filename.php/ /filename.php5 /php.php", "--+++-"},
		{"fish*.php", star("Disallow: /fish*.php"), "/fish.php /fishheads/catfish.php?p /Fish.PHP /fish.ph", "--++"},
		{"fish*$", star("Disallow: /fish*$"), "/fish /fishes /fis", "--+"},
		{"all", star("Disallow: *"), "/ /x", "--"},
		{"end only", star("Disallow: /x$y"), "/x$y /x$yz /x", "--+"},
		{"two ends", star("Disallow: /x$$"), "/x$ /x /x$y", "-++"},
		{"not at the start", star("Disallow: /p$"), "/x/p /p", "+-"},
		{"many stars", star("Disallow: /**a**b**"), "/xaxxb /xb /ab", "-+-"},
		{"last fits later", star("Disallow: /a*b$"), "/abxb /abx /ab", "-+-"},
		{"overlap", star("Disallow: /*aba*aba$"), "/ababa /abaaba", "+-"},
		{"prefix and end overlap", star("Disallow: /ab*b$"), "/ab /abb", "+-"},
		{"several lists", star("Disallow: /a*x", "Allow: /a/b*xyz", "Disallow: /a/b/c$"), "/a/x /a/b/xyz /a/b/xy /a/b/c /a/b/cd", "-+--+"},
		{"no slash", star("Disallow: private/"), "/private/x /x", "-+"},
		{"slash and its escape", star("Disallow: /a%2fb"), "/a%2Fb /a/b", "-+"},
		{"broken escapes", star("Disallow: /a%zz", "Disallow: /b%", "Disallow: /c%4"), "/a%zz /b%25 /c%4 /c%41", "---+"},
		{"double escapes", star("Disallow: /%2541"), "/%2541 /A /%41", "-++"},
		{"odd characters", star(`Disallow: /a|"b`), `/a|"b /a%7C%22b`, "--"},
		{"URI without slash", star("Disallow: /$", "Disallow: /?x"), "?x x", "-+"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := ParseRobots([]byte(c.robots), token)
			paths := strings.Fields(c.paths)
			if got := verdicts(r, paths); got != c.want {
				t.Errorf("%q\n%v\ngot  %s\nwant %s", c.robots, paths, got, c.want)
			}
			stored, err := DecodeRobots(r.Encode())
			if err != nil {
				t.Fatal(err)
			}
			if got := verdicts(stored, paths); got != c.want {
				t.Errorf("after storing: got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAllowedEmptyURI(t *testing.T) {
	r := ParseRobots([]byte("User-agent: *\nDisallow: /$"), "bot")
	if ok, _ := r.Allowed(""); ok {
		t.Error("the empty path is /")
	}
}

func TestAllowedFragment(t *testing.T) {
	r := ParseRobots([]byte("User-agent: *\nDisallow: /a$"), "bot")
	if ok, _ := r.Allowed("/a#b"); ok {
		t.Error("a fragment is no part of what is asked for")
	}
}

func TestRuleThatDecides(t *testing.T) {
	r := ParseRobots([]byte("# x\r\nUser-agent: *\r\rDisallow : /a # x\nallow:/a/ツ*$\ndisallow: /a\nDisallow: /b\nAllow: /b\n"), "bot")
	for _, c := range []struct {
		uri  string
		want Rule
	}{
		{"/ab", Rule{Line: 4, Text: "Disallow: /a"}},
		{"/a/ツ", Rule{Line: 5, Text: "Allow: /a/%E3%83%84*$", Allow: true}},
		{"/b", Rule{Line: 8, Text: "Allow: /b", Allow: true}},
		{"/c", Rule{Allow: true}},
		{"/robots.txt", Rule{Allow: true}},
	} {
		ok, got := r.Allowed(c.uri)
		if diff := cmp.Diff(c.want, got); diff != "" || ok != c.want.Allow {
			t.Errorf("%s: %v (-want +got):\n%s", c.uri, ok, diff)
		}
	}
}

func TestToken(t *testing.T) {
	body := []byte(lines("User-agent: Orb_weaver-x", "Disallow: /a", "User-agent: *", "Disallow: /b"))
	for token, want := range map[string]string{
		"orb_weaver-x": "-+", "orb_weaver-xz": "+-", "ORB_WEAVER-X/1.0 (+https://a.example)": "-+", "orb": "+-", "": "+-", "123": "+-",
	} {
		if got := verdicts(ParseRobots(body, token), []string{"/a", "/b"}); got != want {
			t.Errorf("%q: got %s, want %s", token, got, want)
		}
	}
}

func TestCrawlDelay(t *testing.T) {
	for _, c := range []struct {
		value string
		want  time.Duration
		ok    bool
	}{
		{"10", 10 * time.Second, true},
		{"10s", 10 * time.Second, true},
		{"10 seconds # x", 10 * time.Second, true},
		{"0.5", 500 * time.Millisecond, true},
		{".5", 500 * time.Millisecond, true},
		{"5.", 5 * time.Second, true},
		{"+1.1", 1100 * time.Millisecond, true},
		{"1.0004", time.Second, true},
		{"0", 0, true},
		{"-3", 0, true},
		{"1e30", MaxCrawlDelay, true},
		{"1e999", MaxCrawlDelay, true},
		{"-1e999", 0, true},
		{"1E+1x", 10 * time.Second, true},
		{"1e-1", 100 * time.Millisecond, true},
		{"2e", 2 * time.Second, true},
		{"2e+", 2 * time.Second, true},
		{"2ex5", 2 * time.Second, true},
		{"2E1", 20 * time.Second, true},
		{"86400", MaxCrawlDelay, true},
		{strings.Repeat("9", 10_000), MaxCrawlDelay, true},
		{"", 0, false},
		{"nan", 0, false},
		{"inf", 0, false},
		{"-", 0, false},
		{".", 0, false},
		{"e5", 0, false},
		{"ten", 0, false},
		{"0x10", 0, true},
	} {
		r := ParseRobots([]byte("User-agent: *\nCrawl-delay: "+c.value+"\nDisallow: /a"), "bot")
		if got, ok := r.CrawlDelay(); got != c.want || ok != c.ok {
			t.Errorf("%.20q: got %v %v, want %v %v", c.value, got, ok, c.want, c.ok)
		}
		if ok, _ := r.Allowed("/a"); ok {
			t.Errorf("%.20q: the line spoilt the next", c.value)
		}
	}
}

func TestCrawlDelayOfGroups(t *testing.T) {
	for _, c := range []struct {
		name, robots string
		want         time.Duration
		ok           bool
	}{
		{"of star", lines("User-agent: *", "Crawl-delay: 3"), 3 * time.Second, true},
		{"of another", lines("User-agent: x", "Crawl-delay: 3"), 0, false},
		{"own has none", lines("User-agent: *", "Crawl-delay: 3", "Disallow:", "User-agent: bot", "Disallow:"), 0, false},
		{"longest", lines("User-agent: bot", "Crawl-delay: 3", "Disallow: /", "Crawldelay: 5", "User-agent: bot", "crawl delay: 4"), 5 * time.Second, true},
		{"agents above", lines("User-agent: x", "Crawl-delay: 3", "User-agent: bot", "Disallow: /"), 0, false},
		{"before any", lines("Crawl-delay: 3", "User-agent: *", "Disallow: /"), 0, false},
	} {
		if got, ok := ParseRobots([]byte(c.robots), "bot").CrawlDelay(); got != c.want || ok != c.ok {
			t.Errorf("%s: got %v %v, want %v %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

func TestSitemaps(t *testing.T) {
	long := "https://a.example/" + strings.Repeat("x", maxSitemapBytes)
	body := lines("Sitemap: https://a.example/1", "User-agent: x", "sitemap : /2 # x", "Disallow: /", "SITEMAP:",
		"Site-map:"+long[:maxSitemapBytes], "Sitemap: "+long, "Sitemap https://a.example/4")
	got := ParseRobots([]byte(body), "bot").Sitemaps()
	want := []string{"https://a.example/1", "/2", long[:maxSitemapBytes]}
	// The line without a colon has one in its value, and begins with a known word.
	want = append(want, "https://a.example/4")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	r := ParseRobots([]byte(strings.Repeat("Sitemap: x\n", maxSitemaps+1)), "bot")
	if n := len(r.Sitemaps()); n != maxSitemaps {
		t.Errorf("%d sitemaps kept, want %d", n, maxSitemaps)
	}
	r.Sitemaps()[0] = "changed"
	if r.Sitemaps()[0] != "x" {
		t.Error("the caller can change a Robots")
	}
}

func TestSizeBound(t *testing.T) {
	const rule = "Disallow: /private/x"
	head := "User-agent: *\n"
	fill := func(n int) string { // n bytes that end a line
		return head + strings.Repeat("#", n-len(head)-1) + "\n"
	}
	for _, c := range []struct {
		name, body, want string
	}{
		{"whole, at the very end", fill(maxRobotsBytes-len(rule)) + rule, "-+"},
		{"whole, its end just beyond", fill(maxRobotsBytes-len(rule)) + rule + "\nDisallow: /", "-+"},
		{"whole, CR just beyond", fill(maxRobotsBytes-len(rule)) + rule + "\rDisallow: /", "-+"},
		{"cut", fill(maxRobotsBytes-len(rule)+1) + rule, "++"},
		{"beyond", fill(maxRobotsBytes) + rule, "++"},
		{"one line", strings.Repeat("x", 2*maxRobotsBytes), "++"},
	} {
		if got := verdicts(ParseRobots([]byte(c.body), "bot"), []string{"/private/x", "/priv"}); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

func TestForStatus(t *testing.T) {
	body := []byte("User-agent: *\nDisallow: /a")
	for _, c := range []struct {
		status int
		want   string
		later  bool
	}{
		{199, "--", true}, {200, "-+", false}, {204, "-+", false}, {299, "-+", false},
		{300, "++", false}, {301, "++", false}, {399, "++", false},
		{400, "++", false}, {401, "++", false}, {403, "++", false}, {404, "++", false}, {410, "++", false}, {451, "++", false}, {499, "++", false},
		{429, "--", true},
		{500, "--", true}, {503, "--", true}, {599, "--", true},
		{0, "--", true}, {100, "--", true}, {999, "--", true}, {-1, "--", true},
	} {
		r := ForStatus(c.status, body, "bot")
		if got := verdicts(r, []string{"/a", "/b"}); got != c.want || r.Unreachable() != c.later {
			t.Errorf("%d: got %s, unreachable %v", c.status, got, r.Unreachable())
		}
		if ok, _ := r.Allowed("/robots.txt"); !ok {
			t.Errorf("%d: robots.txt itself is refused", c.status)
		}
	}
}

func TestReason(t *testing.T) {
	for _, r := range []*Robots{allowAll("why"), DenyAll(blobschema.OutcomeNone, "why")} {
		_, rule := r.Allowed("/x")
		if diff := cmp.Diff(Rule{Text: "why", Allow: !r.Unreachable()}, rule); diff != "" || r.Reason() != "why" {
			t.Errorf("%q -want +got:\n%s", r.Reason(), diff)
		}
	}
	for status, want := range map[int]string{0: "robots.txt: no answer", 404: "robots.txt: status 404", 503: "robots.txt: status 503"} {
		if got := ForStatus(status, nil, "bot").Reason(); got != want {
			t.Errorf("%d: %q, want %q", status, got, want)
		}
	}
	long := allowAll(strings.Repeat("ツ", 1000)).Reason()
	if want := strings.Repeat("ツ", maxReasonBytes/3); long != want {
		t.Errorf("got %d bytes: %q", len(long), long)
	}
}

// TestRefusal checks the reasons: a host that cannot be reached is refused as unreachable, and one with wrong answers for its
// missing robots.txt.
func TestRefusal(t *testing.T) {
	for o, want := range map[blobschema.Outcome]blobschema.Outcome{
		blobschema.OutcomeDNS: blobschema.OutcomeDNS, blobschema.OutcomeForbidden: blobschema.OutcomeForbidden,
		blobschema.OutcomeConnect: blobschema.OutcomeConnect, blobschema.OutcomeTLS: blobschema.OutcomeTLS,
		blobschema.OutcomeTimeout: blobschema.OutcomeRobotsGone, blobschema.OutcomeCut: blobschema.OutcomeRobotsGone,
		blobschema.OutcomeProtocol: blobschema.OutcomeRobotsGone, blobschema.OutcomeServerError: blobschema.OutcomeRobotsGone,
	} {
		if got := DenyAll(o, "why").Refusal(); got != want {
			t.Errorf("%s: URLs are refused with %s, want %s", o, got, want)
		}
	}
	if got := ParseRobots([]byte("User-agent: *\nDisallow: /"), "bot").Refusal(); got != blobschema.OutcomeRobots {
		t.Errorf("a rule refuses with %s", got)
	}
}

func ExampleRobots_Allowed() {
	r := ParseRobots([]byte("User-agent: *\nDisallow: /shop\nAllow: /shop/*.html$\n"), "orbweaver")
	fmt.Println(r.Allowed("/shop/basket"))
	fmt.Println(r.Allowed("/shop/boots.html"))
	// Output:
	// false {2 Disallow: /shop false}
	// true {3 Allow: /shop/*.html$ true}
}
