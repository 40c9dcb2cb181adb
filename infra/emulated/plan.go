package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// unfaithful lists the differences that a second plan finds although nothing differs:
// resource, attributes, and the emulator that is to blame. All else must be unchanged.
//
// Not in the list because it cannot even be made: a budget. moto has no
// DescribeSubscribersForNotification, and the provider asks it forever.
var unfaithful = []struct{ address, attributes, why string }{
	{"module.storage.aws_dynamodb_table.records", "tags_all", "DynamoDB Local has no tags"},
	{"module.functions.aws_lambda_event_source_mapping.wakes", "function_name", "moto forgets the alias of a mapping"},
	{"module.functions.aws_lambda_event_source_mapping.intake", "function_name", "moto forgets the alias of a mapping"},
	{`module.functions.aws_lambda_event_source_mapping.jobs["index"]`, "function_name", "moto forgets the alias of a mapping"},
	{`module.functions.aws_lambda_event_source_mapping.jobs["rank"]`, "function_name", "moto forgets the alias of a mapping"},
}

// change is what a plan says of a resource.
type change struct {
	Actions      []string       `json:"actions"`
	Before       map[string]any `json:"before"`
	After        map[string]any `json:"after"`
	AfterUnknown map[string]any `json:"after_unknown"`
}

func (c *change) does() string { return strings.Join(c.Actions, " and ") }

// attributes are the names of those that change, with commas between.
func (c *change) attributes() string {
	names := map[string]bool{}
	for _, m := range []map[string]any{c.Before, c.After} {
		for k := range m {
			if !reflect.DeepEqual(c.Before[k], c.After[k]) {
				names[k] = true
			}
		}
	}
	for k, unknown := range c.AfterUnknown {
		if unknown == true {
			names[k] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ",")
}

// changes reads a plan in Terraform's JSON (format 1.x) and returns what it would do, by
// address. Data sources are not resources.
func changes(plan []byte) (map[string]change, error) {
	var p struct {
		FormatVersion   string `json:"format_version"`
		ResourceChanges []struct {
			Address string `json:"address"`
			Mode    string `json:"mode"`
			Change  change `json:"change"`
		} `json:"resource_changes"`
	}
	if err := json.Unmarshal(plan, &p); err != nil {
		return nil, fmt.Errorf("read the plan: %w", err)
	}
	if !strings.HasPrefix(p.FormatVersion, "1.") || len(p.ResourceChanges) == 0 {
		return nil, fmt.Errorf("read the plan: format %q with %d resources", p.FormatVersion, len(p.ResourceChanges))
	}
	out := map[string]change{}
	for _, r := range p.ResourceChanges {
		if r.Mode == "managed" && r.Change.does() != "no-op" {
			out[r.Address] = r.Change
		}
	}
	return out, nil
}

// recursion is what a plan sets for chains of calls, by the names of functions.
func recursion(found map[string]change) map[string]any {
	set := map[string]any{}
	for address, c := range found {
		if strings.Contains(address, ".aws_lambda_function_recursion_config.") {
			set[fmt.Sprint(c.After["function_name"])] = c.After["recursive_loop"]
		}
	}
	return set
}

// judge prints what a second plan found, and returns what it should not have found.
func judge(w io.Writer, found map[string]change) (bad []string) {
	for _, u := range unfaithful {
		c, ok := found[u.address]
		switch {
		case !ok:
			fmt.Fprintf(w, "second plan: %s is unchanged here (expected: %s)\n", u.address, u.why)
		case c.does() == "update" && c.attributes() == u.attributes:
			fmt.Fprintf(w, "second plan: %s: %s, because %s\n", u.address, u.attributes, u.why)
			delete(found, u.address)
		}
	}
	for _, address := range slices.Sorted(maps.Keys(found)) {
		c := found[address]
		bad = append(bad, fmt.Sprintf("would %s %s (%s)", c.does(), address, c.attributes()))
	}
	if len(bad) == 0 {
		fmt.Fprintln(w, "second plan: all else is as it should be")
	}
	return bad
}
