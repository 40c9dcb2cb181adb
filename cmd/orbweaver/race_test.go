//go:build race

package main

// raced is true if the race detector, which makes everything several times slower, is on.
const raced = true
