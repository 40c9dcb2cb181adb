package blobschema

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/partition"
)

// Mail is a batch of URLs for one partition. It holds the URL, Depth,
// Generation, Flags, Rank and Topic of each URL, and Key if FlagPlaced is set. The
// receiver derives everything else.
type Mail struct {
	Crawl  string
	From   partition.ID // partition.Intake for seeds
	To     partition.ID
	Number uint64          // of the mail from From to To, from 1; mail number 0 is a hint that may be lost
	Epoch  partition.Epoch // of the map that the sender used
	// Request is a hash of the id of an operator's request, 0 for none: URLs with
	// FlagAgain take effect once per request.
	Request uint64
	URLs    []Queued
}

// Bounds of one message, which both writer and reader check.
const (
	// MaxMailBytes bounds an encoded message, so that the queue of every cloud accepts it: in base64
	// with an attribute for the encoding it is a little less than 256 KiB of text.
	MaxMailBytes = 191 << 10
	MaxMailText  = 4 << 20 // of URLs, expanded
	MaxMailURLs  = 100_000

	// MailTarget is the size to split mail into. Queues transport text and bill each 64 KiB.
	// This size is below 64 KiB in base64, which adds a third.
	MailTarget = 45_000
)

// A letter is mail or a batch of seeds:
//
//	kind, version, head, URLs (packed), CRC-32C of all before it
//
// The head is not compressed, so that the same URLs have the same
// bytes in any mail.
const (
	letterMail  = 'M'
	letterSeeds = 'S'
	letterKind  = 2 // bytes of kind and version
	letterSum   = 4

	// mailHead bounds the bytes of mail besides its packed URLs.
	mailHead = letterKind + 1 + naming.MaxCrawlID + 5*binary.MaxVarintLen64 + letterSum
	// maxPacked bounds the decompressed URLs: their texts without shared prefixes, and
	// their other fields.
	maxPacked = MaxMailText + MaxMailURLs*24
)

func sealLetter(kind byte, head []byte, urls []Queued) []byte {
	b := append([]byte{kind, wire.Version}, head...)
	b = wire.AppendPacked(b, encodeURLs(urls))
	return binary.LittleEndian.AppendUint32(b, wire.Checksum(b))
}

// openLetter returns the bytes between kind and checksum.
func openLetter(kind byte, b []byte) (*wire.Cursor, error) {
	if len(b) < letterKind+letterSum || b[0] != kind {
		return nil, wire.Damaged("%d bytes do not begin with %q", len(b), kind)
	}
	if b[1] != wire.Version {
		return nil, fmt.Errorf("%w: %d", wire.ErrVersion, b[1])
	}
	end := len(b) - letterSum
	if wire.Checksum(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return nil, wire.Damaged("checksum")
	}
	return &wire.Cursor{Rest: b[letterKind:end]}, nil
}

// readPackedURLs reads the URLs of a letter, which are the rest of it.
func readPackedURLs(c *wire.Cursor) ([]Queued, error) {
	if c.Err != nil {
		return nil, c.Err
	}
	raw, err := wire.Unpack(c.Rest, maxPacked)
	if err != nil {
		return nil, err
	}
	list := &wire.Cursor{Rest: raw}
	urls := readURLs(list, MaxMailURLs, MaxMailText)
	return urls, list.End()
}

// checkURLs returns an error if readURLs would refuse a list.
func checkURLs(urls []Queued, most, whole int) error {
	if len(urls) > most {
		return fmt.Errorf("%d URLs are above the bound of %d", len(urls), most)
	}
	text := 0
	for i := range urls {
		n := len(urls[i].URL)
		if text += n; n > wire.MaxURL {
			return fmt.Errorf("URL of %d bytes is above the bound of %d", n, wire.MaxURL)
		}
		if n := len(urls[i].Key); urls[i].Flags&FlagPlaced != 0 && n > wire.MaxHost {
			return fmt.Errorf("host of %d bytes is above the bound of %d", n, wire.MaxHost)
		}
	}
	if text > whole {
		return fmt.Errorf("URLs of %d bytes are above the bound of %d", text, whole)
	}
	return nil
}

// byURL is a total order of the fields in mail, so that equal lists have equal encodings.
func byURL(a, b Queued) int {
	if c := strings.Compare(a.URL, b.URL); c != 0 {
		return c
	}
	return slices.Compare(
		[]uint32{a.Generation, uint32(a.Depth), a.Rank, uint32(a.Flags), uint32(a.Topic)},
		[]uint32{b.Generation, uint32(b.Depth), b.Rank, uint32(b.Flags), uint32(b.Topic)})
}

// sortedByURL returns urls, or a sorted copy of them.
func sortedByURL(urls []Queued) []Queued {
	if slices.IsSortedFunc(urls, byURL) {
		return urls
	}
	urls = slices.Clone(urls)
	slices.SortFunc(urls, byURL)
	return urls
}

