package platform

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/driver"
	"gocloud.dev/gcerrors"
)

// Records is a table with the two operations that a crawl needs. A driver whose database has no gocloud driver
// implements it and passes it to [NewTable]. Methods are safe for concurrent use.
type Records interface {
	// Read returns the records of keys in their order, each as the last completed write left it.
	Read(ctx context.Context, keys []string) ([]Record, error)
	// Write creates a record if revision is nil, and otherwise replaces the one that has this
	// revision. It returns the new revision, which no other write of the key ever gets. The error is
	// [ErrConflict] if the record exists, is gone, or has another revision. After any other error
	// the write may have happened or not.
	Write(ctx context.Context, key string, value []byte, revision Revision) (Revision, error)
}

// NewTable returns a collection of [Document]s over records. It supports the actions that the
// methods of [Platform] use: Get, Create, and Replace of a revision. All other actions and queries
// are refused with code Unimplemented. Closing the collection does not close records.
func NewTable(records Records) *docstore.Collection {
	return docstore.NewCollection(&table{records})
}

// table implements driver.Collection.
type table struct{ records Records }

// Errors of a table; see [table.ErrorCode].
var (
	errAbsent      = errors.New("no such record")
	errBadDocument = errors.New("bad document")
	errUnsupported = errors.New("a table has no such operation")
)

func (*table) Key(doc driver.Document) (any, error) {
	key, err := textOf(doc, KeyField)
	if err == nil && key == "" {
		err = fmt.Errorf("%w: its key is empty", errBadDocument)
	}
	return key, err
}

func textOf(doc driver.Document, field string) (string, error) {
	v, err := doc.GetField(field)
	if err != nil {
		return "", err
	}
	text, ok := v.(string)
	if !ok {
		return "", fmt.Errorf("%w: field %s has type %T", errBadDocument, field, v)
	}
	return text, nil
}

func (*table) RevisionField() string { return docstore.DefaultRevisionField }

// RunActions reads all documents of a list together, except those that the list writes first.
func (t *table) RunActions(ctx context.Context, actions []*driver.Action, _ *driver.RunActionsOptions) driver.ActionListError {
	errs := make([]error, len(actions))
	before, gets, writes, atomic, after := driver.GroupActions(actions)
	t.read(ctx, slices.Concat(before, gets), errs)
	for _, a := range slices.Concat(writes, atomic) {
		errs[a.Index] = t.write(ctx, a)
	}
	t.read(ctx, after, errs)
	return driver.NewActionListError(errs)
}

func (t *table) read(ctx context.Context, gets []*driver.Action, errs []error) {
	if len(gets) == 0 {
		return
	}
	keys := make([]string, len(gets))
	for i, a := range gets {
		keys[i] = a.Key.(string)
	}
	recs, err := t.records.Read(ctx, keys)
	for i, a := range gets {
		switch {
		case err != nil:
			errs[a.Index] = err
		case !recs[i].Found:
			errs[a.Index] = fmt.Errorf("%w: %s", errAbsent, keys[i])
		default:
			errs[a.Index] = errors.Join(
				a.Doc.SetField("value", string(recs[i].Value)),
				a.Doc.SetField(docstore.DefaultRevisionField, recs[i].Revision))
		}
	}
}

func (t *table) write(ctx context.Context, a *driver.Action) error {
	value, err := textOf(a.Doc, "value")
	if err != nil {
		return err
	}
	var revision Revision
	switch a.Kind {
	case driver.Create:
	case driver.Replace:
		revision, err = a.Doc.GetField(docstore.DefaultRevisionField)
		if err != nil || revision == nil {
			return fmt.Errorf("%w: a replace needs a revision", errBadDocument)
		}
	default:
		return errUnsupported
	}
	if a.InAtomicWrite {
		return errUnsupported
	}
	revision, err = t.records.Write(ctx, a.Key.(string), []byte(value), revision)
	if err != nil {
		return err
	}
	return a.Doc.SetField(docstore.DefaultRevisionField, revision)
}

func (*table) RunGetQuery(context.Context, *driver.Query) (driver.DocumentIterator, error) {
	return nil, errUnsupported
}

func (*table) QueryPlan(*driver.Query) (string, error) { return "", errUnsupported }
func (*table) RevisionToBytes(any) ([]byte, error)     { return nil, errUnsupported }
func (*table) BytesToRevision([]byte) (any, error)     { return nil, errUnsupported }
func (*table) As(any) bool                             { return false }
func (*table) ErrorAs(error, any) bool                 { return false }
func (*table) Close() error                            { return nil }

func (*table) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errAbsent):
		return gcerrors.NotFound
	case errors.Is(err, ErrConflict):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errUnsupported):
		return gcerrors.Unimplemented
	}
	return gcerrors.Unknown
}
