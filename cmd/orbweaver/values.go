package main

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/crawlfile"
	"github.com/orbweaver/orbweaver/internal/fetch"
	"github.com/orbweaver/orbweaver/internal/frontier"
	"github.com/orbweaver/orbweaver/partition"
)

// The values of flags that are more than a number or a text. Each is a pflag.Value:
// Set says what is wrong with a text in words that follow "invalid argument ...:".

// scopeValue is --scope.
type scopeValue blobschema.Scope

func (v *scopeValue) Set(s string) error {
	scope, err := crawlfile.ParseScope(s)
	if err == nil {
		*v = scopeValue(scope)
	}
	return err
}

func (v *scopeValue) String() string { return string(*v) }
func (v *scopeValue) Type() string   { return "host|domain|any" }

// partitionByValue is --partition-by.
type partitionByValue blobschema.PartitionBy

func (v *partitionByValue) Set(s string) error {
	switch blobschema.PartitionBy(s) {
	case blobschema.ByHost, blobschema.ByDomain, blobschema.ByIP:
		*v = partitionByValue(s)
		return nil
	}
	return errors.New("it must be host, domain or ip")
}

func (v *partitionByValue) String() string { return string(*v) }
func (v *partitionByValue) Type() string   { return "host|domain|ip" }

// policyValue is --policy.
type policyValue string

func (v *policyValue) Set(s string) error {
	if s == "" {
		return errors.New("it must be the name of a policy")
	}
	if _, err := frontier.PolicyByName(s, ""); err != nil {
		return err
	}
	*v = policyValue(s)
	return nil
}

func (v *policyValue) String() string { return string(*v) }
func (v *policyValue) Type() string   { return strings.Join(frontier.PolicyNames(), "|") }

// qualityValue is --quality.
type qualityValue string

func (v *qualityValue) Set(s string) error {
	if s == "" {
		return errors.New("it must be the name of a source of quality")
	}
	if _, err := frontier.QualityByName(s); err != nil {
		return err
	}
	*v = qualityValue(s)
	return nil
}

func (v *qualityValue) String() string { return string(*v) }
func (v *qualityValue) Type() string   { return strings.Join(frontier.QualityNames(), "|") }

// compressValue is --compress, as the record has it: whether WARC files are plain.
type compressValue bool

func (v *compressValue) Set(s string) error {
	if s != "gzip" && s != "none" {
		return errors.New("it must be gzip or none")
	}
	*v = s == "none"
	return nil
}

func (v *compressValue) String() string {
	if *v {
		return "none"
	}
	return "gzip"
}
func (v *compressValue) Type() string { return "gzip|none" }

// sizeValue is a number of bytes, such as 1048576, 16MiB or 1GB.
type sizeValue int64

// sizeUnit is the number of bytes in a unit, 0 if there is no such one: iB and plain
// letters are powers of 1024, B alone those of 1000, without regard to case.
func sizeUnit(name string) int64 {
	switch strings.ToLower(name) {
	case "", "b":
		return 1
	case "k", "kib":
		return 1 << 10
	case "kb":
		return 1e3
	case "m", "mib":
		return 1 << 20
	case "mb":
		return 1e6
	case "g", "gib":
		return 1 << 30
	case "gb":
		return 1e9
	}
	return 0
}

func (v *sizeValue) Set(s string) error {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := sizeUnit(strings.TrimSpace(s[len(digits):]))
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || unit == 0 || n < 0 || n > math.MaxInt64/unit {
		return errors.New("it must be a number of bytes such as 1048576, 16MiB or 1GB")
	}
	*v = sizeValue(n * unit)
	return nil
}

func (v *sizeValue) String() string { return formatSize(int64(*v)) }
func (v *sizeValue) Type() string   { return "size" }

// formatSize writes a number of bytes so that [sizeValue] reads the same again.
func formatSize(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return strconv.FormatInt(n, 10)
}