// EncodeMail encodes mail. It does not keep the order of the URLs, and equal mail has
// equal bytes. Mail that exceeds a bound is an error: see [SplitMail].
func EncodeMail(m Mail) ([]byte, error) {
	err := naming.CheckCrawlID(m.Crawl)
	if err == nil {
		err = checkURLs(m.URLs, MaxMailURLs, MaxMailText)
	}
	if err != nil {
		return nil, fmt.Errorf("encode mail: %w", err)
	}
	head := wire.AppendPrefixed(nil, m.Crawl)
	head = binary.AppendUvarint(head, uint64(m.From))
	head = binary.AppendUvarint(head, uint64(m.To))
	head = binary.AppendUvarint(head, m.Number)
	head = binary.AppendUvarint(head, uint64(m.Epoch))
	head = binary.AppendUvarint(head, m.Request)
	b := sealLetter(letterMail, head, sortedByURL(m.URLs))
	if len(b) > MaxMailBytes {
		return nil, fmt.Errorf("encode mail: %d bytes are above the bound of %d", len(b), MaxMailBytes)
	}
	return b, nil
}

// DecodeMail decodes mail, and keeps nothing of b. It does not check that the URLs
// are canonical.
func DecodeMail(b []byte) (Mail, error) {
	if len(b) > MaxMailBytes {
		return Mail{}, fmt.Errorf("decode mail: %w", wire.Damaged("%d bytes", len(b)))
	}
	c, err := openLetter(letterMail, b)
	if err != nil {
		return Mail{}, fmt.Errorf("decode mail: %w", err)
	}
	m := Mail{Crawl: string(c.Prefixed(naming.MaxCrawlID))}
	m.From = partition.ID(c.Uvarint(1<<32 - 1))
	m.To = partition.ID(c.Uvarint(1<<32 - 1))
	m.Number = c.Uvarint(1<<64 - 1)
	m.Epoch = partition.Epoch(c.Uvarint(1<<64 - 1))
	m.Request = c.Uvarint(1<<64 - 1)
	if m.URLs, err = readPackedURLs(c); err != nil {
		return Mail{}, fmt.Errorf("decode mail: %w", err)
	}
	if err := naming.CheckCrawlID(m.Crawl); err != nil {
		return Mail{}, fmt.Errorf("decode mail: %w", wire.Damaged("%v", err))
	}
	return m, nil
}

// SplitMail sorts urls in place and splits them into few pieces, such
// that a [Mail] of each piece has at most maxRaw bytes (before the queue's
// base64) and is within all bounds; maxRaw 0 is [MailTarget]. A longer URL is a
// piece by itself. SplitMail compresses the pieces to measure them, which takes about a
// microsecond per link.
func SplitMail(urls []Queued, maxRaw int) [][]Queued {
	if maxRaw <= 0 {
		maxRaw = MailTarget
	}
	slices.SortFunc(urls, byURL)
	var out [][]Queued
	for len(urls) > 0 {
		n, text := 0, 0
		for n < len(urls) && n < MaxMailURLs && text+len(urls[n].URL) <= MaxMailText {
			text += len(urls[n].URL)
			n++
		}
		n = max(n, 1)
		out = splitMail(out, urls[:n:n], min(maxRaw, MaxMailBytes))
		urls = urls[n:]
	}
	return out
}

func splitMail(out [][]Queued, urls []Queued, limit int) [][]Queued {
	size := mailHead + len(wire.AppendPacked(nil, encodeURLs(urls)))
	if size <= limit || len(urls) == 1 {
		return append(out, urls)
	}
	// Pieces compress worse than the whole, and unevenly: aim a tenth lower.
	pieces := min(max(size*10/(limit*9)+1, 2), len(urls))
	for ; pieces > 0; pieces-- {
		n := (len(urls) + pieces - 1) / pieces
		out = splitMail(out, urls[:n:n], limit)
		urls = urls[n:]
	}
	return out
}

type wake struct {
	Version   int          `json:"version"`
	Crawl     string       `json:"crawl"`
	Partition partition.ID `json:"partition"`
}

// EncodeWake encodes a wake: a hint to run a step for a partition, as JSON.
func EncodeWake(crawl string, p partition.ID) []byte {
	b, err := json.Marshal(wake{wire.Version, crawl, p})
	if err != nil {
		panic(err) // two numbers and a string always encode
	}
	return b
}

// DecodeWake decodes a wake.
func DecodeWake(b []byte) (crawl string, p partition.ID, err error) {
	var w wake
	if err := json.Unmarshal(b, &w); err != nil {
		return "", 0, fmt.Errorf("decode wake: %w", wire.Damaged("%v", err))
	}
	if w.Version != wire.Version {
		return "", 0, fmt.Errorf("decode wake: %w: %d", wire.ErrVersion, w.Version)
	}
	if err := naming.CheckCrawlID(w.Crawl); err != nil {
		return "", 0, fmt.Errorf("decode wake: %w", wire.Damaged("%v", err))
	}
	if w.Partition >= partition.MaxPartitions {
		return "", 0, fmt.Errorf("decode wake: %w", wire.Damaged("partition %d", w.Partition))
	}
	return w.Crawl, w.Partition, nil
}
