package naming

import "strings"

// Names of files and folders in the folder of a crawl.
const (
	DatabaseFile  = "orbweaver.db"   // queues and table
	ObjectsFolder = "blobs"          // each object is a file of its name below it
	SocketFile    = "orbweaver.sock" // of the process that owns the folder
	CommitGlob    = "*/p*/c*-f*"     // matches the commits of all crawls below ObjectsFolder
)

// Unfinished reports whether a name in [ObjectsFolder] is that of an object being written: the
// name of the object, 16 hexadecimal digits of nanoseconds and "tmp", separated by dots.
func Unfinished(name string) bool {
	name, ok := strings.CutSuffix(name, ".tmp")
	dot := strings.LastIndexByte(name, '.')
	return ok && dot >= 0 && len(name)-dot-1 == 16 && strings.Trim(name[dot+1:], digits+letters[:6]) == ""
}
