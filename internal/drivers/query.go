package drivers

import (
	"context"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"gocloud.dev/docstore/driver"

	"github.com/orbweaver/orbweaver/internal/drivers/embedded"
)

// RunGetQuery implements driver.Collection. The result is the collection as it
// was at one moment.
func (c *collection) RunGetQuery(ctx context.Context, q *driver.Query) (driver.DocumentIterator, error) {
	if c.bad != nil {
		return nil, c.bad
	}
	if q.BeforeQuery != nil {
		if err := q.BeforeQuery(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	keys := c.keyRange(q)
	enough := 0 // documents that surely contain the answer, 0: all are needed
	if q.Limit > 0 && q.OrderByField == "" && keys.exact {
		enough = q.Offset + q.Limit
	}
	var items []stored
	bytes := 0
	err := c.store.view(ctx, func(t *embedded.Table) {
		for key, it := range t.Scan(c.prefix, c.prefix+keys.from) {
			if keys.bounded && key[len(c.prefix):] >= keys.below {
				break
			}
			// Values never change, so only this needs the lock.
			items = append(items, stored{it.Value, it.Rev})
			bytes += len(it.Value)
			if len(items) == enough {
				break
			}
		}
	})
	c.store.meter.KVRead(bytes)
	if err != nil {
		return nil, err
	}
	var hits []map[string]any
	for _, it := range items {
		tree, err := c.tree(it)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(q.Filters, func(f driver.Filter) bool { return !matches(tree, f) }) {
			hits = append(hits, tree)
		}
	}
	if q.OrderByField != "" {
		sortBy(hits, q.OrderByField, q.OrderAscending)
	}
	hits = hits[min(max(q.Offset, 0), len(hits)):]
	if q.Limit > 0 {
		hits = hits[:min(q.Limit, len(hits))]
	}
	paths := q.FieldPaths
	if len(paths) > 0 && c.key.field != "" {
		paths = append([][]string{{c.key.field}}, paths...)
	}
	return &iterator{hits, paths}, nil
}

// keyRange is the part of a collection that a query has to look at: from <= key,
// and key < below if bounded.
type keyRange struct {
	from, below string
	bounded     bool
	exact       bool // the range alone decides: there is no other filter
}

func (c *collection) keyRange(q *driver.Query) keyRange {
	r := keyRange{exact: true}
	for _, f := range q.Filters {
		v, isString := f.Value.(string)
		if !isString || c.key.field == "" || !driver.FieldPathEqualsField(f.FieldPath, c.key.field) {
			r.exact = false
			continue
		}
		switch next := v + "\x00"; f.Op { // next is the smallest string above v
		case driver.EqualOp:
			r.from = max(r.from, v)
			r.limit(next)
		case ">=":
			r.from = max(r.from, v)
		case ">":
			r.from = max(r.from, next)
		case "<":
			r.limit(v)
		case "<=":
			r.limit(next)
		default:
			r.exact = false
		}
	}
	return r
}

func (r *keyRange) limit(below string) {
	if !r.bounded || below < r.below {
		r.bounded, r.below = true, below
	}
}

// QueryPlan implements driver.Collection.
func (c *collection) QueryPlan(q *driver.Query) (string, error) {
	r := c.keyRange(q)
	if r.from == "" && !r.bounded {
		return "scan", nil
	}
	return "range", nil
}

// matches reports whether the document has the field and it compares as asked.
// Values of different kinds do not compare, so they match nothing.
func matches(tree map[string]any, f driver.Filter) bool {
	v, ok := field(tree, f.FieldPath)
	if !ok {
		return false
	}
	if f.Op == "in" || f.Op == "not-in" {
		list := reflect.ValueOf(f.Value)
		if list.Kind() != reflect.Slice && list.Kind() != reflect.Array {
			return false
		}
		found := false
		for i := range list.Len() {
			n, comparable := compare(v, list.Index(i).Interface())
			found = found || (comparable && n == 0)
		}
		return found == (f.Op == "in")
	}
	n, comparable := compare(v, f.Value)
	if !comparable {
		return false
	}
	switch f.Op {
	case driver.EqualOp:
		return n == 0
	case "<":
		return n < 0
	case "<=":
		return n <= 0
	case ">":
		return n > 0
	case ">=":
		return n >= 0
	}
	return false
}

// compare compares two values of one kind: strings, numbers, times or bools, of
// which false is the smaller.
func compare(x, y any) (n int, comparable bool) {
	vx, vy := reflect.ValueOf(x), reflect.ValueOf(y)
	if vx.Kind() == reflect.String && vy.Kind() == reflect.String {
		return strings.Compare(vx.String(), vy.String()), true
	}
	if n, err := driver.CompareNumbers(vx, vy); err == nil {
		return n, true
	}
	if tx, ok := x.(time.Time); ok {
		ty, ok := y.(time.Time)
		return tx.Compare(ty), ok
	}
	if vx.Kind() == reflect.Bool && vy.Kind() == reflect.Bool {
		switch {
		case vx.Bool() == vy.Bool():
			return 0, true
		case vy.Bool():
			return -1, true
		}
		return 1, true
	}
	return 0, false
}

// sortBy sorts by a field; what does not compare keeps its order.
func sortBy(docs []map[string]any, name string, ascending bool) {
	slices.SortStableFunc(docs, func(a, b map[string]any) int {
		n, _ := compare(a[name], b[name])
		if !ascending {
			n = -n
		}
		return n
	})
}

// iterator implements driver.DocumentIterator.
type iterator struct {
	docs  []map[string]any
	paths [][]string
}

func (it *iterator) Next(ctx context.Context, doc driver.Document) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(it.docs) == 0 {
		return io.EOF
	}
	tree := it.docs[0]
	it.docs = it.docs[1:]
	return decodeTree(tree, doc, it.paths)
}

func (it *iterator) Stop() { it.docs = nil }

func (*iterator) As(any) bool { return false }
