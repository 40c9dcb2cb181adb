package fsck_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/ranks"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/partition"
)

// rankObject stores an object of a rank job.
func (m *maker) rankObject(p partition.ID, job uint64, what string, data []byte, err error) string {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
	name := naming.RankObject(crawlID, p, job, what, data)
	m.objects[name] = data
	return name
}

// text stores a table of ranks as text.
func (m *maker) text(data string) string {
	name := naming.Ranks(crawlID, []byte(data))
	m.objects[name] = []byte(data)
	return name
}

// rankOf stores the result of a job for a partition: two crawled pages, one page not crawled and
// one host. All pages have the same rank, and so do all hosts.
func (m *maker) rankOf(p partition.ID, job, seq uint64) ranks.Result {
	const nodes = 3 * partitions
	fp := uint64(p)<<32 | job
	table, err := ranks.EncodeTable(nodes, []uint64{fp, fp + 1}, []float64{1. / nodes, 1. / nodes})
	r := ranks.Result{Job: job, Seq: seq, Table: m.rankObject(p, job, "table", table, err)}
	table, err = ranks.EncodeTable(nodes, []uint64{fp + 2}, []float64{1. / nodes})
	r.Rest = m.rankObject(p, job, "rest", table, err)
	host := m.host(p, 0)
	hosts, err := ranks.EncodeHosts(&ranks.Hosts{Names: []string{host}, Ranks: []float64{1. / partitions}})
	r.Hosts = m.rankObject(p, job, "hosts", hosts, err)
	anchors, err := ranks.EncodeAnchors([]ranks.AnchorTarget{{
		Fingerprint: fp, Slot: m.hash.Slot(host), Host: host, Texts: []ranks.AnchorText{{Text: "here", Pages: 1, Hosts: 1}},
	}})
	r.Anchors = m.rankObject(p, job, "anchors", anchors, err)
	graph, err := ranks.EncodeGraph(nil)
	r.Graph = m.rankObject(p, job, "graph", append(graph, byte(p), byte(job))[:len(graph)], err)
	return r
}

// ranked is a crawl with ranks and a running job that two of four partitions have begun.
func ranked(t testing.TB) *maker {
	m := recrawled(t)
	sizes := ranks.Totals{Pages: 3 * partitions, Crawled: 2 * partitions, Hosts: partitions, Anchors: partitions}
	previous := ranks.Job{
		Version: wire.Version, Number: 4, Params: ranks.DefaultParams(), Started: m.now, Done: m.now, Rounds: 9, Totals: sizes,
		HostRanks: m.text("a.example\t2\nb.example\t1\n"), PageRanks: m.text("http://a.example/\t1\n"),
	}
	job := ranks.Job{Version: wire.Version, Number: 5, Params: previous.Params, Started: m.now, Previous: &previous}
	for p := range partition.ID(partitions) {
		in := ranks.Input{Partition: p}
		if m.parts[p].man.Seq > 0 {
			in.Seq, in.Fence = m.parts[p].man.Seq, 1
		}
		job.Inputs = append(job.Inputs, in)
		result := m.rankOf(p, 4, 1)
		h := ranks.Head{Partition: p, Job: 4, Final: true, Totals: sizes, Next: result, Rounds: []ranks.Round{{Number: 12}}}
		if p < 2 {
			object := []byte("what partitions get")
			parts := []byte{4, 5, 5, 3, 2}
			h = ranks.Head{
				Partition: p, Job: 5, Last: result, Next: ranks.Result{Job: 5, Seq: in.Seq},
				Rounds:  []ranks.Round{{Number: 0, Object: m.rankObject(p, 5, "r0000", object, nil), Parts: parts}},
				Dropped: []ranks.Dropped{{Object: m.rankObject(p, 3, "table", []byte("old"), nil)}, {Object: naming.RankObject(crawlID, p, 3, "gone", nil)}},
			}
		}
		m.put(naming.RankHeadKey(crawlID, p), h)
	}
	m.put(naming.RankKey(crawlID), job)
	m.put(naming.DesiredKey(crawlID), blobschema.DesiredState{Version: 1, HostRanks: m.text("c.example\t1\n")})
	return m
}

// finished is a crawl with ranks and no running job.
func finished(t testing.TB) *maker {
	m := ranked(t)
	var job ranks.Job
	m.rankJob(func(j *ranks.Job) { job = *j })
	done := *job.Previous
	done.Inputs = job.Inputs
	for p := range done.Inputs {
		done.Inputs[p].Seq = min(done.Inputs[p].Seq, 1)
		m.put(naming.RankHeadKey(crawlID, partition.ID(p)), ranks.Head{
			Partition: partition.ID(p), Job: 4, Final: true, Next: m.rankOf(partition.ID(p), 4, done.Inputs[p].Seq),
			Rounds: []ranks.Round{{Number: 11, Object: naming.RankObject(crawlID, partition.ID(p), 4, "r0011", nil)}, {Number: 12}},
		})
	}
	m.put(naming.RankKey(crawlID), done)
	for name := range m.objects {
		if _, job, _, err := naming.ParseRankObject(name); err == nil && job != 4 {
			delete(m.objects, name)
		}
	}
	return m
}

