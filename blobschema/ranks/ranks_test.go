package ranks

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

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// rankObjects returns a small object of each kind with its decoder, which also encodes the result again.
func rankObjects(t testing.TB) map[string]rankObject {
	t.Helper()
	must := func(b []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	graph := []*Graph{
		{
			Hosts: []Host{{"a.example", 3}, {"b.example", 9}},
			Nodes: []Node{{7, 1}, {1 << 63, 0}},
			Texts: []string{"", "a text", "中文"},
			Pages: []Page{
				{Node: Node{11, 0}, Generation: 2, Kind: Linked, Record: blobschema.RecordRef{Partition: 4, Seq: 12}, Links: 2, Outs: 1},
				{Node: Node{12, 1}, Kind: Same},
				{Node: Node{13, 1}, Kind: Gone, Links: 1},
			},
			Links: []Link{{0, 1}, {1, 0}, {0, 2}},
			Outs:  []uint32{1},
		},
		{Texts: []string{""}, Hosts: []Host{{"c.example", 1}}, Pages: []Page{{Node: Node{14, 0}}}},
	}
	anchors := []AnchorTarget{
		{Fingerprint: 7, Slot: 9, Host: "b.example", Texts: []AnchorText{{"a text", 3, 2}, {"another", 1, 1}}},
		{Fingerprint: 1, Slot: 3, Host: "a.example", Texts: []AnchorText{{"x", 1, 1}}},
	}
	targets := &Targets{Hosts: []string{"a.example", "b.example", "c.example"}, Counts: []uint32{2, 0, 1}, Fingerprints: []uint64{1, 9, 4}, Anchors: anchors}
	layout := &Layout{
		HostNames: []string{"a.example", "b.example"}, First: []uint32{0, 2, 3}, Nodes: []uint64{1, 5, 4}, Crawled: []byte{5},
		Pages: Level{OutFirst: []uint32{0, 2, 2, 3}, Out: []uint32{0, 2, 1}, Targets: []uint32{0, 1, 3}, InFirst: []uint32{0, 1, 1}, In: []uint32{2}},
		Hosts: Level{OutFirst: []uint32{0, 1, 1}, Out: []uint32{0}, Targets: []uint32{0, 0, 1}, InFirst: []uint32{0, 0, 2}, In: []uint32{1, 0}},
	}
	hosts := &Hosts{Names: []string{"a.example", "b.example"}, Ranks: []float64{0.25, 0.75}, URLs: []string{"https://b.example/"}, Best: []float64{0.5}}
	return map[string]rankObject{
		"graph":   {must(EncodeGraph(graph)), graph, there(DecodeGraph, EncodeGraph)},
		"anchors": {must(EncodeAnchors(anchors)), anchors, there(DecodeAnchors, EncodeAnchors)},
		"targets": {must(EncodeTargets(targets)), targets, there(DecodeTargets, EncodeTargets)},
		"layout": {EncodeLayout(layout), layout, there(
			func(b []byte) (*Layout, error) { return DecodeLayout(b, 2) },
			func(l *Layout) ([]byte, error) { return EncodeLayout(l), nil },
		)},
		"values": {EncodeValues([]float64{0, 1.5}, nil, []float64{math.SmallestNonzeroFloat64}), [][]float64{{0, 1.5}, {}, {math.SmallestNonzeroFloat64}}, there(
			func(b []byte) ([][]float64, error) { return DecodeValues(b, 3) },
			func(v [][]float64) ([]byte, error) { return EncodeValues(v...), nil },
		)},
		"hosts": {must(EncodeHosts(hosts)), hosts, there(DecodeHosts, EncodeHosts)},
		"table": {must(EncodeTable(10, []uint64{3, 5, 1 << 60}, []float64{0.5, 0.25, 0})), nil, there(DecodeTable, encodeAgain)},
	}
}

// there returns a function that decodes an object and encodes the result.
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

func encodeAgain(t *Table) ([]byte, error) {
	var fps []uint64
	var ranks []float64
	for i := range t.Len() {
		fp, rank := t.At(i)
		fps, ranks = append(fps, fp), append(ranks, rank)
	}
	return EncodeTable(t.Nodes(), fps, ranks)
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
			if _, _, err := o.decode(bad); err == nil || !isRefusal(err) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		})
	}
}

