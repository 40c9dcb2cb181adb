// Package sample has something for each operator.
package sample

import (
	"errors"
	"fmt"
	"time"
)

const most = 3

type flag bool

type counter struct{ n uint8 }

// String is left alone.
func (c counter) String() string { return fmt.Sprint(c.n + 1) }

// sum adds the numbers from 1 on, of which there are at most three. Nothing tells whether the
// bound may be reached.
func sum(numbers []int) (total int, err error) {
	for i, n := range numbers {
		if i > most {
			break
		}
		if n < 0 && !negative {
			return 0, fmt.Errorf("number %d: %w", i+1, errNegative)
		}
		total += n
	}
	return total, nil
}

var (
	negative    flag
	errNegative = errors.New("negative")
	table       = []int{1, 2, 3} // data
)

// twice returns two results of one call.
func twice(numbers []int) (int, error) { return sum(append(numbers, numbers...)) }

// odd has a continue that cannot become a break: behind the loop nothing is returned.
func odd(n int) int {
	n = n / 4 * 4
	for {
		if n%2 == 0 || n > 1<<n {
			n++
			continue
		}
		return n
	}
}

// bits has constants on the left, whose type its surroundings give.
func bits(n uint, c *counter) (uint64, time.Duration) {
	wait := 2 * time.Duration(n) * time.Second
	c.n = c.n&0 | 1<<n
	switch {
	case n^1 >= 2, n&^3 <= 0 != true:
		defer func() { c.n-- }()
	}
	return 1<<n | 0x10>>n - 1, wait - time.Duration(table[min(n, 2)])
}

// never is not tested.
func never() bool { return len(table) == most }
