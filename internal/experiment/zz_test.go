package experiment
import ("testing";"fmt";"time";"os";"strconv")
func TestZZ(t *testing.T) {
	n,_ := strconv.Atoi(os.Getenv("SEEDS"))
	if n==0 {n=500}
	ef:=func(k string,v *float64){ if x,err:=strconv.ParseFloat(os.Getenv(k),64);err==nil{*v=x} }
	ed:=func(k string,v *time.Duration){ if x,err:=time.ParseDuration(os.Getenv(k));err==nil{*v=x} }
	ef("ZIPF",&campusZipf); ef("RS",&replySigma); ed("RM",&replyMedian); ed("RX",&replyMost); ed("CM",&connectMedian);ed("L",&longest);ed("CX",&connectMost); ef("CS",&connectSigma)
	hosts,pages:=500,30000
	c,err:=newCampus(1,hosts,pages,n)
	if err!=nil{t.Fatal(err)}
	maxchain,sum:=0.0,0.0
	cnt:=make([]float64,hosts)
	for _,h:=range c.host {cnt[h]++}
	for h,s:=range c.servers { x:=cnt[h]*(s.Response.Seconds()+s.Connect.Seconds()/float64(s.PerConnection)); sum+=x; if x>maxchain{maxchain=x}}
	fmt.Println("pages",len(c.urls),"largest",cnt[0],cnt[64],cnt[250],"work/64",sum/64,"max chain",maxchain)
	ones:=make([]float64,len(c.urls)); for i:=range ones{ones[i]=1/float64(len(ones))}
	var bfs time.Duration
	for _,tr:=range []*policyTrial{{policy:"breadth-first"},{policy:"performance"},{policy:"quality",quality:c.rank},{policy:"capability",quality:c.rank},{policy:"quality",quality:c.zipf},{policy:"capability",quality:c.zipf}} {
		tr.known=os.Getenv("KNOWN")!=""
		t0:=time.Now()
		if err:=tr.run(c,1,64);err!=nil{t.Fatal(err)}
		if bfs==0{bfs=tr.end}
		fmt.Printf("%-14s end %6.0f s (%.1fs cpu)",tr.policy,tr.end.Seconds(),time.Since(t0).Seconds())
		for _,f:=range []float64{0.1,0.2,0.3,1./3,0.5,0.7}{
			at:=time.Duration(f*float64(bfs))
			fmt.Printf(" | %.2f: %.3f %.3f %.3f",f,tr.share(ones,at),tr.share(c.rank,at),tr.share(c.zipf,at))
		}
		fmt.Println()
	}
}
