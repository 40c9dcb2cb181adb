// Package virtual is the world that actors live in where nothing is real: a clock that jumps from one
// event to the next.
package virtual