func (m *maker) rankJob(change func(*ranks.Job)) {
	edit(m.hand, naming.RankKey(crawlID), change)
}

func (m *maker) rankHead(p partition.ID, change func(*ranks.Head)) {
	edit(m.hand, naming.RankHeadKey(crawlID, p), change)
}

func TestCleanRanksByHand(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(testing.TB) *maker
		want fsck.RanksReport
	}{
		{"running", ranked, fsck.RanksReport{Job: 4, Partitions: partitions, Pages: 3 * partitions, Hosts: partitions, Anchors: partitions, Running: 5}},
		{"finished", finished, fsck.RanksReport{Job: 4, Partitions: partitions, Pages: 3 * partitions, Hosts: partitions, Anchors: partitions}},
	} {
		m := tt.make(t)
		rep := check(t, m.memory, fsck.Options{})
		for _, v := range rep.Violations {
			t.Errorf("%s: %v", tt.name, v)
		}
		if d := cmp.Diff(&tt.want, rep.Ranks); d != "" {
			t.Errorf("%s: ranks (-want +got):\n%s", tt.name, d)
		}
	}
}

var rankCorruptions = []corruption{
	{"job garbage", ranked, "I6", "cannot be decoded", func(m *maker) { m.records[naming.RankKey(crawlID)] = "{" }},
	{"rank head garbage", ranked, "I6", "cannot be decoded", func(m *maker) { m.records[naming.RankHeadKey(crawlID, 2)] = "{" }},
	{"job of another version", ranked, "I6", "it is of version", func(m *maker) { m.rankJob(func(j *ranks.Job) { j.Version++ }) }},
	{"inputs out of order", ranked, "ranks", "its input 1 is of partition 2", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.Inputs[1].Partition = 2 })
	}},
	{"input without a commit", ranked, "ranks", "is no visible commit", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.Inputs[0].Fence = 7 })
	}},
	{"rank head of another partition", ranked, "ranks", "it is of partition 3", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Partition = 3 })
	}},
	{"rank head of a later job", ranked, "ranks", "job 6", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Job = 6 })
	}},
	{"rounds out of order", ranked, "ranks", "out of order", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Rounds = append(h.Rounds, h.Rounds[0]) })
	}},
	{"object of a round missing", ranked, "I6", "does not exist", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { delete(m.objects, h.Rounds[0].Object) })
	}},
	{"parts of a round", ranked, "I6", "by its head", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Rounds[0].Parts[1]++ })
	}},
	{"too few parts of a round", ranked, "I6", "part", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Rounds[0].Parts = h.Rounds[0].Parts[:3] })
	}},
	{"graph missing", ranked, "I6", "does not exist", func(m *maker) {
		m.rankHead(0, func(h *ranks.Head) { delete(m.objects, h.Last.Graph) })
	}},
	{"graph damaged", ranked, "I6", "", func(m *maker) {
		m.rankHead(0, func(h *ranks.Head) { m.flip(h.Last.Graph, 3) })
	}},
	{"table missing", ranked, "I6", "does not exist", func(m *maker) {
		m.rankHead(0, func(h *ranks.Head) { delete(m.objects, h.Last.Table) })
	}},
	{"table damaged", ranked, "I6", "decode rank table", func(m *maker) {
		m.rankHead(2, func(h *ranks.Head) { m.flip(h.Next.Table, 30) })
	}},
	{"table of another partition", finished, "I6", "none of partition 0", func(m *maker) {
		m.rankHead(1, func(o *ranks.Head) {
			m.rankHead(0, func(h *ranks.Head) { h.Next.Table = o.Next.Table })
		})
	}},
	{"table not named", finished, "ranks", "has no tables", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Next.Rest = "" })
	}},
	{"anchors damaged", finished, "I6", "decode anchors", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { m.flip(h.Next.Anchors, 30) })
	}},
	{"anchors of another slot", finished, "I2", "texts of links to", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) {
			data, err := ranks.EncodeAnchors([]ranks.AnchorTarget{{Fingerprint: 1, Host: m.host(1, 0), Slot: m.wrong(1, m.host(1, 0))}})
			h.Next.Anchors = m.rankObject(1, 4, "anchors", data, err)
		})
	}},
	{"hosts damaged", finished, "I6", "decode ranks of hosts", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { m.flip(h.Next.Hosts, 30) })
	}},
	{"no result of a partition", finished, "ranks", "there is no result", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Final = false })
	}},
	{"no head of a partition", finished, "ranks", "there is no result", func(m *maker) {
		delete(m.records, naming.RankHeadKey(crawlID, 3))
	}},
	{"no result of a partition, previous job", ranked, "ranks", "its numbers of pages", func(m *maker) {
		m.rankHead(3, func(h *ranks.Head) { h.Final = false })
	}},
	{"result of other commits", finished, "ranks", "last commit in its result", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) { h.Next.Seq++ })
	}},
	{"ranks lost", finished, "ranks", "add up to", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) {
			data, err := ranks.EncodeTable(3*partitions, []uint64{5}, []float64{0.01})
			h.Next.Rest = m.rankObject(1, 4, "rest", data, err)
		})
	}},
	{"ranks of hosts lost", finished, "ranks", "add up to", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) {
			data, err := ranks.EncodeHosts(&ranks.Hosts{Names: []string{"x.example"}, Ranks: []float64{0.3}})
			h.Next.Hosts = m.rankObject(1, 4, "hosts", data, err)
		})
	}},
	{"tables of other graphs", finished, "ranks", "another table of", func(m *maker) {
		m.rankHead(1, func(h *ranks.Head) {
			data, err := ranks.EncodeTable(99, []uint64{5}, []float64{1. / 12})
			h.Next.Rest = m.rankObject(1, 4, "rest", data, err)
		})
	}},
	{"totals of the job", finished, "ranks", "its numbers of pages", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.Totals.Anchors++ })
	}},
	{"text missing", finished, "I6", "does not exist", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { delete(m.objects, j.PageRanks) })
	}},
	{"text with other content", finished, "I6", "by its content", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { m.objects[j.HostRanks] = []byte("a\t1\n") })
	}},
	{"text not named", finished, "ranks", "has no table of hosts", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.HostRanks = "" })
	}},
	{"text out of order", finished, "ranks", "line 2", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.HostRanks = m.text("a\t1\nb\t2\n") })
	}},
	{"text is no table", finished, "ranks", "line 1", func(m *maker) {
		m.rankJob(func(j *ranks.Job) { j.HostRanks = m.text("<html>\n") })
	}},
	{"ranks of the desired state missing", ranked, "I6", "wish names it", func(m *maker) { delete(m.objects, m.text("c.example\t1\n")) }},
}

