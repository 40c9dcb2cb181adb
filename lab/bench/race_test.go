//go:build race

package main

// raced is true if the race detector is on, which takes most of the time.
const raced = true
