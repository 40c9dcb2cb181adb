package search

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const site = "https://example.org/"

// TestQueries checks the set of pages that each query finds.
func TestQueries(t *testing.T) {
	ix := one(t,
		&page{url: site + "a", lang: "en", title: "Roasting coffee", headings: "Beans", body: "Coffee beans are roasted. A light roast keeps the taste."},
		&page{url: site + "b", lang: "en", title: "Green tea", body: "Tea leaves are steamed, not roasted like coffee beans.", anchor: "the best drink"},
		&page{url: site + "c", lang: "de", title: "Schöne Häuser", body: "Viele schöne Häuser stehen in der Stadt."},
		&page{url: "https://other.example.net/tcp_rmem", lang: "en", title: "Kernel", body: "net.ipv4.tcp_rmem sets the receive buffer of TCP/IP sockets"},
		&page{url: "https://sub.example.org/zh", lang: "zh", title: "搜索引擎", body: "深圳的天气预报说明天下雨。搜索引擎优化是一门学问。"},
	)
	a, b, c, k, z := site+"a", site+"b", site+"c", "https://other.example.net/tcp_rmem", "https://sub.example.org/zh"
	for _, q := range []struct {
		query string
		want  []string
	}{
		{"coffee", []string{a, b}},
		{"coffee steamed", []string{b}},
		{"roast", []string{a, b}},
		{"roasts taste", []string{a}},
		{`"coffee beans"`, []string{a, b}},
		{`"beans coffee"`, nil},
		{`"coffee beans are"`, []string{a}},
		{"taste OR steamed", []string{a, b}},
		{"coffee taste OR steamed", []string{a, b}},
		{"coffee -tea", []string{a}},
		{`beans -"light roast"`, []string{b}},
		{"title:coffee", []string{a}},
		{`title:"green tea"`, []string{b}},
		{"headings:beans", []string{a}},
		{"heading:beans", []string{a}},
		{"body:roasting", []string{a, b}},
		{"anchor:drink", []string{b}},
		{"drink", []string{b}},
		{`"best drink" tea`, []string{b}},
		{"url:tcp_rmem", []string{k}},
		{"ste*", []string{b, c}},
		{"title:ste*", nil},
		{"tcp_rm*", []string{k}},
		{"coffee_rm*", nil},
		{"coffee-tas* -kernel", []string{a}},
		{"url:other.exam*", []string{k}},
		{"搜索引*", []string{z}},
		{"coffee site:example.org", []string{a, b}},
		{"site:example.org", []string{a, b, c, z}},
		{"site:sub.example.org", []string{z}},
		{"site:https://sub.example.org/any", []string{z}},
		{"-site:example.org kernel OR coffee", []string{k}},
		{"lang:de", []string{c}},
		{"lang:en -coffee", []string{k}},
		{"lang:de-AT", []string{c}},
		{"lang:zh_CN", []string{z}},
		{"coffee lang:de", nil},
		{"haus", []string{c}},
		{"schone hauser", []string{c}},
		{"net.ipv4.tcp_rmem", []string{k}},
		{"tcp/ip", []string{k}},
		{"NET.IPV4.TCP_RMEM", []string{k}},
		{"搜索引擎", []string{z}},
		{"深圳天气", []string{z}},
		{`"搜索引擎优化"`, []string{z}},
		{`"优化搜索"`, nil},
		{"title:搜索", []string{z}},
		{"搜索 -优化", nil},
		{"nothingofthekind", nil},
		{"coffee nothingofthekind", nil},
		{"...  coffee !!", []string{a, b}},
		{"“coffee beans are”", []string{a}},
	} {
		got := ask(t, ix, Request{Query: q.query, All: true})
		if d := cmp.Diff(sorted(q.want), sorted(urls(got))); d != "" {
			t.Errorf("%s: (-want +got)\n%s", q.query, d)
		}
		if int(got.Total) != len(q.want) {
			t.Errorf("%s: a total of %d", q.query, got.Total)
		}
	}
}
