//go:build race

package fetch

// raced says that the race detector slows everything down several times over.
const raced = true
