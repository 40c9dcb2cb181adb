// Package fsck checks a crawl by what is stored of it: it derives the invariants
// again from records and objects alone, and shares no code with the frontier and
// the step that are to keep them.
//
// It stands beside everything else: operators run it as a command, and every test
// that crawls ends with it. The main function is [Check], over any [Store]. It
// only reads, and may run while the crawl does: it looks at the commits that are visible
// when it begins.
//
// Slots move between partitions, and page records stay where they were committed. So what
// is known of a URL is looked for at the home of its slot, the one partition that holds it
// or is to take it from a hand-over, and its page records anywhere.
//
// What it finds of each invariant:
//
//	I1  every stored URL canonicalises to itself, and so does every unit and site
//	I2  the slot stored with a unit or URL is its unit's: its host, registrable domain or
//	    address; a name has one address
//	I3  each slot is held by one partition, or is in one hand-over that nobody has taken;
//	    it is where the map says, or on the move there; a partition's state and pages
//	    are of slots it held then, mail goes to who owned its slots; epochs never go
//	    back, and slots move as the maps that are kept say
//	I4  each commit is where and what its name says, fences never go back, commits
//	    follow one another without a gap, and nobody else names their WARC objects
//	I5  no more mail is applied than was sent, requests included, and marks never shrink
//	I6  every object that is named exists and reads back whole: checksums, order
//	    of runs, digests of all WARC records, and page records that agree with them;
//	    the original of every revisit is a response that an earlier page record, or one of
//	    the same commit, is about
//	I7  every seed, every link followed, every request and every URL in mail that was applied
//	    is known at the home of its slot, is on its way there, or was left out for a cap;
//	    what is settled has a page record that says how, in the commit that its origin
//	    names, and the other way round; what was forwarded is known at an address; no merge
//	    of runs and no move of a slot lost anything; all counts are right
//	I8  of each URL and generation there is one visible page record at most, and none
//	    while that is pending; no URL has two addresses
//	I9  no two answers of a unit are closer than the delay
//	I11 what the index shows is a page of a visible commit that is in it, as of the last answer
//	    that says anything, once; segments are whole, and what manifest and head say of them
//
// I5 and I9 it can only refute: mail in queues is not looked at, and requests
// that brought no answer leave no record. I10 compares crawls, which is the
// simulation's to do. A violation of "limit" is about the page limit, one of "ranks" about ranks:
// that of a job that is done each partition has its result, and that ranks add up to 1.
//
// Some things are not stored, so that less can be checked of them. A link that a cap
// left out has neither URL nor reason: what is checked is that its slot, or partition, has
// as many URLs as the cap allows, and that no more links are missing than the
// partition counted. Which pages were asked for on purpose, and so do not count against
// the limit, no record says: with requests or recrawls the total of pages is an upper
// bound. In a crawl by IP the address of a name is known from mail, from pending URLs, and
// from the WARC objects that are read; the pace of names whose address is not known
// is checked name by name, and the slot of their pages not at all.
//
// Objects that nothing names are what crashed steps and merges left: they are
// counted, and are no damage. [Repair] deletes them, and wakes partitions whose wake was
// lost; it does nothing else, and nothing at all to a crawl with violations.
//
// Heads are not read at one moment, for a large crawl never stands still. A head read early
// tells too little, which looks like mail on its way; only where slots are must agree, and
// is read again until it does. What is broken all the same is looked at a second time if
// the crawl has gone on.
//
// Index and ranks are read when the commits were, each again if something is wrong and others
// have changed it meanwhile. Text is not made again of pages: that a page of text/html is not in the
// index may be for a reason that no record tells, and is only counted.
//
// A check can leave a [State], with which the next one need not read WARC objects again.
// And it can be asked for some slots or one partition: then its report says what it does
// not know.
package fsck
