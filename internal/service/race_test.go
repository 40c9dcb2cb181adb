//go:build race

package service_test

// raced says that the race detector slows everything down several times over.
const raced = true
