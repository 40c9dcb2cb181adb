package export

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"golang.org/x/net/publicsuffix"
	"golang.org/x/text/language"

	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
	"github.com/orbweaver/orbweaver/partition"
)

// capture is a row of the table of pages. The columns up to Subset are those of the columnar index of Common Crawl
// (https://github.com/commoncrawl/cc-index-table); those that follow are of this program.
type capture struct {
	SURTKey          string    `parquet:"url_surtkey"`
	URL              string    `parquet:"url"`
	Host             string    `parquet:"url_host_name"`
	TLD              string    `parquet:"url_host_tld,optional"`
	Last2            string    `parquet:"url_host_2nd_last_part,optional"`
	Last3            string    `parquet:"url_host_3rd_last_part,optional"`
	Last4            string    `parquet:"url_host_4th_last_part,optional"`
	Last5            string    `parquet:"url_host_5th_last_part,optional"`
	RegistrySuffix   string    `parquet:"url_host_registry_suffix,optional"`
	RegisteredDomain string    `parquet:"url_host_registered_domain,optional"`
	PrivateSuffix    string    `parquet:"url_host_private_suffix,optional"`
	PrivateDomain    string    `parquet:"url_host_private_domain,optional"`
	HostReversed     string    `parquet:"url_host_name_reversed,optional"`
	Protocol         string    `parquet:"url_protocol"`
	Port             int32     `parquet:"url_port,optional"`
	Path             string    `parquet:"url_path,optional"`
	Query            string    `parquet:"url_query,optional"`
	FetchTime        time.Time `parquet:"fetch_time,timestamp(millisecond)"`
	Status           int16     `parquet:"fetch_status,optional"`
	Redirect         string    `parquet:"fetch_redirect,optional"`
	Digest           string    `parquet:"content_digest,optional"`
	MIME             string    `parquet:"content_mime_type,optional"`
	MIMEDetected     string    `parquet:"content_mime_detected,optional"`
	Charset          string    `parquet:"content_charset,optional"`
	Languages        string    `parquet:"content_languages,optional"`
	Truncated        string    `parquet:"content_truncated,optional"`
	WARC             string    `parquet:"warc_filename,optional"`
	Offset           int64     `parquet:"warc_record_offset,optional"`
	Length           int64     `parquet:"warc_record_length,optional"`
	Segment          string    `parquet:"warc_segment,optional"`
	Crawl            string    `parquet:"crawl"`
	Subset           string    `parquet:"subset"`

	Outcome     string `parquet:"outcome"`
	Detail      string `parquet:"detail,optional"`
	Title       string `parquet:"title,optional"`
	H1          string `parquet:"h1,optional"`
	Description string `parquet:"description,optional"`
	Canonical   string `parquet:"canonical,optional"`
	Lang        string `parquet:"lang,optional"`
	Hreflang    string `parquet:"hreflang,optional"` // JSON
	Directives  string `parquet:"robots_directives,optional"`
	NoIndex     bool   `parquet:"noindex"`
	Requisite   bool   `parquet:"requisite"`
	BodyBytes   int64  `parquet:"body_bytes,optional"`
	FirstByte   int32  `parquet:"ttfb_ms,optional"`
	Total       int32  `parquet:"total_ms,optional"`
	IP          string `parquet:"ip,optional"`
	HTTP        string `parquet:"protocol,optional"`
	Links       int32  `parquet:"links"`
	Depth       int32  `parquet:"depth"`
	Generation  int64  `parquet:"generation"`
	Change      string `parquet:"change,optional"`
	Topic       string `parquet:"topic_name,optional"`
	Referrer    string `parquet:"first_referrer,optional"`
	Words       *int32 `parquet:"words,optional"`
	Headers     string `parquet:"response_headers,optional"` // JSON
}

// link is a row of the table of links.
type link struct {
	Source   string    `parquet:"source"`
	Fetched  time.Time `parquet:"fetched,timestamp(millisecond)"`
	Target   string    `parquet:"target,optional"`
	Host     string    `parquet:"target_host"`
	Kind     string    `parquet:"kind,optional"`
	Anchor   string    `parquet:"anchor,optional"`
	NoFollow bool      `parquet:"nofollow"`
	Followed bool      `parquet:"followed"`
	Outcome  string    `parquet:"target_outcome,optional"`
	Status   int16     `parquet:"target_status,optional"`
}

// rowsBuffered bounds the rows of a row group, which is in memory until it is written.
const rowsBuffered = 50_000

func newTable[R any](w io.Writer, sorted ...string) *parquet.GenericWriter[R] {
	var by []parquet.SortingColumn
	for _, name := range sorted {
		by = append(by, parquet.Ascending(name))
	}
	return parquet.NewGenericWriter[R](w, parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowsBuffered),
		parquet.SortingWriterConfig(parquet.SortingColumns(by...)))
}

