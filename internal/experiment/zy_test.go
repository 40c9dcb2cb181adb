package experiment
import ("testing";"fmt";"time";"sort")
func TestZY(t *testing.T) {
	replyMedian,replySigma,replyMost,connectMost,longest=150*time.Millisecond,1.2,5*time.Second,400*time.Millisecond,50*time.Second
	c,err:=newCampus(1,500,30000,500)
	if err!=nil{t.Fatal(err)}
	cost:=func(p int)float64{ s:=c.servers[c.host[p]]; return s.Response.Seconds()+s.Connect.Seconds()/float64(s.PerConnection)}
	var ideal []float64
	for p:=range c.urls{ideal=append(ideal,cost(p))}
	sort.Float64s(ideal)
	for _,known:=range []bool{false,true}{
	tr:=&policyTrial{policy:"performance",known:known}
	if err:=tr.run(c,1,64);err!=nil{t.Fatal(err)}
	n:=len(tr.order)
	for d:=0;d<10;d++{ a,b,m:=0.0,0.0,0; for i:=d*n/10;i<(d+1)*n/10;i++{a+=cost(tr.order[i]);b+=ideal[i];m++}; fmt.Printf("%d: at %.1fs cost %.3f ideal %.3f | ",d,tr.at[(d+1)*n/10-1].Seconds(),a/float64(m),b/float64(m)) }
	fmt.Println()
	}
}
