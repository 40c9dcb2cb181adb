// Package virtual is the world in memory that tests, simulations and measurements run actors in: a [Clock] that
// jumps from one event to the next, and a [Store] with the objects and records of a crawl. Who uses it adds
// queues, costs, faults and a web.
package virtual