// TestRanksMove checks ranks of a job that continues while they are read.
func TestRanksMove(t *testing.T) {
	m := ranked(t)
	key := naming.RankHeadKey(crawlID, 1)
	old := m.records[key]
	m.rankHead(1, func(h *ranks.Head) {
		delete(m.objects, h.Rounds[0].Object)
		h.Rounds[0] = ranks.Round{Number: 1, Object: m.rankObject(1, 5, "r0001", []byte("x"), nil), Parts: []byte{1, 0, 0, 0, 0}}
	})
	for stale, clean := range map[int]bool{2: true, 100: false} {
		rep := check(t, &moving{memory: m.memory, old: func(k string, read int) string {
			if k == key && read <= stale {
				return old
			}
			return ""
		}}, fsck.Options{})
		if rep.Clean() != clean || rep.Ranks.Partitions != partitions || rep.Ranks.Pages != 3*partitions {
			t.Errorf("old for %d readings: found %v, %+v", stale, rep.Violations, rep.Ranks)
		}
	}
}

// TestRepairRanks checks that Repair deletes the rank objects that no step can come to name.
func TestRepairRanks(t *testing.T) {
	for _, tt := range []struct {
		make  func(testing.TB) *maker
		goes  []string // names below the prefix, up to the job
		stays []string
	}{
		{ranked, []string{"p00000/j00000003-", "p00001/j00000004-", "p00002/j00000003-", "p00002/j00000004-"}, []string{"p00000/j00000005-", "p00002/j00000005-", "p00077/j00000001-", "/ranks/"}},
		{finished, []string{"p00000/j00000003-", "p00000/j00000004-", "/ranks/"}, []string{"p00000/j00000005-"}},
	} {
		m := tt.make(t)
		s := &mendable{memory: m.memory, modified: map[string]time.Time{}}
		litter := map[string]bool{}
		for _, where := range slices.Concat(tt.goes, tt.stays) {
			name := naming.Ranks(crawlID, []byte("lost"))
			if where != "/ranks/" {
				name = naming.RankPrefix(crawlID) + where + "table-0123456789abcdef"
			}
			m.objects[name] = []byte("half a")
			litter[name] = slices.Contains(tt.goes, where)
		}
		for name := range m.objects {
			s.modified[name] = m.now.Add(-2 * time.Hour)
		}
		did, err := fsck.Repair(context.Background(), s, fsck.RepairOptions{Options: fsck.Options{Time: m.now}})
		if err != nil {
			t.Fatal(err, did.Report.Violations)
		}
		for _, r := range did.Deleted {
			if !litter[r.Object] {
				t.Errorf("deleted %s: %s", r.Object, r.Why)
			}
			delete(litter, r.Object)
		}
		for _, r := range did.Kept {
			if goes, made := litter[r.Object]; goes || !made {
				t.Errorf("kept %s: %s", r.Object, r.Why)
			}
			delete(litter, r.Object)
		}
		if len(litter) > 0 {
			t.Errorf("neither deleted nor kept: %v", litter)
		}
		if rep := check(t, m.memory, fsck.Options{}); !rep.Clean() {
			t.Errorf("after a repair: %v", rep.Violations)
		}
	}
}
