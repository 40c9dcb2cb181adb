// Package virtual is the in-memory world in which tests, simulations and measurements run actors. It holds a [Clock], which
// jumps from one event to the next, a [Store] with the objects and records of a crawl, and a [Process], which executes an
// actor. Its users add queues, costs, faults and a web.
//
// Read clock.go, then process.go, then store.go. The store checks invariant I6: an object never changes.
package virtual
