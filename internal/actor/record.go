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

// Decode decodes a JSON record. An error says what could not be decoded.
func Decode[T any](rec Record, what string) (T, error) {
	var v T
	if err := json.Unmarshal(rec.Value, &v); err != nil {
		return v, fmt.Errorf("decode %s: %w", what, err)
	}
	return v, nil
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
		var v T
		if recs[0].Found {
			if v, err = Decode[T](recs[0], key); err != nil {
				return err
			}
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
