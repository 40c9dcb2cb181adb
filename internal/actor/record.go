package actor

import (
	"encoding/json"
	"fmt"
)

// Encode returns the JSON of a record.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("actor: a record cannot be encoded: " + err.Error()) // fixed types: unreachable
	}
	return b
}

// Into decodes a JSON record into the value that v points to. If there is no record, the value is
// unchanged. what names the record in an error.
func (r Record) Into(v any, what string) error {
	if !r.Found {
		return nil
	}
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("decode %s: %w", what, err)
	}
	return nil
}

// Decode decodes a JSON record. A missing record is an error.
func Decode[T any](rec Record, what string) (v T, err error) {
	rec.Found = true
	err = rec.Into(&v, what)
	return v, err
}

// DecodeFound decodes a JSON record, and returns the zero value if there is no record.
func DecodeFound[T any](rec Record, what string) (v T, err error) {
	err = rec.Into(&v, what)
	return v, err
}

// Update changes a JSON record by compare-and-set until it succeeds. change
// returns false if the record needs no change. After a conflict Update calls it again with the new
// record. A record that equals the value written before an error is that value, so that
// no change is applied twice. After too many failures Update returns an error.
func Update[T any](t *Task, key string, change func(*T) bool) error {
	return Revise(t, key, func(v *T) (bool, error) { return change(v), nil })
}

// Revise is Update with a change that may issue effects of the task, and fail. Its error ends Revise.
func Revise[T any](t *Task, key string, change func(*T) (bool, error)) error {
	var written []byte
	for fails := 0; ; {
		recs, err := t.Records(key)
		if err != nil {
			return err
		}
		if written != nil && recs[0].Found && string(recs[0].Value) == string(written) {
			return nil
		}
		v, err := DecodeFound[T](recs[0], key)
		if err != nil {
			return err
		}
		if changed, err := change(&v); err != nil || !changed {
			return err
		}
		written = Encode(v)
		if _, err = t.Do(WriteRecord{Key: key, Value: written, Revision: recs[0].Revision}); err == nil {
			return nil
		}
		if fails, err = t.Failed(key, fails, err); err != nil {
			return err
		}
	}
}
