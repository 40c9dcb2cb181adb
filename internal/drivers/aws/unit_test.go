package aws

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

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
