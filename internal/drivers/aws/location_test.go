package aws

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Location
		err  string
	}{
		{"aws://crawl?bucket=b.c&partitions=16&region=eu-west-1", Location{"crawl", "b.c", 16, 16, "eu-west-1"}, ""},
		{"aws://My-2?partitions=4096&bucket=b", Location{"My-2", "b", 4096, 4096, ""}, ""},
		{"aws://abc/?partitions=1&bucket=b", Location{"abc", "b", 1, 1, ""}, ""},
		{"aws://abc?partitions=4&bucket=b&mailboxes=16", Location{"abc", "b", 4, 16, ""}, ""},
		{"aws://abc?mailboxes=4&bucket=b&partitions=4", Location{"abc", "b", 4, 4, ""}, ""},
		{"aws://abc?bucket=b&mailboxes=4", Location{}, "partitions is missing"},
		{"aws://abc?bucket=b&partitions=5&mailboxes=4", Location{}, "4 mailboxes are too few for 5 partitions"},
		{"aws://abc?bucket=b&partitions=5&mailboxes=4097", Location{}, `mailboxes is "4097", not a number from 1 to 4096`},
		{"aws://abc?partitions=1", Location{}, "bucket is missing"},
		{"aws://abc?bucket=b", Location{}, "partitions is missing"},
		{"aws://abc?bucket=&partitions=1", Location{}, "bucket needs one value"},
		{"aws://abc?bucket=a&bucket=b&partitions=1", Location{}, "bucket needs one value"},
		{"aws://abc?bucket=b&partitions=0", Location{}, `partitions is "0"`},
		{"aws://abc?bucket=b&partitions=4097", Location{}, "from 1 to 4096"},
		{"aws://abc?bucket=b&partitions=x", Location{}, `partitions is "x"`},
		{"aws://abc?bucket=b&partitions=1&endpoint=http://x", Location{}, "parameter endpoint is unknown"},
		{"aws://ab?bucket=b&partitions=1", Location{}, "is not 3 to 48 letters"},
		{"aws://a_b?bucket=b&partitions=1", Location{}, "is not 3 to 48 letters"},
		{"aws://abc/def?bucket=b&partitions=1", Location{}, "only a name and parameters"},
		{"aws://me@abc?bucket=b&partitions=1", Location{}, "only a name and parameters"},
		{"aws:abc?bucket=b&partitions=1", Location{}, "only a name and parameters"},
		{"s3://abc?bucket=b&partitions=1", Location{}, "scheme is not aws"},
		{"aws://abc?bucket=%zz&partitions=1", Location{}, "invalid URL escape"},
	} {
		got, err := Parse(c.in)
		if got != c.want || (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v; want %+v, %s", c.in, got, err, c.want, c.err)
		}
		if err != nil {
			continue
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s: again %+v, %v", got, again, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("aws://crawl?bucket=b.c&partitions=16&region=eu-west-1")
	f.Add("aws://[::1]?bucket=%00&partitions=1")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := Parse(s)
		if err != nil {
			return
		}
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Errorf("%q: %+v, again %+v, %v", s, l, again, err)
		}
	})
}