// Pages writes the page records as tables in Parquet, one for each partition that has some, sorted by url_surtkey. create
// opens the file of a partition; the caller closes it.
func (e *Export) Pages(ctx context.Context, create func(partition.ID) (io.Writer, error)) error {
	var table *parquet.GenericWriter[capture]
	var of partition.ID
	finish := func() error {
		if table == nil {
			return nil
		}
		return table.Close()
	}
	err := e.records(ctx, e.View.Sorted(ctx, e.Which, e.Referrer, e.Tmp, e.sorted), func(r *Record) (err error) {
		if table == nil || of != r.Partition {
			if err = finish(); err != nil {
				return err
			}
			file, err := create(r.Partition)
			if err != nil {
				return err
			}
			of, table = r.Partition, newTable[capture](file, "url_surtkey")
		}
		row, err := e.capture(r)
		if err == nil {
			_, err = table.Write([]capture{row})
		}
		return err
	})
	if err != nil {
		return err
	}
	return finish()
}

// LinkTable writes the links as a table in Parquet, in the order of the capture index of their sources.
func (e *Export) LinkTable(ctx context.Context, w io.Writer) error {
	e.Rows = 0
	table := newTable[link](w)
	err := e.links(ctx, func(l *view.Link) error {
		_, err := table.Write([]link{{l.Source, l.Fetched, l.Target, l.Host, l.Kind, l.Anchor, l.NoFollow, l.Followed, l.Outcome, int16(l.Status)}})
		return err
	})
	if err != nil {
		return err
	}
	return table.Close()
}

func (e *Export) capture(r *Record) (capture, error) {
	u, err := weburl.Parse(r.URL)
	if err != nil {
		return capture{}, fmt.Errorf("page record: %w", err)
	}
	_, query, _ := strings.Cut(u.RequestURI(), "?")
	c := capture{
		SURTKey: r.Key, URL: r.URL, Protocol: u.Scheme(), Path: u.Path(), Query: query,
		FetchTime: r.Time, Status: int16(r.Status), Redirect: r.Redirect, Digest: strings.TrimPrefix(r.Digest, "sha1:"), MIME: r.MIME,
		MIMEDetected: r.Media, Charset: r.Charset, Languages: iso3(r.Language, r.Lang), Truncated: r.Truncated,
		WARC: r.WARC, Offset: r.Offset, Length: r.Length, Segment: strconv.Itoa(int(r.Partition)), Crawl: e.View.ID(), Subset: subset(r),
		Outcome: r.Outcome.String(), Detail: r.Detail, Title: r.Title, H1: r.H1, Description: r.Description, Canonical: r.Canonical, Lang: r.Lang,
		Directives: r.Directives, NoIndex: r.NoIndex, Requisite: r.Requisite, BodyBytes: r.BodyBytes, FirstByte: int32(r.FirstByte), Total: int32(r.Total),
		IP: r.IP, HTTP: r.Record.Protocol, Links: int32(r.Links), Depth: int32(r.Depth), Generation: int64(r.Generation), Change: r.Change, Topic: r.Topic,
		Referrer: r.Referrer,
	}
	if _, port, err := net.SplitHostPort(string(u.Host())); err == nil {
		n, _ := strconv.ParseUint(port, 10, 16)
		c.Port = int32(n)
	}
	c.setHost(u.Host().Name())
	if r.Hreflang != nil {
		c.Hreflang = jsonText(r.Hreflang)
	}
	if r.Words != nil {
		n := int32(*r.Words)
		c.Words = &n
	}
	if r.Headers != nil {
		c.Headers = jsonText(r.Headers)
	}
	return c, nil
}

// setHost sets the columns of a host. An address has no parts.
func (c *capture) setHost(name string) {
	c.Host = name
	if net.ParseIP(name) != nil {
		return
	}
	parts := strings.Split(name, ".")
	slices.Reverse(parts)
	c.HostReversed = strings.Join(parts, ".")
	for i, to := range []*string{&c.TLD, &c.Last2, &c.Last3, &c.Last4, &c.Last5} {
		if i < len(parts) {
			*to = parts[i]
		}
	}
	c.PrivateSuffix, _ = publicsuffix.PublicSuffix(name)
	c.PrivateDomain, _ = publicsuffix.EffectiveTLDPlusOne(name)
	// Suffixes in the private part of the list, such as github.io, are below one in the other part.
	suffix, listed := publicsuffix.PublicSuffix(name)
	for !listed && strings.Contains(suffix, ".") {
		_, suffix, _ = strings.Cut(suffix, ".")
		suffix, listed = publicsuffix.PublicSuffix(suffix)
	}
	c.RegistrySuffix = suffix
	if rest, ok := strings.CutSuffix(name, "."+suffix); ok {
		c.RegisteredDomain = rest[strings.LastIndexByte(rest, '.')+1:] + "." + suffix
	}
}

// subset returns the part of Common Crawl's archives that a record would be in.
func subset(r *Record) string {
	switch {
	case r.Robots:
		return "robotstxt"
	case r.Status >= 200 && r.Status < 300:
		return "warc"
	}
	return "crawldiagnostics"
}

// iso3 returns the first of some language tags that is one, as ISO 639-3.
func iso3(tags ...string) string {
	for _, t := range tags {
		if tag, err := language.Parse(t); err == nil && t != "" {
			base, _ := tag.Base()
			return base.ISO3()
		}
	}
	return ""
}
