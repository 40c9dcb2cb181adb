package bucket

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// Claim ties a bucket to one platform. With an empty id, it stores an object with a random name and returns the id in that name,
// which the platform keeps beside its records. With such an id, it requires the object. So a command that names another bucket,
// or a folder that its machine does not share, is refused. where names the bucket in errors.
func Claim(ctx context.Context, b *Bucket, where, id string) (string, error) {
	if id != "" {
		found, err := b.Exists(ctx, naming.MarkerPrefix+id)
		switch {
		case err != nil:
			return "", fmt.Errorf("read the bucket %s: %w", where, err)
		case !found:
			return "", fmt.Errorf("its pages are not in %s, because the object %s is not there: give the bucket or the folder that the first command used; "+
				"every machine must reach the same one", where, naming.MarkerPrefix+id)
		}
		return id, nil
	}
	id = rand.Text()
	name := naming.MarkerPrefix + id
	err := b.WriteAll(ctx, name, nil, nil)
	if err == nil && b.Sync != nil {
		err = b.Sync([]string{name})
	}
	if err != nil {
		return "", fmt.Errorf("write to the bucket %s: %w", where, err)
	}
	return id, nil
}
