package fsck_test

import (
	"testing"

	"github.com/orbweaver/orbweaver/internal/fsck"
)

func check(t testing.TB, m *memory, opt fsck.Options) fsck.Report {
	t.Helper()
	rep, err := fsck.Check(t.Context(), m, opt)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestCleanCrawls(t *testing.T) {
	for name, once := range map[string]func() (*memory, error){"whole": crawled, "limited": cut} {
		t.Run(name, func(t *testing.T) {
			rep := check(t, mustCrawl(t, once), fsck.Options{})
			for _, v := range rep.Violations {
				t.Error(v)
			}
			t.Logf("%+v", rep)
		})
	}
}
