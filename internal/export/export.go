package export

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"iter"
	"runtime"
	"slices"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/warc"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/actor"
	"github.com/orbweaver/orbweaver/internal/view"
)

// Export is what to write of a crawl. Its methods may not be called at the same time.
type Export struct {
	View     *view.View // frozen, so that all parts are of one moment
	Settings *blobschema.Settings
	Which    view.Records
	Outcomes []string // names of the outcomes of page records to write; none: all
	Topics   []uint8  // numbers of the topics of page records to write; none: all
	// Columns that take long to compute. Referrer sorts all links; Words and Headers read all stored answers.
	Referrer, Words, Headers bool
	Tmp                      string // folder for sorting, "" for the usual one
	// Progress is called after each row with their number and the noun for one.
	Progress func(n int64, noun string)

	Rows    int64 // written
	Damaged int64 // pages whose stored answer could not be read
	First   error // of those
}

// Lines writes a list: of pages in the formats "jsonl", "csv" and "urls", of their texts in "text" and "markdown", or of links in
// "links" (JSON lines) and "links-csv".
func (e *Export) Lines(ctx context.Context, format string, w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	table := csv.NewWriter(out)
	var err error
	switch format {
	case "links":
		err = e.links(ctx, func(l *view.Link) error { return lines.Encode(l) })
	case "links-csv":
		err = table.Write(header(linkColumns))
		err = errors.Join(err, e.links(ctx, func(l *view.Link) error { return table.Write(cells(linkColumns, l)) }))
	case "csv":
		columns := slices.DeleteFunc(slices.Clone(pageColumns), func(c column[Record]) bool {
			return c.name == "first_referrer" && !e.Referrer || c.name == "response_headers" && !e.Headers ||
				(c.name == "words" || c.name == "language") && !e.Words
		})
		err = table.Write(header(columns))
		err = errors.Join(err, e.pages(ctx, func(r *Record) error { return table.Write(cells(columns, r)) }))
	case "urls":
		err = e.pages(ctx, func(r *Record) error {
			if r.Robots { // the crawler requested it for itself
				e.Rows--
				return nil
			}
			_, err := out.WriteString(r.URL + "\n")
			return err
		})
	case "text", "markdown":
		err = e.texts(ctx, format == "markdown", func(t *Text) error { return lines.Encode(t) })
	default:
		err = e.pages(ctx, func(r *Record) error { return lines.Encode(r) })
	}
	table.Flush()
	return errors.Join(err, table.Error(), out.Flush())
}

// links calls write for each link.
func (e *Export) links(ctx context.Context, write func(*view.Link) error) error {
	for l, err := range e.View.Links(ctx, e.Tmp, e.sorted) {
		if err == nil {
			err = write(&l)
		}
		if err != nil {
			return err
		}
		e.wrote("link")
	}
	return nil
}

// pages calls write for each selected page record, in the order of commits, or by URL if referrers are wanted.
func (e *Export) pages(ctx context.Context, write func(*Record) error) error {
	records := e.unsorted(ctx)
	if e.Referrer {
		records = e.View.Sorted(ctx, e.Which, true, e.Tmp, e.sorted)
	}
	return e.records(ctx, records, write)
}

func (e *Export) unsorted(ctx context.Context) iter.Seq2[view.Record, error] {
	return func(yield func(view.Record, error) bool) {
		for pg, err := range e.View.Pages(ctx, e.Which) {
			if !yield(view.Record{Page: pg}, err) {
				return
			}
		}
	}
}

// records completes the selected records and calls write for each.
func (e *Export) records(ctx context.Context, records iter.Seq2[view.Record, error], write func(*Record) error) error {
	complete := func(ctx context.Context, r view.Record) (*Record, error) {
		out := &Record{Record: r, Topic: view.TopicName(e.Settings, r.Page.Topic)}
		if !e.Words && !e.Headers || r.WARC == "" {
			return out, nil
		}
		a, err := e.answer(ctx, &r.Page)
		if err != nil {
			out.damage = err
			return out, unlessDamaged(err)
		}
		if e.Headers {
			out.Headers = a.headers
		}
		if e.Words {
			out.read(a)
		}
		return out, nil
	}
	for r, err := range view.Ahead(ctx, width, e.selected(records), complete) {
		if err == nil && r.damage != nil {
			e.note(r.damage)
		}
		if err == nil {
			err = write(r)
		}
		if err != nil {
			return err
		}
		e.wrote("line")
	}
	return nil
}

// width is how many stored answers are read at once.
var width = 2 * runtime.GOMAXPROCS(0)

// selected leaves out records of other outcomes and topics.
func (e *Export) selected(records iter.Seq2[view.Record, error]) iter.Seq2[view.Record, error] {
	return func(yield func(view.Record, error) bool) {
		for r, err := range records {
			if err == nil && (len(e.Outcomes) > 0 && !slices.Contains(e.Outcomes, r.Outcome.String()) ||
				len(e.Topics) > 0 && !slices.Contains(e.Topics, r.Page.Topic)) {
				continue
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// unlessDamaged returns an error of reading a stored answer if it ends the export: nil for an answer that is missing or damaged.
func unlessDamaged(err error) error {
	for _, damage := range []error{fs.ErrNotExist, actor.ErrNotFound, wire.ErrDamaged, warc.ErrDamaged} {
		if errors.Is(err, damage) {
			return nil
		}
	}
	return err
}

// note counts a stored answer that could not be read.
func (e *Export) note(err error) {
	e.Damaged++
	if e.First == nil {
		e.First = err
	}
}

func (e *Export) wrote(noun string) {
	e.Rows++
	e.Progress(e.Rows, noun)
}

func (e *Export) sorted(n int64) { e.Progress(n, "sorted link") }
