package simulate

import (
	"os"
	"strings"
	"testing"
)

// TestProofHasTheFaults: docs/proof.md lists each kind of fault that there is.
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
