package drivers

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/driver"
	"gocloud.dev/gcerrors"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// The bounds that DynamoDB sets are kept here too.
const (
	// maxDocumentBytes bounds an encoded document.
	maxDocumentBytes = 400 << 10
	// maxKeyBytes bounds a document's key.
	maxKeyBytes = 1024
	// maxAtomicWrites bounds the writes of one atomic list.
	maxAtomicWrites = 100
)

// Collection returns the documents called name, by the field that holds their
// key, a string. Collections come into being with their first document.
//
// Every document has a revision, in field docstore.DefaultRevisionField of those
// that have such a field: a string, to be handed back as it is. It is never used
// twice, also after deleting and reopening. Atomic writes are atomic, and queries
// yield documents in the order of their keys unless asked for another order. A
// query that compares the key field reads that range only, any other all of the
// collection.
//
// A missing document is NotFound, except where the caller names a revision: then
// it lost a race, and that is FailedPrecondition, as with DynamoDB.
//
// The caller closes it.
func (s *Store) Collection(name, keyField string) *docstore.Collection {
	return docstore.NewCollection(newCollection(s, name, collectionKey{field: keyField}, docstore.DefaultRevisionField))
}

// collectionKey says where documents have their key: in a field, or computed.
type collectionKey struct {
	field string
	of    func(docstore.Document) any
}

type collection struct {
	store    *Store
	prefix   string // of all its keys in the table
	key      collectionKey
	revField string
	bad      error // why the collection cannot be used
}

func newCollection(s *Store, name string, key collectionKey, revField string) *collection {
	c := &collection{store: s, prefix: name + "\x00", key: key, revField: revField}
	switch {
	case name == "" || len(name) > 255 || strings.IndexByte(name, 0) >= 0:
		c.bad = fmt.Errorf("%w: collection name %.40q", errArgument, name)
	case key.field == "" && key.of == nil:
		c.bad = fmt.Errorf("%w: collection %s has no key field", errArgument, name)
	}
	return c
}

// Key implements driver.Collection.
func (c *collection) Key(doc driver.Document) (any, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	var key any
	if c.key.of != nil {
		if key = c.key.of(doc.Origin); key == nil || driver.IsEmptyValue(reflect.ValueOf(key)) {
			return nil, fmt.Errorf("%w: document without key", errArgument)
		}
	} else if key, _ = doc.GetField(c.key.field); key == nil {
		return nil, nil // only Create gets along without
	}
	s, ok := key.(string)
	if !ok || len(s) > maxKeyBytes {
		return nil, fmt.Errorf("%w: a document's key is a string of at most %d bytes, not %T", errArgument, maxKeyBytes, key)
	}
	return s, nil
}

// RevisionField implements driver.Collection.
func (c *collection) RevisionField() string { return c.revField }

// RunActions implements driver.Collection: all reads that come before the writes
// of their document, then all writes as one transaction's part, then the reads
// after them. Each write outside an atomic list stands for itself.
func (c *collection) RunActions(ctx context.Context, actions []*driver.Action, opts *driver.RunActionsOptions) driver.ActionListError {
	errs := make([]error, len(actions))
	fail := func(as []*driver.Action, err error) {
		for _, a := range as {
			errs[a.Index] = err
		}
	}
	if opts.BeforeDo != nil {
		if err := opts.BeforeDo(func(any) bool { return false }); err != nil {
			fail(actions, err)
			return driver.NewActionListError(errs)
		}
	}
	before, gets, writes, atomic, after := driver.GroupActions(actions)
	c.read(ctx, append(before, gets...), errs)
	// GroupActions lists what has no key yet as not atomic.
	single := slices.DeleteFunc(slices.Clone(writes), func(a *driver.Action) bool { return a.InAtomicWrite })
	for _, a := range writes {
		if a.InAtomicWrite {
			atomic = append(atomic, a)
		}
	}
	c.write(ctx, single, atomic, errs)
	c.read(ctx, after, errs)
	return driver.NewActionListError(errs)
}

// read does Get actions.
func (c *collection) read(ctx context.Context, gets []*driver.Action, errs []error) {
	if len(gets) == 0 {
		return
	}
	items := make([]stored, len(gets))
	err := c.store.view(ctx, func(t *embedded.Table) {
		for i, a := range gets {
			items[i].value, items[i].rev, _ = t.Get(c.prefix + a.Key.(string))
		}
	})
	for i, a := range gets {
		c.store.meter.KVRead(len(items[i].value))
		switch {
		case err != nil:
			errs[a.Index] = err
		case items[i].rev == 0:
			errs[a.Index] = fmt.Errorf("get %q: %w", a.Key, embedded.ErrNotFound)
		default:
			errs[a.Index] = c.decode(items[i], a.Doc, a.FieldPaths)
		}
	}
}

// view runs f on the table, and waits until what f saw is on disk.
func (s *Store) view(ctx context.Context, f func(*embedded.Table)) error {
	if err := s.lock(); err != nil {
		return err
	}
	f(s.table)
	c := s.tables
	s.mu.Unlock()
	if err := s.wait(ctx, c); err != nil {
		return err
	}
	return ctx.Err()
}

