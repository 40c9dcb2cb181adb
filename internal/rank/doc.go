// Package rank works out what pages and hosts are worth by the links to them: PageRank, by rounds of
// messages between the partitions of a crawl.
//
// [Start] creates a job: it freezes which commits go in, and which partition owns which slot. [Step]
// does one partition's next round, and the one after it where everybody else has finished too. Both are
// actors, as those of package crawl are, and do no I/O. A message on the queue
// only says "look"; what there is to do, the job's record and the partitions' heads say.
//
// # What is computed
//
// Pages: a node is a URL that was answered with a page or a redirect, or that such a one links to within
// the crawl's scope; links marked nofollow do not count, nor do those of a page to itself, and several
// to one page count once. Of a page's answers the one of the highest generation counts: 4xx, and a robots.txt that
// now forbids it, take its links away; an unchanged page (304) keeps them; what brought no answer, and 5xx, leave all
// as it was. URLs that were not asked for have no links: they are dangling.
//
// Hosts: a node is the authority of a page, or of what one links to, in scope or not. There is a link
// if any page of the one links to the other.
//
// With x the ranks, A the links with equal shares of what each node gives, v the personalisation
// (equal shares of all nodes, or the weights that were given) and d the damping, a round works out
//
//	x' = d (A x + m v) + (1 - d) v
//
// with m the sum of the ranks of dangling nodes. Ranks add up to 1. The first x is that of the
// last job, where there is one (new nodes get their share of v, then all is scaled to 1), or v. It ends when no level changes
// by more than the tolerance, as the sum of absolute differences, or after the most rounds
// that were allowed. (Page, Brin, Motwani, Winograd 1999, section 2; the dangling nodes as in
// Langville, Meyer 2004, section 3.)
//
// # Rounds
//
//	gather  each partition reads its commits since the last job, and sends pages with their links to the
//	        partitions that own them by the job's map: to itself, but for slots that have moved
//	join    of each page the newest answer; to each partition what is linked to of its own, in order
//	nodes   all nodes are known and numbered; texts of links are put together by target
//	start   the first ranks, and what each node gives to what it links to
//	...     iteration: numbers alone, in the order agreed on
//	final   tables of ranks; who sees that all are done makes the whole table of hosts, and the job is done
//
// Each round of a partition is one object with a part for each partition, and a compare-and-set of its head, which
// names it. All sums are made in the order of partitions, so the result is the same to the last bit, whatever crashed,
// came twice or ran at the same time; objects are named by their content. A round ends when all heads
// have finished it: whoever sees that tells the others. Where one partition has it all,
// nothing is stored between rounds, as long as the step has time.
//
// A step takes some 55 bytes of memory a link while it joins, and more where pages have few; 4 bytes a
// link, 8 bytes a pair of partition and target and 40 bytes a node while it iterates. See docs/rank.md.
package rank
