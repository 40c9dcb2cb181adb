// Package fresh decides when to revisit a page. It estimates how often the page changes and how much a
// revisit is worth, and compares the worth with a threshold, so that all
// revisits together keep to a budget.
//
// The package models the changes of a page as a Poisson process of unknown rate. The belief about the rate is a
// gamma distribution, [blobschema.Change], which [Learn] updates after each revisit. The worth of a revisit
// h hours after the previous one is its gain in freshness, the share of time in which the stored
// copy equals the page. A page is revisited when the worth
// reaches a threshold that all pages share: [Interval]. Thus no queue of all pages by worth is needed, only one number
// for all partitions. [Steer] raises it after too many revisits and lowers it after too few.
// [Trust] weighs the hints of a host's sitemaps by how often they were right.
//
// Sources: J. Cho, H. Garcia-Molina, "Effective Page Refresh Policies for Web Crawlers" (TODS
// 2003): fixed intervals; C. Olston, S. Pandey, "Recrawl Scheduling Based on Information
// Longevity" (WWW 2008): the threshold; R. Busa-Fekete and others, "A Scalable Crawling Algorithm Utilizing Noisy
// Change-Indicating Signals" (WWW 2025): a steered threshold, and hints as time that has passed. New here: the worth is
// the mean over the belief, not the worth at the mean rate.
//
// The package only computes. No result depends on the processor: products are rounded before
// they are added, and the package has its own exponentials.
package fresh