// deref returns the values that a list of pointers points to.
func deref(v any) any {
	list, ok := v.([]*Graph)
	if !ok {
		return v
	}
	var out []Graph
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
	data, err := EncodeTable(10, fps, ranks)
	if err != nil {
		t.Fatal(err)
	}
	table, err := DecodeTable(data)
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
		"order": func() ([]byte, error) { return EncodeTable(10, []uint64{5, 3}, []float64{0, 0}) },
		"twice": func() ([]byte, error) { return EncodeTable(10, []uint64{5, 5}, []float64{0, 0}) },
		"nodes": func() ([]byte, error) { return EncodeTable(1, []uint64{3, 5}, []float64{0, 0}) },
		"ranks": func() ([]byte, error) { return EncodeTable(10, []uint64{3, 5}, nil) },
	} {
		if _, err := call(); err == nil {
			t.Errorf("%s: encoded", name)
		}
	}
}

// FuzzRank checks for each kind that an accepted object is encoded to one that is accepted again.
func FuzzRank(f *testing.F) {
	objects := rankObjects(f)
	kinds := []string{"graph", "anchors", "targets", "layout", "values", "hosts", "table"}
	for i, k := range kinds {
		f.Add(uint8(i), objects[k].data)
		// The contents of sections, so that the fuzzer gets past the checksums.
		p, err := wire.Open(objects[k].data)
		if err != nil {
			f.Fatal(err)
		}
		for j, name := range p.Names() {
			b, err := p.Section(name)
			if err != nil {
				f.Fatal(err)
			}
			if raw, err := wire.Unpack(b, wire.MaxSection); err == nil {
				f.Add(uint8(8+i+16*j), raw)
			} else {
				f.Add(uint8(8+i+16*j), b)
			}
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		o := objects[kinds[int(kind%8)%len(kinds)]]
		if kind&8 != 0 { // one section of a whole object is replaced
			p, err := wire.Open(o.data)
			if err != nil {
				t.Fatal(err)
			}
			var sections []wire.Section
			for j, name := range p.Names() {
				b, err := p.Section(name)
				if err != nil {
					t.Fatal(err)
				}
				if j == int(kind>>4)%len(p.Names()) {
					if _, err := wire.Unpack(b, wire.MaxSection); err == nil {
						b = wire.AppendPacked(nil, data)
					} else {
						b = data
					}
				}
				sections = append(sections, wire.Section{Name: name, Data: b})
			}
			data = wire.Append(nil, sections)
		}
		v, again, err := o.decode(data)
		if err != nil {
			if v == nil && again == nil && !isRefusal(err) {
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
	if got := (Input{Partition: 3, Seq: 17, Fence: 2}).Commit("web"); got != naming.Commit("web", 3, 17, 2) {
		t.Errorf("the last commit is %s", got)
	}
	all := Result{Graph: "a", Layout: "b", Anchors: "c", Table: "d", Rest: "e", Hosts: "f"}
	if got := strings.Join(all.Objects(), ""); got != "abcdef" {
		t.Errorf("objects %s", got)
	}
	if got := (&Result{Table: "d"}).Objects(); len(got) != 1 {
		t.Errorf("objects %q", got)
	}
}

func TestRankHead(t *testing.T) {
	h := Head{Job: 7, Rounds: []Round{{Number: 4}, {Number: 5, Parts: []byte{3, 0, 0x80, 1, 2}, Object: "o"}}, Next: Result{Job: 7, Table: "new"}, Last: Result{Job: 5, Table: "old"}}
	if h.Round(7) != 5 || h.Round(6) != -1 || h.At(4) == nil || h.At(3) != nil {
		t.Errorf("rounds of %+v", h)
	}
	for n, want := range [][2]int64{{0, 3}, {3, 0}, {3, 128}, {131, 2}} {
		if off, length, err := h.At(5).Part(n); err != nil || off != want[0] || length != want[1] {
			t.Errorf("part %d: %d, %d, %v", n, off, length, err)
		}
	}
	if off, length, err := h.At(5).Part(4); !errors.Is(err, wire.ErrDamaged) || off != 0 || length != 0 {
		t.Errorf("a part that is not there: %d, %d, %v", off, length, err)
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
	for _, h := range []Head{h, {}} {
		if r, ok := h.Result(0); ok || r != (Result{}) {
			t.Errorf("no job has a result: %+v", r)
		}
	}
	if h = (Head{Job: 7}); h.Round(7) != -1 {
		t.Errorf("round %d is finished of a job that was only begun", h.Round(7))
	}
}

func TestRankJob(t *testing.T) {
	j := Job{Number: 2, Previous: &Job{Number: 1, Done: time.Unix(1, 0)}}
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
	if f := (&Job{}).Finished(); f != nil {
		t.Errorf("none: %+v", f)
	}
	p := DefaultParams()
	if err := p.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(p *Params){
		"least": func(p *Params) { p.Damping, p.Tolerance, p.MaxRounds = 1e-9, 0, 1 },
		"most": func(p *Params) {
			p.Damping, p.Tolerance, p.MaxRounds = 1-1e-9, 1, MaxRounds
			p.Personal = append(slices.Repeat([]Weight{{Host: "a", Weight: 1e9}}, maxPersonal-1), Weight{URL: strings.Repeat("a", maxPersonalBytes-maxPersonal+1), Weight: 1e-9})
		},
	} {
		p := DefaultParams()
		change(&p)
		if err := p.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(p *Params){
		"damping 0":  func(p *Params) { p.Damping = 0 },
		"damping 1":  func(p *Params) { p.Damping = 1 },
		"NaN":        func(p *Params) { p.Damping = math.NaN() },
		"tolerance":  func(p *Params) { p.Tolerance = -1 },
		"above 1":    func(p *Params) { p.Tolerance = 1.01 },
		"no rounds":  func(p *Params) { p.MaxRounds = 0 },
		"rounds":     func(p *Params) { p.MaxRounds = MaxRounds + 1 },
		"weight":     func(p *Params) { p.Personal = []Weight{{Host: "a", Weight: math.Inf(1)}} },
		"below 0":    func(p *Params) { p.Personal = []Weight{{URL: "a", Weight: -1}} },
		"weight 0":   func(p *Params) { p.Personal = []Weight{{Host: "a"}} },
		"of nothing": func(p *Params) { p.Personal = []Weight{{Weight: 1}} },
		"of both":    func(p *Params) { p.Personal = []Weight{{Host: "a", URL: "b", Weight: 1}} },
		"many":       func(p *Params) { p.Personal = slices.Repeat([]Weight{{Host: "a", Weight: 1}}, maxPersonal+1) },
		"long": func(p *Params) {
			p.Personal = []Weight{{URL: strings.Repeat("a", maxPersonalBytes), Weight: 1}, {Host: "a", Weight: 1}}
		},
	} {
		p := DefaultParams()
		if change(&p); p.Check() == nil {
			t.Errorf("%s is taken: %+v", name, p)
		}
	}
}

// TestRankRecordsFit checks that the records of a thousand partitions fit into the 400 KB of a table's item.
func TestRankRecordsFit(t *testing.T) {
	const limit = 400 << 10
	j := Job{Params: DefaultParams(), Residuals: slices.Repeat([]Residual{{math.Pi * 1e-9, math.E * 1e-9}}, MaxRankResiduals)}
	h := Head{Rounds: []Round{{Object: strings.Repeat("o", 60)}, {}}}
	for p := range partition.ID(1000) {
		j.Inputs = append(j.Inputs, Input{Partition: p, Seq: 1e9, Fence: 1e6})
		h.Rounds[0].Parts = append(h.Rounds[0].Parts, 0xff, 0xff, 0xff, 0xff, 1)
	}
	h.Rounds[1] = h.Rounds[0]
	for range 1000 / 2 {
		j.Params.Personal = append(j.Params.Personal, Weight{URL: strings.Repeat("u", 128), Weight: 1. / 3})
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
		{string(AppendLine(nil, "a.example", 2.5)), "a.example\t2.5\n"},
		{string(AppendLine(nil, "a\tb\n", 1e9)), "ab\t1e+06\n"},
		{string(AppendLine(nil, "a", 0)), "a\t1e-06\n"},
		{string(AppendLine([]byte("a\t1\n"), "b ~\x7f\x1fé", 1)), "a\t1\nb ~é\t1\n"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// TestTotals checks that sums add every field.
func TestTotals(t *testing.T) {
	count := func(by int64) (of Totals) { // its fields are by, 2*by, ...
		v := reflect.ValueOf(&of).Elem()
		for i := range v.NumField() {
			v.Field(i).SetInt(int64(i+1) * by)
		}
		return of
	}
	got, more := count(1), count(10)
	if got.Add(&more); got != count(11) {
		t.Errorf("got %+v, want %+v", got, count(11))
	}
}
