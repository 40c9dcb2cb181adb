package aws

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

func TestPieces(t *testing.T) {
	for _, parts := range [][]string{{}, {""}, {"a"}, {"ab", "", "c", ""}, {"", "abc"}, {strings.Repeat("x", 5000), "y", strings.Repeat("z", 3)}} {
		var b [][]byte
		for _, p := range parts {
			b = append(b, []byte(p))
		}
		p := newPieces(b)
		want := strings.Join(parts, "")
		if p.size != int64(len(want)) {
			t.Errorf("%q: %d bytes", parts, p.size)
		}
		if err := iotest.TestReader(io.NewSectionReader(p, 0, p.size), []byte(want)); err != nil {
			t.Errorf("%q: %v", parts, err)
		}
	}
}

// TestItemSize compares with sizes computed by hand from DynamoDB's rules.
func TestItemSize(t *testing.T) {
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	type item = map[string]types.AttributeValue
	for _, c := range []struct {
		item item
		want int
	}{
		{item{}, 0},
		{item{"key": text("k")}, 3 + 1},
		{item{"ümk": text("ü")}, 4 + 2},
		{item{"b": &types.AttributeValueMemberBOOL{Value: true}}, 1 + 1},
	} {
		if got := itemSize(c.item); got != c.want {
			t.Errorf("%v: %d, want %d", c.item, got, c.want)
		}
	}
}

func TestCapacity(t *testing.T) {
	for units, want := range map[float64]int{0.5: 4096, 1: 4096, 2: 8192, 2.5: 12288} {
		if got := capacity(readUnit, &types.ConsumedCapacity{CapacityUnits: &units}); got != want {
			t.Errorf("%g units: %d bytes, want %d", units, got, want)
		}
	}
	if got := capacity(writeUnit, nil); got != writeUnit {
		t.Errorf("no answer: %d bytes", got)
	}
}

func TestLocalEndpoint(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"": false, "https://s3.amazonaws.com": false, "http://127.0.0.1:4566": true, "http://[::1]:4566": true,
		"http://localhost:4566": true, "http://s3.localhost:1": true, "http://localhost.example.org": false, "%": false,
	} {
		if got := localEndpoint(aws.String(endpoint)); got != want {
			t.Errorf("%s: %v", endpoint, got)
		}
	}
}
