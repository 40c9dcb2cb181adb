package blobschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// rankObjects are small objects of each kind, and their decoders, which also encode again what they took.
func rankObjects(t testing.TB) map[string]rankObject {
	t.Helper()
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	graph := []*RankGraph{
		{
			Hosts: []RankHost{{"a.example", 3}, {"b.example", 9}},
			Nodes: []RankNode{{7, 1}, {1 << 63, 0}},
			Texts: []string{"", "a text", "中文"},
			Pages: []RankPage{
				{RankNode: RankNode{11, 0}, Generation: 2, Kind: RankLinked, Origin: Origin{4, 12}, Links: 2, Outs: 1},
				{RankNode: RankNode{12, 1}, Kind: RankSame},
				{RankNode: RankNode{13, 1}, Kind: RankGone, Links: 1},
			},
			Links: []RankLink{{0, 1}, {1, 0}, {0, 2}},
			Outs:  []uint32{1},
		},
		{Texts: []string{""}, Hosts: []RankHost{{"c.example", 1}}, Pages: []RankPage{{RankNode: RankNode{14, 0}}}},
	}
	anchors := []AnchorTarget{
		{Fingerprint: 7, Slot: 9, Host: "b.example", Texts: []AnchorText{{"a text", 3, 2}, {"another", 1, 1}}},
		{Fingerprint: 1, Slot: 9, Host: "b.example", Texts: []AnchorText{{"x", 1, 1}}},
	}
	targets := &RankTargets{Hosts: []string{"a.example", "b.example", "c.example"}, Counts: []uint32{2, 0, 1}, Fingerprints: []uint64{1, 9, 4}, Anchors: anchors}
	layout := &RankLayout{
		HostNames: []string{"a.example", "b.example"}, First: []uint32{0, 2, 3}, Nodes: []uint64{1, 5, 4}, Crawled: []byte{5},
		Pages: RankLevel{OutFirst: []uint32{0, 2, 2, 3}, Out: []uint32{0, 2, 1}, Targets: []uint32{0, 1, 3}, InFirst: []uint32{0, 1, 1}, In: []uint32{2}},
		Hosts: RankLevel{OutFirst: []uint32{0, 1, 1}, Out: []uint32{0}, Targets: []uint32{0, 0, 1}, InFirst: []uint32{0, 0, 2}, In: []uint32{1, 0}},
	}
	hosts := &RankHosts{Names: []string{"a.example", "b.example"}, Ranks: []float64{0.25, 0.75}, URLs: []string{"https://b.example/"}, Best: []float64{0.5}}
	return map[string]rankObject{
		"graph":   {must(EncodeRankGraph(graph)), graph, there(DecodeRankGraph, EncodeRankGraph)},
		"anchors": {must(EncodeAnchors(anchors)), anchors, there(DecodeAnchors, EncodeAnchors)},
		"targets": {must(EncodeRankTargets(targets)), targets, there(func(b []byte) (*RankTargets, error) { return DecodeRankTargets(b, true) }, EncodeRankTargets)},
		"layout": {EncodeRankLayout(layout), layout, there(
			func(b []byte) (*RankLayout, error) { return DecodeRankLayout(b, 2) },
			func(l *RankLayout) ([]byte, error) { return EncodeRankLayout(l), nil },
		)},
		"values": {EncodeRankValues([]float64{0, 1.5}, nil, []float64{math.SmallestNonzeroFloat64}), [][]float64{{0, 1.5}, {}, {math.SmallestNonzeroFloat64}}, there(
			func(b []byte) ([][]float64, error) { return DecodeRankValues(b, 3) },
			func(v [][]float64) ([]byte, error) { return EncodeRankValues(v...), nil },
		)},
		"hosts": {must(EncodeRankHosts(hosts)), hosts, there(DecodeRankHosts, EncodeRankHosts)},
		"table": {must(EncodeRankTable(10, []uint64{3, 5, 1 << 60}, []float64{0.5, 0.25, 0})), nil, there(DecodeRankTable, encodeAgain)},
	}
}

// there decodes, and encodes what it got.
func there[T any](decode func([]byte) (T, error), encode func(T) ([]byte, error)) func(b []byte) (any, []byte, error) {
	return func(b []byte) (any, []byte, error) {
		v, err := decode(b)
		if err != nil {
			return nil, nil, err
		}
		again, err := encode(v)
		return v, again, err
	}
}

func encodeAgain(t *RankTable) ([]byte, error) {
	var fps []uint64
	var ranks []float64
	for i := range t.Len() {
		fp, rank := t.At(i)
		fps, ranks = append(fps, fp), append(ranks, rank)
	}
	return EncodeRankTable(t.Nodes(), fps, ranks)
}

type rankObject struct {
	data   []byte
	want   any
	decode func(b []byte) (v any, again []byte, err error)
}

