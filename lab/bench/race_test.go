//go:build race

package main

// raced says that the race detector takes most of the time.
const raced = true
