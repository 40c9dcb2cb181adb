package fsck

import (
	"errors"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// record reads a JSON record. If it cannot be decoded, that is damage, and it counts as not found. Any
// other error ends the check.
func record[T any](c *checker, key string) (v T, found bool) {
	if c.err != nil {
		return v, false
	}
	c.reads.Records++
	found, err := blobschema.ReadRecord(c.ctx, c.store, key, &v)
	if errors.Is(err, wire.ErrDamaged) {
		c.bad++
		c.damaged(key, "the record cannot be decoded: %v", err)
		var none T
		return none, false
	}
	c.err = err
	return v, found
}

// get reads an object or a part of it. The end of ctx ends the check.
func (c *checker) get(name string, offset, length int64) ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	b, err := c.store.Object(c.ctx, name, offset, length)
	if c.err = c.ctx.Err(); c.err != nil {
		return nil, c.err
	}
	c.reads.Objects++
	c.reads.Bytes += int64(len(b))
	return b, err
}

// object reads an object that by names. If that fails, it reports the damage and ok is false.
func (c *checker) object(name, by string) (data []byte, ok bool) {
	c.judge("I6").Checked++
	b, err := c.get(name, 0, -1)
	if c.err == nil && err != nil && c.exists(name, by) {
		c.damaged(name, "the object cannot be read: %v", err)
	}
	return b, err == nil
}

// exists reports whether an object that by names was listed. If not, it reports the damage.
func (c *checker) exists(name, by string) bool {
	_, listed := c.listed[name]
	if !listed {
		c.damaged(name, "the object does not exist; %s names it", by)
	}
	return listed
}

// decoded is object, and decodes what it has read.
func decoded[T any](c *checker, name, by string, decode func([]byte) (T, error)) (v T, data []byte, ok bool) {
	if data, ok = c.object(name, by); !ok {
		return v, nil, false
	}
	v, err := decode(data)
	if err != nil {
		c.damaged(name, "%v", err)
		return v, nil, false
	}
	return v, data, true
}

// name notes that something names an object, and reports whether nothing else did before.
func (c *checker) name(object, by string) bool {
	if c.named[object] != "" {
		return false
	}
	c.named[object] = by
	return true
}
