// Package fresh says when a page that was had is worth a second look: what is known of how
// often it changes, what a look is worth, and from which worth on one is taken, so that all
// looks together keep to a budget.
//
// Changes of a page are taken for a Poisson process. Its rate is not known but believed: a
// gamma distribution, [blobschema.Change], which [Learn] sharpens with each look. A look that
// comes h hours after the last is worth what it adds to freshness (the share of time in which the stored
// copy is the page as it is) for each look more. A page is looked at when the worth
// reaches a threshold that all pages share: [Interval]. So no queue of all pages by worth is needed, only one number
// for all partitions, which [Steer] raises if there are too many looks and lowers if there are too few.
// What sitemaps say counts as far as the host's word turned out true: [Trust].
//
// Sources: J. Cho, H. Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers" (TODS
// 2003): fixed intervals; C. Olston, S. Pandey, "Recrawl Scheduling Based on Information
// Longevity" (WWW 2008): the threshold; Y. Azar and others, "Tractable near-optimal policies for crawling" (PNAS 2018):
// [Optimum]; R. Busa-Fekete and others, "A Scalable Crawling Algorithm Utilizing Noisy
// Change-Indicating Signals" (WWW 2025): a steered threshold, and hints as time that has passed. Ours is to take worth over
// what is believed of a rate, not at its mean.
//
// The package computes and does nothing else. No result depends on the processor: products are rounded before
// they are added, and exponentials are its own.
package fresh
