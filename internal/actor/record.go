package actor

import (
	"encoding/json"
	"fmt"
)

// Encode is the JSON of a record.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("actor: a record cannot be encoded: " + err.Error()) // fixed types: unreachable
	}
	return b
}

// Into decodes a JSON record into what v points to, which stays as it is if there is no
// record. An error says what could not be decoded.
func (r Record) Into(v any, what string) error {
	if !r.Found {
		return nil
	}
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("decode %s: %w", what, err)
	}
	return nil
}

// Decode decodes a JSON record; what is not there is an error.
func Decode[T any](rec Record, what string) (v T, err error) {
	rec.Found = true
	err = rec.Into(&v, what)
	return v, err
}

// DecodeFound is Decode, and the zero value of a record that is not there.
func DecodeFound[T any](rec Record, what string) (v T, err error) {
	err = rec.Into(&v, what)
	return v, err
}

// Update changes a JSON record by compare-and-set until the change holds; change
// returns false if nothing needs changing, and is called again with what another wrote
// meanwhile. A record that is just what was written before an error is our own, so that
// nothing is counted twice. What fails again and again is an error.
func Update[T any](t *Task, key string, change func(*T) bool) error {
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
		if !change(&v) {
			return nil
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
