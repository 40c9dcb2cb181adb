package sample

import (
	"errors"
	"testing"
	"time"
)

func TestSum(t *testing.T) {
	if n, err := sum([]int{1, 2}); n != 3 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := sum([]int{-1}); !errors.Is(err, errNegative) {
		t.Error(err)
	}
	if n, _ := sum([]int{1, 1, 1, 1, 1, 1}); n < 3 {
		t.Error(n)
	}
}

func TestTwice(t *testing.T) {
	if n, err := twice([]int{2}); n != 4 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

func TestOdd(t *testing.T) {
	if n := odd(6); n != 5 {
		t.Error(n)
	}
}

func TestBits(t *testing.T) {
	c := counter{1}
	n, wait := bits(3, &c)
	if n != 9 || wait != 6*time.Second-3 || c.n != 7 {
		t.Error(n, wait, c.n)
	}
}
