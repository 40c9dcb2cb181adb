package simulate

import (
	"fmt"
	"go/format"
	"regexp"
	"strings"
)

// zeroField is a field of a Go expression that has the zero value of its type. A Kind is never zero: it has a name.
var zeroField = regexp.MustCompile(`\w+:(?:0x0|0|""|false|[\w.]+\{\}|[\w.\[\]]+\(nil\))(?:, |(\}))`)

// source returns the scenario as a Go expression, for a test in this package. It leaves out zero fields and Trace.
func (c Config) source() string {
	c.Trace = nil
	text := fmt.Sprintf("%#v", c)
	for last := ""; text != last; { // a struct of zero fields becomes one itself
		last, text = text, zeroField.ReplaceAllString(text, "$1")
	}
	text = strings.NewReplacer("simulate.", "", "{", "{\n", ", ", ",\n").Replace(text)
	out, err := format.Source([]byte(text))
	if err != nil {
		return text // unformatted source is still readable
	}
	return string(out)
}

// GoString returns the name of the constant.
func (k Kind) GoString() string {
	var b strings.Builder
	for _, word := range strings.Fields(k.String()) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
