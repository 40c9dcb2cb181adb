package frontier

import (
	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

func subQueue(by blobschema.QueueBy, k int, u weburl.URL) uint8 { return 0 }
