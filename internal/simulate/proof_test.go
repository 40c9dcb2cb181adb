package simulate

import (
	"os"
	"strings"
	"testing"
)

// TestProofHasTheFaults checks that docs/proof.md lists every kind of fault.
func TestProofHasTheFaults(t *testing.T) {
	text, err := os.ReadFile("../../docs/proof.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range Kinds() {
		if !strings.Contains(string(text), "\n| "+k.String()+" | ") {
			t.Errorf("docs/proof.md does not say how often %q happened", k)
		}
	}
}
