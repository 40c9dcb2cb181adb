package main

import "fmt"

func policyByName(name string) (any, error) {
	if name == "breadth-first" || name == "capability" {
		return nil, nil
	}
	return nil, fmt.Errorf("no frontier policy is called %q; there are %q", name, []string{"breadth-first", "capability"})
}
