//go:build race

package service_test

// raced reports that the race detector is on, which makes everything several times slower.
const raced = true
