package platform

import "context"

// Open opens the platform at a location: a folder.
func Open(_ context.Context, location string, meter Meter) (*Platform, error) {
	return Local(location, meter)
}