func TestRankObjects(t *testing.T) {
	for name, o := range rankObjects(t) {
		v, again, err := o.decode(o.data)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !bytes.Equal(again, o.data) {
			t.Errorf("%s: encoded again it is something else", name)
		}
		if got, want := fmt.Sprintf("%+v", deref(v)), fmt.Sprintf("%+v", deref(o.want)); o.want != nil && got != want {
			t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
		}
		eachDamage(o.data, func(what string, bad []byte) {
			if _, _, err := o.decode(bad); err == nil || !isOurs(err) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		})
	}
}

// deref shows what a list of pointers points to.
func deref(v any) any {
	list, ok := v.([]*RankGraph)
	if !ok {
		return v
	}
	var out []RankGraph
	for _, g := range list {
		c := *g
		if len(c.Nodes) == 0 {
			c.Nodes = nil
		}
		out = append(out, c)
	}
	return out
}

func TestRankTable(t *testing.T) {
	fps, ranks := []uint64{3, 5, 1 << 60}, []float64{0.5, 0.25, 0}
	data, err := EncodeRankTable(10, fps, ranks)
	if err != nil {
		t.Fatal(err)
	}
	table, err := DecodeRankTable(data)
	if err != nil {
		t.Fatal(err)
	}
	for i, fp := range fps {
		if r, ok := table.Rank(fp); !ok || r != ranks[i] {
			t.Errorf("rank of %d is %g, %v", fp, r, ok)
		}
	}
	for _, fp := range []uint64{0, 4, 6, math.MaxUint64} {
		if r, ok := table.Rank(fp); ok || r != 0 {
			t.Errorf("rank of %d, which is not there, is %g", fp, r)
		}
	}
	if table.Nodes() != 10 || table.Len() != 3 {
		t.Errorf("%d of %d", table.Len(), table.Nodes())
	}
	for name, call := range map[string]func() ([]byte, error){
		"order": func() ([]byte, error) { return EncodeRankTable(10, []uint64{5, 3}, []float64{0, 0}) },
		"twice": func() ([]byte, error) { return EncodeRankTable(10, []uint64{5, 5}, []float64{0, 0}) },
		"nodes": func() ([]byte, error) { return EncodeRankTable(1, []uint64{3, 5}, []float64{0, 0}) },
		"ranks": func() ([]byte, error) { return EncodeRankTable(10, []uint64{3, 5}, nil) },
	} {
		if _, err := call(); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
}

// FuzzRank holds that what a decoder takes is encoded to what it takes again, whatever the kind.
func FuzzRank(f *testing.F) {
	objects := rankObjects(f)
	kinds := []string{"graph", "anchors", "targets", "layout", "values", "hosts", "table"}
	for i, k := range kinds {
		f.Add(uint8(i), objects[k].data)
		// What is inside, so that the fuzzer gets past the checksums.
		p, err := OpenPack(objects[k].data)
		if err != nil {
			f.Fatal(err)
		}
		for j, s := range p.sections {
			b, err := p.Section(s.name)
			if err != nil {
				f.Fatal(err)
			}
			if raw, err := unpack(b, maxSection); err == nil {
				f.Add(uint8(8+i+16*j), raw)
			} else {
				f.Add(uint8(8+i+16*j), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		o := objects[kinds[int(kind%8)%len(kinds)]]
		if kind&8 != 0 { // one section of a whole object is replaced
			p, err := OpenPack(o.data)
			if err != nil {
				t.Fatal(err)
			}
			var sections []Section
			for j, s := range p.sections {
				b, err := p.Section(s.name)
				if err != nil {
					t.Fatal(err)
				}
				if j == int(kind>>4)%len(p.sections) {
					if _, err := unpack(b, maxSection); err == nil {
						b = appendPacked(nil, data)
					} else {
						b = data
					}
				}
				sections = append(sections, Section{s.name, b})
			}
			data = AppendPack(nil, sections)
		}
		v, again, err := o.decode(data)
		if err != nil {
			if v == nil && again == nil && !isOurs(err) {
				t.Fatalf("error %v", err)
			}
			return
		}
		w, _, err := o.decode(again)
		if err != nil || !reflect.DeepEqual(v, w) {
			t.Fatalf("encoded again: %v\n%+v\n%+v", err, v, w)
		}
	})
}

func TestRankNames(t *testing.T) {
	if got := (RankInput{Partition: 3, Seq: 17, Fence: 2}).Commit("web"); got != naming.Commit("web", 3, 17, 2) {
		t.Errorf("the last commit is %s", got)
	}
	all := RankResult{Graph: "a", Layout: "b", Anchors: "c", Table: "d", Rest: "e", Hosts: "f"}
	if got := strings.Join(all.Objects(), ""); got != "abcdef" {
		t.Errorf("objects %s", got)
	}
	if got := (&RankResult{Table: "d"}).Objects(); len(got) != 1 {
		t.Errorf("objects %q", got)
	}
}

func TestRankHead(t *testing.T) {
	h := RankHead{Job: 7, Rounds: []RankRound{{Number: 4}, {Number: 5, Parts: []byte{3, 0, 0x80, 1, 2}, Object: "o"}}, Next: RankResult{Job: 7, Table: "new"}, Last: RankResult{Job: 5, Table: "old"}}
	if h.Round(7) != 5 || h.Round(6) != -1 || h.At(4) == nil || h.At(3) != nil {
		t.Errorf("rounds of %+v", h)
	}
	for n, want := range [][2]int64{{0, 3}, {3, 0}, {3, 128}, {131, 2}} {
		if off, length, err := h.At(5).Part(n); err != nil || off != want[0] || length != want[1] {
			t.Errorf("part %d: %d, %d, %v", n, off, length, err)
		}
	}
	if _, _, err := h.At(5).Part(4); !errors.Is(err, ErrDamaged) {
		t.Errorf("a part that is not there: %v", err)
	}
	if _, ok := h.Result(7); ok {
		t.Error("a job that is not final has a result")
	}
	if r, ok := h.Result(5); !ok || r.Table != "old" {
		t.Errorf("result of the last job: %+v, %v", r, ok)
	}
	h.Final = true
	if r, ok := h.Result(7); !ok || r.Table != "new" {
		t.Errorf("result: %+v, %v", r, ok)
	}
	if _, ok := h.Result(0); ok {
		t.Error("no job has a result")
	}
}

func TestRankJob(t *testing.T) {
	j := RankJob{Number: 2, Previous: &RankJob{Number: 1, Done: time.Unix(1, 0)}}
	if f := j.Finished(); f.Number != 1 {
		t.Errorf("under way: %+v", f)
	}
	j.Done = time.Unix(2, 0)
	if f := j.Finished(); f.Number != 2 {
		t.Errorf("done: %+v", f)
	}
	j.Failed = "why"
	if f := j.Finished(); f.Number != 1 {
		t.Errorf("failed: %+v", f)
	}
	if f := (&RankJob{}).Finished(); f != nil {
		t.Errorf("none: %+v", f)
	}
	p := DefaultRankParams()
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(p *RankParams){
		"damping 0":  func(p *RankParams) { p.Damping = 0 },
		"damping 1":  func(p *RankParams) { p.Damping = 1 },
		"NaN":        func(p *RankParams) { p.Damping = math.NaN() },
		"tolerance":  func(p *RankParams) { p.Tolerance = -1 },
		"no rounds":  func(p *RankParams) { p.MaxRounds = 0 },
		"rounds":     func(p *RankParams) { p.MaxRounds = MaxRankRounds + 1 },
		"weight":     func(p *RankParams) { p.Personal = []RankWeight{{Host: "a", Weight: math.Inf(1)}} },
		"weight 0":   func(p *RankParams) { p.Personal = []RankWeight{{Host: "a"}} },
		"of nothing": func(p *RankParams) { p.Personal = []RankWeight{{Weight: 1}} },
		"of both":    func(p *RankParams) { p.Personal = []RankWeight{{Host: "a", URL: "b", Weight: 1}} },
		"many":       func(p *RankParams) { p.Personal = slices.Repeat([]RankWeight{{Host: "a", Weight: 1}}, maxPersonal+1) },
		"long": func(p *RankParams) {
			p.Personal = []RankWeight{{URL: strings.Repeat("a", maxPersonalBytes+1), Weight: 1}}
		},
	} {
		p := DefaultRankParams()
		if change(&p); p.Check() == nil {
			t.Errorf("%s is taken: %+v", name, p)
		}
	}
}

// TestRankRecordsFit holds the records of a thousand partitions to the 400 KB of a table's item.
func TestRankRecordsFit(t *testing.T) {
	const limit = 400 << 10
	j := RankJob{Params: DefaultRankParams(), Residuals: slices.Repeat([]RankResidual{{math.Pi * 1e-9, math.E * 1e-9}}, MaxRankResiduals)}
	h := RankHead{Rounds: []RankRound{{Object: strings.Repeat("o", 60)}, {}}}
	for p := range partition.ID(1000) {
		j.Inputs = append(j.Inputs, RankInput{Partition: p, Seq: 1e9, Fence: 1e6})
		h.Rounds[0].Parts = append(h.Rounds[0].Parts, 0xff, 0xff, 0xff, 0xff, 1)
	}
	h.Rounds[1] = h.Rounds[0]
	for range 1000 / 2 {
		j.Params.Personal = append(j.Params.Personal, RankWeight{URL: strings.Repeat("u", 128), Weight: 1. / 3})
	}
	if err := j.Params.Check(); err != nil {
		t.Fatal(err)
	}
	p := j
	p.Inputs, p.Previous = nil, nil
	j.Previous = &p
	for name, v := range map[string]any{"job": j, "head": h} {
		b, err := json.Marshal(v)
		if err != nil || len(b) > limit {
			t.Errorf("%s of %d bytes, %v", name, len(b), err)
		}
		t.Logf("%s: %d bytes", name, len(b))
	}
}

func TestRankLines(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(AppendRankLine(nil, "a.example", 2.5)), "a.example\t2.5\n"},
		{string(AppendRankLine(nil, "a\tb\n", 1e9)), "ab\t1e+06\n"},
		{string(AppendRankLine(nil, "a", 0)), "a\t1e-06\n"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