// netsValue is a list of networks, given one at a time. A bare address is a network of
// its own.
type netsValue struct {
	nets []netip.Prefix
	none bool // "none" was given: those that are kept do not count any more
}

func (v *netsValue) Set(s string) error {
	if s == "none" {
		v.none = true
		return nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		addr, aerr := netip.ParseAddr(s)
		if aerr != nil || addr.Zone() != "" {
			return errors.New("it must be a network such as 127.0.0.0/8, an address, or none")
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	v.nets = append(v.nets, p.Masked())
	return nil
}

// with returns the networks that are kept, and those given.
func (v *netsValue) with(kept []netip.Prefix) []netip.Prefix {
	if v.none {
		kept = nil
	}
	kept = slices.Clone(kept)
	for _, p := range v.nets {
		if !slices.Contains(kept, p) {
			kept = append(kept, p)
		}
	}
	return kept
}

func (v *netsValue) String() string {
	if v.none && len(v.nets) == 0 {
		return "none"
	}
	return netList(v.nets)
}
func (v *netsValue) Type() string { return "CIDR" }

func netList(nets []netip.Prefix) string {
	texts := make([]string, len(nets))
	for i, p := range nets {
		texts[i] = p.String()
	}
	return strings.Join(texts, ", ")
}

// patternsValue is a list of regular expressions, given one at a time.
type patternsValue []string

func (v *patternsValue) Set(s string) error {
	if _, err := regexp.Compile(s); err != nil {
		return fmt.Errorf("it must be a regular expression (RE2): %w", err)
	}
	*v = append(*v, s)
	return nil
}

func (v *patternsValue) String() string { return strings.Join(*v, " ") }
func (v *patternsValue) Type() string   { return "regexp" }

// agentValue is a User-Agent field whose first word is a product, "name/version".
type agentValue string

func (v *agentValue) Set(s string) error {
	if fetch.ProductToken(s) == "" {
		return errors.New(`it must begin with a product of letters, "-" and "_", as in "mybot/1.0 (+https://example.org/bot)"`)
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return errors.New("it must not hold control characters")
		}
	}
	*v = agentValue(s)
	return nil
}

func (v *agentValue) String() string { return string(*v) }
func (v *agentValue) Type() string   { return "text" }

// boundValue is a number of at least least, or -1 for no bound. Where nothing can be
// bounded at 0, least is 0 and 0 is no bound either.
type boundValue struct {
	n     int64
	least int64
}

// orNone is the bound as records have it, where 0 is none.
func (v *boundValue) orNone() int64 { return max(v.n, 0) }

func (v *boundValue) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n != -1 && n < v.least {
		return fmt.Errorf("it must be %d or more, or -1 for no bound", v.least)
	}
	v.n = n
	return nil
}

func (v *boundValue) String() string { return strconv.FormatInt(v.n, 10) }
func (v *boundValue) Type() string   { return "n" }

// elasticValue is --elastic: between how many partitions a crawl may be divided; 0, 0 for
// as many as it was told.
type elasticValue struct{ least, most int }

func (v *elasticValue) Set(s string) error {
	if s == "off" {
		*v = elasticValue{}
		return nil
	}
	a, b, ok := strings.Cut(s, "..")
	least, aerr := strconv.Atoi(a)
	most, berr := strconv.Atoi(b)
	if !ok || aerr != nil || berr != nil || least < 1 || most < least || most > partition.MaxPartitions {
		return fmt.Errorf("it must be LEAST..MOST, such as 2..16, with 1 to %d partitions, or off", partition.MaxPartitions)
	}
	*v = elasticValue{least, most}
	return nil
}

func (v *elasticValue) String() string {
	if *v == (elasticValue{}) {
		return "off"
	}
	return fmt.Sprintf("%d..%d", v.least, v.most)
}
func (v *elasticValue) Type() string { return "LEAST..MOST" }