// write does the writes, each for itself, and the atomic ones together.
func (c *collection) write(ctx context.Context, writes, atomic []*driver.Action, errs []error) {
	all := slices.Concat(writes, atomic)
	if len(all) == 0 {
		return
	}
	ops := make([]pending, len(all))
	for i, a := range all {
		ops[i], errs[a.Index] = c.prepare(a)
	}
	s := c.store
	err := ctx.Err()
	if err == nil {
		err = s.lock()
	}
	if err != nil {
		for _, a := range all {
			errs[a.Index] = err
		}
		return
	}
	for i := range writes {
		c.apply(ops[i:i+1], errs)
	}
	c.apply(ops[len(writes):], errs)
	commit := s.soon()
	s.tables = commit
	s.mu.Unlock()
	c.meterWrites(ops, len(writes))

	// A crash before this returns leaves each write done or not; the caller does
	// not know either, and has to read.
	err = s.wait(ctx, commit)
	for i, a := range all {
		switch {
		case errs[a.Index] != nil:
		case err != nil:
			errs[a.Index] = err
		case ops[i].newRev != 0 && a.Doc.HasField(c.revField):
			errs[a.Index] = a.Doc.SetField(c.revField, formatRevision(ops[i].newRev))
		}
	}
}

// pending is a write on its way.
type pending struct {
	action *driver.Action
	op     embedded.Op
	newRev uint64
	bytes  int // before or after, whichever is more
}

// prepare does all of a write that needs no lock.
func (c *collection) prepare(a *driver.Action) (pending, error) {
	p := pending{action: a}
	if a.Kind == driver.Create && a.Key == nil {
		if c.key.field == "" {
			return p, fmt.Errorf("%w: cannot make a key for the document", errArgument)
		}
		a.Key = driver.UniqueString()
		if err := a.Doc.SetField(c.key.field, a.Key); err != nil {
			return p, fmt.Errorf("%w: set the key: %w", errArgument, err)
		}
	}
	p.op.Key = c.prefix + a.Key.(string)
	if a.Kind != driver.Create {
		var err error
		if p.op.Rev, err = c.revision(a.Doc); err != nil {
			return p, err
		}
	}
	switch a.Kind {
	case driver.Create:
		p.op.Kind = embedded.OpCreate
	case driver.Replace, driver.Update:
		p.op.Kind = embedded.OpReplace
	case driver.Put:
		p.op.Kind = embedded.OpPut
	case driver.Delete:
		p.op.Kind = embedded.OpDelete
		return p, nil
	default:
		return p, fmt.Errorf("%w: action %v", errArgument, a.Kind)
	}
	if a.Kind == driver.Update {
		return p, nil // needs the document as it is
	}
	tree, err := encodeDocument(a.Doc)
	if err != nil {
		return p, err
	}
	p.op.Value, err = c.encode(tree, a.Doc)
	return p, err
}

// encode returns the bytes of a document. Its revision is not among them: it is
// the table's. The field is kept, empty, to say that readers want to see it.
func (c *collection) encode(tree map[string]any, doc driver.Document) ([]byte, error) {
	if doc.HasField(c.revField) {
		tree[c.revField] = nil
	}
	b, err := c.store.codec.marshal(tree)
	if err == nil && len(b) > maxDocumentBytes {
		err = fmt.Errorf("%w: a document of %d bytes, want at most %d", errArgument, len(b), maxDocumentBytes)
	}
	return b, err
}

// apply does the writes as one, or none of them. The Store's lock is held.
func (c *collection) apply(ps []pending, errs []error) {
	table := c.store.table
	ops := make([]embedded.Op, len(ps))
	failed, err := -1, error(nil)
	for i := range ps {
		p := &ps[i]
		old, rev, ok := table.Get(p.op.Key)
		e := errs[p.action.Index]
		if e == nil && p.action.Kind == driver.Update && ok && (p.op.Rev == 0 || p.op.Rev == rev) {
			p.op.Value, e = c.update(old, p.action)
		}
		p.bytes = max(len(old), len(p.op.Value))
		ops[i] = p.op
		if e != nil && err == nil {
			failed, err = i, e
		}
	}
	if err == nil && len(ps) > maxAtomicWrites {
		failed, err = maxAtomicWrites, fmt.Errorf("%w: %d atomic writes, want at most %d", errArgument, len(ps), maxAtomicWrites)
	}
	var revs []uint64
	if err == nil {
		revs, failed, err = table.Batch(ops)
	}
	for i := range ps {
		a := ps[i].action
		switch {
		case err == nil:
			ps[i].newRev = revs[i]
		case len(ps) == 1:
			errs[a.Index] = fmt.Errorf("%v %q: %w", a.Kind, a.Key, err)
		default:
			first := ps[failed].action
			errs[a.Index] = fmt.Errorf("atomic writes, none done: %v %q: %w", first.Kind, first.Key, err)
		}
	}
}

