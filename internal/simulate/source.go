package simulate

import (
	"fmt"
	"go/format"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// source returns the scenario as a Go expression, for a test in this package. It leaves out zero fields and Trace.
func (c Config) source() string {
	var b strings.Builder
	source(&b, reflect.ValueOf(c))
	out, err := format.Source([]byte(b.String()))
	if err != nil {
		return b.String() // unformatted source is still readable
	}
	return string(out)
}

var units = []struct {
	d    time.Duration
	name string
}{{time.Hour, "Hour"}, {time.Minute, "Minute"}, {time.Second, "Second"}, {time.Millisecond, "Millisecond"}, {1, "Nanosecond"}}

func source(b *strings.Builder, v reflect.Value) {
	switch x := v.Interface().(type) {
	case time.Duration:
		for _, u := range units {
			if x%u.d == 0 {
				fmt.Fprintf(b, "%d*time.%s", x/u.d, u.name)
				return
			}
		}
	case Kind:
		b.WriteString(x.identifier())
		return
	}
	name := strings.TrimPrefix(v.Type().String(), "simulate.")
	switch v.Kind() {
	case reflect.Struct:
		b.WriteString(name + "{\n")
		for i := range v.NumField() {
			f := v.Field(i)
			if f.IsZero() && f.Type() != reflect.TypeFor[Kind]() || f.Kind() == reflect.Interface {
				continue
			}
			b.WriteString(v.Type().Field(i).Name + ": ")
			source(b, f)
			b.WriteString(",\n")
		}
		b.WriteString("}")
	case reflect.Slice:
		b.WriteString(strings.ReplaceAll(name, "simulate.", "") + "{\n")
		for i := range v.Len() {
			source(b, v.Index(i))
			b.WriteString(",\n")
		}
		b.WriteString("}")
	case reflect.Map: // keys are kinds
		b.WriteString(strings.ReplaceAll(name, "simulate.", "") + "{\n")
		keys := v.MapKeys()
		slices.SortFunc(keys, func(x, y reflect.Value) int { return int(x.Uint()) - int(y.Uint()) })
		for _, k := range keys {
			source(b, k)
			b.WriteString(": ")
			source(b, v.MapIndex(k))
			b.WriteString(",\n")
		}
		b.WriteString("}")
	case reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	default:
		fmt.Fprint(b, v.Interface())
	}
}
