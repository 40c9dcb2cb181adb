package drivers

import (
	"fmt"
	"math"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/fxamacker/cbor/v2"
	"gocloud.dev/docstore/driver"
)

// A document is kept as the CBOR (RFC 8949) of a map of string to nil, bool,
// int64, uint64 above that, float64, string, []byte, time.Time (tag 0, UTC,
// nanoseconds), []any and map[string]any. In between it is that tree.

// codec turns trees into bytes and back.
type codec struct {
	enc cbor.EncMode
	dec cbor.DecMode
}

// newCodec cannot fail: its options are constants, and a test opens a Store.
func newCodec() codec {
	enc, encErr := cbor.EncOptions{
		Sort:    cbor.SortBytewiseLexical,
		Time:    cbor.TimeRFC3339NanoUTC,
		TimeTag: cbor.EncTagRequired,
	}.EncMode()
	dec, decErr := cbor.DecOptions{
		DupMapKey:      cbor.DupMapKeyEnforcedAPF,
		DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if encErr != nil || decErr != nil {
		panic(fmt.Sprint("drivers: bad CBOR options: ", encErr, decErr))
	}
	return codec{enc, dec}
}

func (c codec) marshal(tree map[string]any) ([]byte, error) {
	b, err := c.enc.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("%w: encode document: %w", errArgument, err)
	}
	return b, nil
}

func (c codec) unmarshal(b []byte) (map[string]any, error) {
	var tree map[string]any
	if err := c.dec.Unmarshal(b, &tree); err != nil {
		return nil, fmt.Errorf("%w: decode document: %w", ErrDamaged, err)
	}
	for k, v := range tree {
		tree[k] = signed(v)
	}
	return tree, nil
}

// signed makes int64 of every uint64 that fits, since CBOR has no signed type but
// docstore's users expect int64.
func signed(v any) any {
	switch v := v.(type) {
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case []any:
		for i := range v {
			v[i] = signed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = signed(v[k])
		}
	}
	return v
}

// encodeDocument returns the tree of a user's document.
func encodeDocument(doc driver.Document) (map[string]any, error) {
	var e encoder
	if err := doc.Encode(&e); err != nil {
		return nil, err
	}
	tree, ok := e.val.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%w: a document of type %T", errArgument, doc.Origin)
	}
	return tree, checkStrings(tree)
}

// encodeValue returns the tree of a single value.
func encodeValue(v any) (any, error) {
	var e encoder
	if err := driver.Encode(reflect.ValueOf(v), &e); err != nil {
		return nil, err
	}
	return e.val, checkStrings(e.val)
}

// checkStrings refuses what could be stored but not read again.
func checkStrings(v any) error {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return fmt.Errorf("%w: %.40q is not UTF-8", errArgument, v)
		}
	case []any:
		for _, e := range v {
			if err := checkStrings(e); err != nil {
				return err
			}
		}
	case map[string]any:
		for k, e := range v {
			if err := checkStrings(k); err != nil {
				return err
			}
			if err := checkStrings(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// encoder implements driver.Encoder: each call leaves the tree of what it was
// given in val.
type encoder struct{ val any }

func (e *encoder) EncodeNil()            { e.val = nil }
func (e *encoder) EncodeBool(x bool)     { e.val = x }
func (e *encoder) EncodeInt(x int64)     { e.val = x }
func (e *encoder) EncodeUint(x uint64)   { e.val = signed(x) }
func (e *encoder) EncodeBytes(x []byte)  { e.val = x }
func (e *encoder) EncodeFloat(x float64) { e.val = x }
func (e *encoder) EncodeString(x string) { e.val = x }

// ListIndex and MapKey are called on the encoders of lists and maps only.
func (e *encoder) ListIndex(int) {}
func (e *encoder) MapKey(string) {}

func (e *encoder) EncodeSpecial(v reflect.Value) (bool, error) {
	if v.Type() != reflect.TypeFor[time.Time]() {
		return false, nil
	}
	e.val = v.Interface()
	return true, nil
}

func (e *encoder) EncodeList(n int) driver.Encoder {
	l := &listEncoder{list: make([]any, n)}
	e.val = l.list
	return l
}

func (e *encoder) EncodeMap(n int) driver.Encoder {
	m := &mapEncoder{m: make(map[string]any, n)}
	e.val = m.m
	return m
}

type listEncoder struct {
	encoder
	list []any
}

func (e *listEncoder) ListIndex(i int) { e.list[i] = e.val }

type mapEncoder struct {
	encoder
	m map[string]any
}

func (e *mapEncoder) MapKey(k string) { e.m[k] = e.val }

// decoder implements driver.Decoder over a tree.
type decoder struct{ val any }

func (d decoder) String() string { return fmt.Sprint(d.val) }
func (d decoder) AsNull() bool   { return d.val == nil }

func (d decoder) AsBool() (bool, bool)     { v, ok := d.val.(bool); return v, ok }
func (d decoder) AsString() (string, bool) { v, ok := d.val.(string); return v, ok }
func (d decoder) AsBytes() ([]byte, bool)  { v, ok := d.val.([]byte); return v, ok }
func (d decoder) AsInt() (int64, bool)     { v, ok := d.val.(int64); return v, ok }

func (d decoder) AsUint() (uint64, bool) {
	switch v := d.val.(type) {
	case uint64:
		return v, true
	case int64:
		return uint64(v), v >= 0
	}
	return 0, false
}

func (d decoder) AsFloat() (float64, bool) {
	switch v := d.val.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	}
	return 0, false
}

func (d decoder) AsInterface() (any, error) { return d.val, nil }

func (d decoder) ListLen() (int, bool) {
	v, ok := d.val.([]any)
	return len(v), ok
}

func (d decoder) DecodeList(f func(int, driver.Decoder) bool) {
	list, _ := d.val.([]any)
	for i, e := range list {
		if !f(i, decoder{e}) {
			return
		}
	}
}

func (d decoder) MapLen() (int, bool) {
	v, ok := d.val.(map[string]any)
	return len(v), ok
}

func (d decoder) DecodeMap(f func(string, driver.Decoder, bool) bool) {
	m, _ := d.val.(map[string]any)
	for k, v := range m {
		if !f(k, decoder{v}, true) {
			return
		}
	}
}

func (d decoder) AsSpecial(v reflect.Value) (bool, any, error) {
	if v.Type() != reflect.TypeFor[time.Time]() {
		return false, nil, nil
	}
	t, ok := d.val.(time.Time)
	if !ok {
		return true, nil, fmt.Errorf("%w: %v is no time", errArgument, d.val)
	}
	return true, t, nil
}
