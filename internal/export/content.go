package export

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/extract"
	"github.com/orbweaver/orbweaver/internal/text"
	"github.com/orbweaver/orbweaver/internal/view"
)

// Text is the text of a page.
type Text struct {
	URL         string    `json:"url"`
	Time        time.Time `json:"time"` // when the page was requested
	Title       string    `json:"title,omitempty"`
	Description string    `json:"description,omitempty"`
	Language    string    `json:"language,omitempty"` // ISO 639-1, detected; "" if unknown
	Published   time.Time `json:"published,omitzero"` // as the page says
	Words       int       `json:"words"`
	Text        string    `json:"text,omitempty"`     // main text, a paragraph a line; of the format text
	Markdown    string    `json:"markdown,omitempty"` // main text with its markup; of the format markdown

	damage error
}

// texts calls write for each page that has a text. Without other outcomes it takes those that are pages.
func (e *Export) texts(ctx context.Context, markdown bool, write func(*Text) error) error {
	if len(e.Outcomes) == 0 {
		e.Outcomes = []string{blobschema.OutcomeOK.String(), blobschema.OutcomeUnchanged.String()}
	}
	read := func(ctx context.Context, r view.Record) (*Text, error) {
		if r.WARC == "" || r.Robots {
			return nil, nil
		}
		a, err := e.answer(ctx, &r.Page)
		if err != nil {
			return &Text{damage: err}, unlessDamaged(err)
		}
		d, ok := text.Extract(a.contentType, a.body, r.URL)
		if !ok {
			return nil, nil
		}
		t := &Text{
			URL: r.URL, Time: r.Time, Title: d.Title, Description: d.Description, Language: d.Lang, Published: d.Published, Words: words(d.Body),
		}
		if !markdown {
			t.Text = d.Body
		} else if t.Markdown, err = toMarkdown(a.contentType, a.body, r.URL); err != nil {
			t.Markdown = d.Body
		}
		if t.Text+t.Markdown == "" {
			return nil, nil
		}
		return t, nil
	}
	for t, err := range view.Ahead(ctx, width, e.selected(e.unsorted(ctx)), read) {
		switch {
		case err != nil:
			return err
		case t == nil:
			continue
		case t.damage != nil:
			e.note(t.damage)
			continue
		}
		if err := write(t); err != nil {
			return err
		}
		e.wrote("page")
	}
	return nil
}

// maxMarkup bounds the markup that is made into Markdown, in bytes. More of a page is left out.
const maxMarkup = 512 << 10

// toMarkdown returns the main text of a page as Markdown, with absolute links. It returns an error for markup that the parser
// or the converter refuses, such as elements nested too deep.
func toMarkdown(contentType string, body []byte, url string) (md string, err error) {
	defer func() {
		if p := recover(); p != nil { // pages are hostile, and the converter is not of this project
			err = fmt.Errorf("convert %s: panic: %v", url, p)
		}
	}()
	main, html, _ := text.Main(contentType, body, url)
	if !html {
		return string(main), nil
	}
	// Without escapes: they disturb search and language models, and take quadratic time.
	c := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled), converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	main = bytes.ToValidUTF8(main[:min(len(main), maxMarkup)], nil)
	out, err := c.ConvertReader(bytes.NewReader(main), converter.WithDomain(url))
	return string(out), err
}

// answer is a stored answer.
type answer struct {
	contentType string
	body        []byte      // decoded, at most text.MaxHTML bytes
	headers     [][2]string // names and values
}

// answer reads the stored answer to a request.
func (e *Export) answer(ctx context.Context, pg *blobschema.Page) (*answer, error) {
	rec, err := e.View.Payload(ctx, *pg)
	if err != nil {
		return nil, err
	}
	head, err := rec.HTTP()
	if err != nil {
		return nil, fmt.Errorf("answer of %s: %w: %w", pg.URL, wire.ErrDamaged, err)
	}
	a := &answer{}
	var codings []string
	for _, f := range head.Fields {
		a.headers = append(a.headers, [2]string{f.Name, f.Value})
		switch {
		case strings.EqualFold(f.Name, "Content-Encoding"):
			codings = append(codings, f.Value)
		case strings.EqualFold(f.Name, "Content-Type") && a.contentType == "":
			a.contentType = f.Value
		}
	}
	var d extract.Decoder
	d.Open(rec.Body, extract.Coding(codings))
	a.body = d.UpTo(min(extract.DecodedLimit(len(rec.Body), text.MaxHTML), text.MaxHTML))
	return a, nil
}
