package blobschema
import ("testing";"syscall";"time";"fmt";"os";"runtime")
func cpu(n int, name string, per float64, f func()) {
	f()
	runtime.GC()
	best := time.Duration(1<<62)
	var sum time.Duration
	for range n {
		var a, b syscall.Rusage
		syscall.Getrusage(0,&a); f(); syscall.Getrusage(0,&b)
		d := time.Duration(b.Utime.Nano()+b.Stime.Nano()-a.Utime.Nano()-a.Stime.Nano())
		best = min(best,d); sum += d
	}
	fmt.Printf("%-24s best %8.2f ms avg %8.2f ms  best %8.1f ns/entry\n", name, float64(best)/1e6, float64(sum)/1e6/float64(n), float64(best)/per)
}
func TestCPU(t *testing.T) {
	if os.Getenv("CPU")=="" {t.Skip()}
	h := testHash(t)
	for _, x := range []struct{name string; r *Run}{{"seen1M",newWeb(t,1).run(1e6,0,0)},{"queued1M",newWeb(t,1).run(0,1e6,0)},{"commitrun",newWeb(t,1).run(2000,28000,300)}} {
		n := float64(x.r.Len())
		var data []byte; var ref RunRef
		cpu(5, x.name+" encode", n, func(){ data, ref = EncodeRun(x.r,h)})
		cpu(5, x.name+" decode", n, func(){ DecodeRun(data,ref,&Run{})})
		fmt.Printf("   blocks %.2f B/entry, all %.2f\n", float64(ref.Index)/n, float64(ref.Length)/n)
	}
	var runs []*Run
	for i := range 4 { r := newWeb(t, uint64(i)).run(125_000, 125_000, 100); r.Sort(); runs = append(runs, r) }
	cpu(5,"merge 1M of 4", 1e6, func(){MergeRuns(h,runs)})
	urls := newWeb(t, 1).mailURLs(20_000)
	var ps [][]Queued
	cpu(10,"split mail", 20000, func(){ ps = SplitMail(urls,0)})
	for _, p := range ps { b,_ := EncodeMail(Mail{Crawl:"test",From:1,To:2,Number:1,Epoch:1,URLs:p}); fmt.Print(len(p)," ",len(b),"; ") }
	fmt.Println()
	var b []byte
	cpu(50,"encode mail", float64(len(ps[0])), func(){ b,_ = EncodeMail(Mail{Crawl:"test",From:1,To:2,Number:1,Epoch:1,URLs:ps[0]})})
	cpu(50,"decode mail", float64(len(ps[0])), func(){ DecodeMail(b)})
	c := benchCommit(t)
	var data []byte
	cpu(20,"commit", 2000, func(){ data,_,_ = EncodeCommit(c,"test/p00003/c0000000017-f00000002",h)})
	r,_ := OpenCommit(data)
	for _, s := range r.pack.sections { fmt.Printf("%-10s %8d B\n", s.name, s.length) }
	cpu(10,"pages", 2000, func(){ r.Pages()})
	cpu(10,"links", 100000, func(){ r.Links()})
	cpu(10,"links enc", 100000, func(){ x, _ := appendLinks(nil,c.Links); appendPacked(nil,x)})
	cpu(10,"pages enc", 2000, func(){ x, _ := encodePages(c); appendPacked(nil,x)})
	cpu(10,"held enc", 2000, func(){ x, _ := encodeHeld(c); appendPacked(nil,x)})
	cpu(10,"run enc", 30300, func(){ EncodeRun(c.State,h)})
}