func (c *collection) meterWrites(ps []pending, single int) {
	for i, p := range ps {
		c.store.meter.KVWrite(p.bytes)
		if i >= single {
			c.store.meter.KVWrite(p.bytes)
		}
	}
}

// update returns the stored document old with the action's modifications.
func (c *collection) update(old []byte, a *driver.Action) ([]byte, error) {
	tree, err := c.store.codec.unmarshal(old)
	if err != nil {
		return nil, err
	}
	for _, m := range a.Mods {
		if err := modify(tree, m); err != nil {
			return nil, err
		}
	}
	return c.encode(tree, a.Doc)
}

func modify(tree map[string]any, m driver.Mod) error {
	last := m.FieldPath[len(m.FieldPath)-1]
	parent, err := parentOf(tree, m.FieldPath)
	if err != nil {
		return err
	}
	if m.Value == nil {
		delete(parent, last)
		return nil
	}
	inc, isInc := m.Value.(driver.IncOp)
	if isInc {
		m.Value = inc.Amount
	}
	v, err := encodeValue(m.Value)
	if err == nil && isInc {
		v, err = add(parent[last], v)
	}
	if err != nil {
		return err
	}
	parent[last] = v
	return nil
}

// parentOf returns the map that holds the last name of path, and makes what is
// missing on the way.
func parentOf(tree map[string]any, path []string) (map[string]any, error) {
	for _, k := range path[:len(path)-1] {
		if tree[k] == nil {
			tree[k] = map[string]any{}
		}
		sub, ok := tree[k].(map[string]any)
		if !ok {
			return nil, fmt.Errorf("%w: %s of %s is no map", errArgument, k, strings.Join(path, "."))
		}
		tree = sub
	}
	return tree, nil
}

// add adds two numbers of a tree; nothing counts as zero.
func add(x, y any) (any, error) {
	if x == nil {
		return y, nil
	}
	i, xInt := x.(int64)
	j, yInt := y.(int64)
	if xInt && yInt {
		return i + j, nil
	}
	f, okX := decoder{x}.AsFloat()
	g, okY := decoder{y}.AsFloat()
	if !okX || !okY {
		return nil, fmt.Errorf("%w: cannot add %v to %v", errArgument, y, x)
	}
	return f + g, nil
}

// stored is a document as the table has it.
type stored struct {
	value []byte
	rev   uint64
}

// decode writes the stored document, or the given fields of it, into doc.
func (c *collection) decode(it stored, doc driver.Document, paths [][]string) error {
	tree, err := c.tree(it)
	if err != nil {
		return err
	}
	return decodeTree(tree, doc, paths)
}

// tree returns the stored document with its revision.
func (c *collection) tree(it stored) (map[string]any, error) {
	tree, err := c.store.codec.unmarshal(it.value)
	if err != nil {
		return nil, err
	}
	if _, wanted := tree[c.revField]; wanted {
		tree[c.revField] = formatRevision(it.rev)
	}
	return tree, nil
}

func decodeTree(tree map[string]any, doc driver.Document, paths [][]string) error {
	if len(paths) > 0 {
		part := map[string]any{}
		for _, p := range paths {
			if v, ok := field(tree, p); ok {
				parent, err := parentOf(part, p)
				if err != nil {
					return err
				}
				parent[p[len(p)-1]] = v
			}
		}
		tree = part
	}
	return doc.Decode(decoder{tree})
}

// field returns what a tree has at a path.
func field(tree map[string]any, path []string) (any, bool) {
	var v any = tree
	for _, k := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[k]; !ok {
			return nil, false
		}
	}
	return v, true
}

func formatRevision(rev uint64) string { return strconv.FormatUint(rev, 10) }

// revision returns the revision that doc names, 0 if none.
func (c *collection) revision(doc driver.Document) (uint64, error) {
	v, err := doc.GetField(c.revField)
	if err != nil || v == nil || v == "" {
		return 0, nil
	}
	s, ok := v.(string)
	rev, err := strconv.ParseUint(s, 10, 64)
	if !ok || err != nil || rev == 0 {
		return 0, fmt.Errorf("%w: %v is no revision", errArgument, v)
	}
	return rev, nil
}

// RevisionToBytes implements driver.Collection.
func (c *collection) RevisionToBytes(rev any) ([]byte, error) {
	s, ok := rev.(string)
	if !ok {
		return nil, fmt.Errorf("%w: %v is no revision", errArgument, rev)
	}
	return []byte(s), nil
}

// BytesToRevision implements driver.Collection.
func (c *collection) BytesToRevision(b []byte) (any, error) { return string(b), nil }

// As implements driver.Collection.
func (c *collection) As(any) bool { return false }

// ErrorAs implements driver.Collection; errors.Is and errors.As see all errors.
func (c *collection) ErrorAs(error, any) bool { return false }

// ErrorCode implements driver.Collection.
func (c *collection) ErrorCode(err error) gcerrors.ErrorCode { return errorCode(err) }

// Close implements driver.Collection.
func (c *collection) Close() error { return nil }
