package blobschema

import (
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/wire"
)

// MaxKnownHosts bounds the hosts of a table of [EncodeKnownHosts]. Encoded, so many are about 3 MB.
const MaxKnownHosts = 100_000

// EncodeKnownHosts encodes the hosts that a new crawl knows from an earlier one: a pack of one section, with the
// observations in their order. It returns an error if there are more than [MaxKnownHosts].
func EncodeKnownHosts(hosts []HostObservation) ([]byte, error) {
	if len(hosts) > MaxKnownHosts {
		return nil, fmt.Errorf("encode known hosts: %d are above the bound of %d", len(hosts), MaxKnownHosts)
	}
	raw, err := encodeSequence(hosts)
	if err != nil {
		return nil, fmt.Errorf("encode known hosts: %w", err)
	}
	return wire.Append(nil, []wire.Section{{Name: sectionHosts, Data: wire.AppendPacked(nil, raw)}}), nil
}

// DecodeKnownHosts decodes the result of [EncodeKnownHosts].
func DecodeKnownHosts(data []byte) ([]HostObservation, error) {
	p, err := wire.Open(data)
	if err != nil {
		return nil, fmt.Errorf("decode known hosts: %w", err)
	}
	raw, err := p.Unpacked(sectionHosts)
	if err != nil {
		return nil, fmt.Errorf("decode known hosts: %w", err)
	}
	hosts, err := decodeSequence[HostObservation](raw)
	if err == nil && len(hosts) > MaxKnownHosts {
		err = wire.Damaged("%d hosts", len(hosts))
	}
	if err != nil {
		return nil, fmt.Errorf("decode known hosts: %w", err)
	}
	return hosts, nil
}
