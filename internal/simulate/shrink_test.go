package simulate

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/simweb"
)

// TestShrink shrinks a scenario with too few attempts for the trouble of its hosts. Nothing else may remain of the
// scenario, and the rest must fail by itself.
func TestShrink(t *testing.T) {
	cfg := Scenario(19)
	cfg.Scope, cfg.Seeds, cfg.MaxPages, cfg.Attempts = blobschema.ScopeAny, nil, 0, 2
	cfg.Web.Kinds.Flaky = 0
	cfg.Faults.Max = 200
	for _, k := range []Kind{HostDown, CrashBefore, Lost} {
		cfg.Faults.Chances[k] = 0.05
	}
	res, err := Run(cfg)
	if err == nil || sortOf(err) != "truth" {
		t.Fatalf("the scenario does not fail as it should: %v", err)
	}
	s := Shrink(t.Context(), Failure{Seed: cfg.Seed, Config: cfg, Result: res, Err: err}, 300)
	left := s.Config.Faults.Only
	if len(left) == 0 || len(left) > 3 || slices.ContainsFunc(left, func(f Fault) bool { return f.Kind != HostDown && f.Kind != HostSlow }) {
		t.Errorf("of %d faults, these remain: %v", len(res.Fired), left)
	}
	if again, err := Run(s.Config); err == nil || again.Trace != s.Result.Trace {
		t.Errorf("the shrunk scenario ends with %v", err)
	}
	if len(s.Last) == 0 || !strings.Contains(s.String(), "Only: []Fault{") {
		t.Errorf("it is described as\n%s", s)
	}
}

func TestSource(t *testing.T) {
	cfg := Config{
		Seed: 7, Web: simweb.Config{Hosts: 2, SlowBody: 90 * time.Second}, Scope: blobschema.ScopeAny,
		Faults: Faults{Chances: map[Kind]float64{Lost: 0.5}, Only: []Fault{{CrashBefore, "step 1/2", 3}}},
	}
	const want = `Config{
	Seed: 0x7,
	Web: simweb.Config{
		Hosts:    2,
		SlowBody: 90000000000,
	},
	Scope: "any",
	Faults: Faults{
		Chances: map[Kind]float64{
			Lost: 0.5},
		Only: []Fault{
			Fault{
				Kind: CrashBefore,
				Who:  "step 1/2",
				N:    3}}},
}`
	if got := cfg.source(); got != want {
		t.Errorf("got\n%s", got)
	}
}
