package main

import (
	"fmt"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"strings"
)

func main() {
	for seed := uint64(1); seed < 3000; seed++ {
		cfg := simweb.Demo()
		cfg.Seed = seed
		cfg.Robots.Error = 0
		cfg.Port = 9999
		w, err := simweb.New(cfg)
		if err != nil { panic(err) }
		t := w.Truth(simweb.Scope{Attempts: 2, SkipDigests: true})
		cost := map[string]float64{}
		kinds := map[string]int{}
		n := map[string]int{}
		for u, e := range t.Pages {
			host := strings.SplitN(u, "/", 4)[2]
			kinds[e.Outcome.String()]++
			n[host]++
			if e.Kind == simweb.KindDenied || e.Outcome == 14 { continue }
			for a := 0; a < 2; a++ {
				r := w.Answer(simweb.Request{URL: u, Attempt: a})
				switch {
				case r.Status == 429 || r.Status >= 502:
					cost[host] += 20
					kinds["overload"]++
				case r.Fault == simweb.FaultCut || r.Fault == simweb.FaultReset || r.Fault == simweb.FaultGarbage:
					cost[host] += 2
					kinds["brk"]++
				case r.Status >= 500:
					cost[host] += 0.2
					kinds["500"]++
				default:
					a = 9
				}
			}
		}
		worst := 0.0
		for _, c := range cost { worst = max(worst, c) }
		if worst <= 8 || worst <= 21 && kinds["overload"] > 0 && len(kinds) > 10 && kinds["server-error"]>0 {
			fmt.Println(seed, worst, len(t.Pages), kinds)
		}
	}
}
