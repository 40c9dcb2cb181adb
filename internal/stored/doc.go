// Package stored reads the state of a crawl: records of the table, commits, manifests, maps
// and lists of URLs. Actors and viewers use the same functions. An actor passes the Object
// method of its task, a viewer passes [Under] of a [Store].
//
// Records say what is visible: a partition's head names its last commit, and the manifest of
// that commit names everything else. The formats are those of package blobschema. The package
// caches nothing, and it does not know who may write.
package stored
