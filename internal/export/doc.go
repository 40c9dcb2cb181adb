// Package export writes a crawl in the formats of other programs: tables of pages and of links, the text of pages, and WACZ.
// The command export of cmd/orbweaver decides about files; this package writes streams.
//
// The main type is [Export]: what to write of which [view.View]. [Export.Lines] writes a list, [Export.Tables] writes tables in
// Parquet, and [Export.WACZ] a web archive in one file. Read export.go first, then table.go for the columns.
//
// Everything is read from commits, never from listings, and passes through in bounded memory: sorting uses files
// (internal/view). A record of the archive that is missing or damaged does not end an export: its page has no content then,
// and the export reports it ([Export.Damaged]).
//
// Stored pages are hostile: texts are bounded by internal/text, and Markdown is made of at most [maxMarkup] bytes of markup in a
// parser that bounds nesting.
package export
