package experiment

import (
	"math"
	"slices"
	"testing"
	"time"
)

// TestTopics runs the experiment for an hour of virtual time.
func TestTopics(t *testing.T) {
	small(t, "topics", topics, nil)
}

func TestEvenness(t *testing.T) {
	for _, c := range []struct {
		pages             []int
		variation, fewest float64
	}{
		{[]int{0, 0, 0}, 0, 0}, {[]int{5, 5, 5}, 0, 1}, {[]int{1, 3}, 0.5, 1.0 / 3}, {[]int{0, 4}, 1, 0},
	} {
		if v, f := evenness(c.pages); math.Abs(v-c.variation) > 1e-12 || math.Abs(f-c.fewest) > 1e-12 {
			t.Errorf("%v: got %v and %v, want %v and %v", c.pages, v, f, c.variation, c.fewest)
		}
	}
}

// TestTopicShares checks that hours without a page are counted, and that the least share is that of the worst hour.
func TestTopicShares(t *testing.T) {
	trial := topicTrial{hours: [][]int{{1, 3}, {0, 4}, {0, 0}}}
	for topic, want := range []struct {
		least float64
		none  int
	}{{0, 2}, {0, 1}} {
		if least, none := trial.shares(topic); least != want.least || none != want.none {
			t.Errorf("topic %d: got %v and %d, want %+v", topic, least, none, want)
		}
	}
	trial.hours = trial.hours[:2]
	if least, none := trial.shares(1); least != 0.75 || none != 0 {
		t.Errorf("got %v and %d", least, none)
	}
}

func TestTimes(t *testing.T) {
	if got := times([]time.Duration{3, 0, 1, 0, 2}); !slices.Equal(got, []time.Duration{1, 2, 3}) {
		t.Errorf("got %v", got)
	}
}
