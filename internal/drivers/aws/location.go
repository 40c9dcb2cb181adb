package aws

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/partition"
)

// Scheme begins the URL of a deployment.
const Scheme = "aws"

// validName matches the name of a deployment. Its length leaves room for the suffixes of other names.
var validName = regexp.MustCompile(`^[A-Za-z0-9-]{3,48}$`)

// Location names a deployment.
type Location struct {
	Name       string // of the table, and the prefix of all other names
	Bucket     string
	Partitions int    // default of a new crawl
	Mailboxes  int    // deployed mailboxes: the largest number of partitions
	Region     string // "" for that of the SDK's environment
}

// Parse reads aws://NAME?bucket=BUCKET&partitions=N&mailboxes=M&region=REGION. Only region and mailboxes are
// optional; the default of mailboxes is partitions. An unknown parameter is an error.
func Parse(location string) (Location, error) {
	l, err := parse(location)
	if err != nil {
		return Location{}, fmt.Errorf("platform %q: %w (want aws://NAME?bucket=BUCKET&partitions=N&region=REGION)", location, err)
	}
	return l, nil
}

func parse(location string) (l Location, err error) {
	u, err := url.Parse(location)
	switch {
	case err != nil:
		return l, err
	case u.Scheme != Scheme:
		return l, fmt.Errorf("the scheme is not %s", Scheme)
	case u.User != nil || u.Path != "" && u.Path != "/" || u.Fragment != "" || u.Opaque != "":
		return l, fmt.Errorf("only a name and parameters are known")
	}
	l.Name = u.Host
	if !validName.MatchString(l.Name) {
		return l, fmt.Errorf("the name %.100q is not 3 to 48 letters, digits or hyphens", l.Name)
	}
	params, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return l, err
	}
	for k, v := range params {
		if len(v) != 1 || v[0] == "" {
			return l, fmt.Errorf("parameter %s needs one value", k)
		}
		switch k {
		case "bucket":
			l.Bucket = v[0]
		case "region":
			l.Region = v[0]
		case "partitions":
			l.Partitions, err = number(k, v[0])
		case "mailboxes":
			l.Mailboxes, err = number(k, v[0])
		default:
			err = fmt.Errorf("parameter %s is unknown", k)
		}
		if err != nil {
			return l, err
		}
	}
	if l.Bucket == "" {
		return l, fmt.Errorf("parameter bucket is missing")
	}
	if l.Partitions == 0 {
		return l, fmt.Errorf("parameter partitions is missing")
	}
	if l.Mailboxes == 0 {
		l.Mailboxes = l.Partitions
	}
	if l.Mailboxes < l.Partitions {
		return l, fmt.Errorf("%d mailboxes are too few for %d partitions", l.Mailboxes, l.Partitions)
	}
	return l, nil
}

// number reads a parameter that counts partitions.
func number(param, value string) (int, error) {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > partition.MaxPartitions {
		return 0, fmt.Errorf("%s is %q, not a number from 1 to %d", param, value, partition.MaxPartitions)
	}
	return n, nil
}

// String returns the URL.
func (l Location) String() string {
	q := url.Values{"bucket": {l.Bucket}, "partitions": {strconv.Itoa(l.Partitions)}}
	if l.Mailboxes != l.Partitions {
		q.Set("mailboxes", strconv.Itoa(l.Mailboxes))
	}
	if l.Region != "" {
		q.Set("region", l.Region)
	}
	return Scheme + "://" + l.Name + "?" + q.Encode()
}

// ofJobs reports whether only deployments with an index have the queue of this deployed name.
func (l Location) ofJobs(deployed string) bool {
	return deployed == l.queue(naming.IndexQueue) || deployed == l.queue(naming.RankQueue)
}

// queue returns the deployed name of a queue.
func (l Location) queue(name string) string { return l.Name + "-" + name }
