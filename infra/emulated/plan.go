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

// unfaithful lists the differences that a second plan finds only because of an emulator: resource, attributes
// and the reason. Everything else must be unchanged.
//
// A budget is not in the list, because it cannot even be created: moto has no
// DescribeSubscribersForNotification, which the provider would retry forever.
var unfaithful = []struct{ address, attributes, why string }{
	{"module.storage.aws_dynamodb_table.records", "tags_all", "DynamoDB Local has no tags"},
	{"module.functions.aws_lambda_event_source_mapping.wakes", "function_name", "moto forgets the alias of a mapping"},
	{"module.functions.aws_lambda_event_source_mapping.intake", "function_name", "moto forgets the alias of a mapping"},
	{`module.functions.aws_lambda_event_source_mapping.jobs["index"]`, "function_name", "moto forgets the alias of a mapping"},
	{`module.functions.aws_lambda_event_source_mapping.jobs["rank"]`, "function_name", "moto forgets the alias of a mapping"},
}

// change is the planned change of a resource.
type change struct {
	Actions      []string       `json:"actions"`
	Before       map[string]any `json:"before"`
	After        map[string]any `json:"after"`
	AfterUnknown map[string]any `json:"after_unknown"`
}

func (c *change) does() string { return strings.Join(c.Actions, " and ") }

// attributes returns the names of the attributes that change, separated by commas.
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

// changes reads a plan in Terraform's JSON (format 1.x) and returns its changes, by address. It skips data
// sources.
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

// recursion returns the planned settings for recursive loops, by the names of functions.
func recursion(found map[string]change) map[string]any {
	set := map[string]any{}
	for address, c := range found {
		if strings.Contains(address, ".aws_lambda_function_recursion_config.") {
			set[fmt.Sprint(c.After["function_name"])] = c.After["recursive_loop"]
		}
	}
	return set
}

// judge prints the findings of a second plan, and returns the unexpected ones.
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
