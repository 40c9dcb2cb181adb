// Recordings makes the moving picture of a crawl: it serves the project's own documents and
// sources as a small web on loopback, a host for each folder, crawls it in a terminal
// with the program, and draws the screens. It needs `script` of util-linux.
//
//	recordings DATA PICTURE
//
// The crawl stays in DATA, for the picture of its search page that 'make recordings' takes.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"time"

	"github.com/charmbracelet/x/vt"
)

const (
	width  = 108 // of the terminal
	height = 30
)

func main() {
	err := serve(".")
	if err == nil {
		err = record(context.Background(), os.Args[1], os.Args[2])
	}
	if err != nil {
		log.Fatal("recordings: ", err)
	}
}

// record runs a crawl in a terminal and draws its live view.
func record(ctx context.Context, data, picture string) error {
	command := "orbweaver crawl --data " + data + " --index --scope any --delay 100ms --allow-net 127.0.0.0/8 http://" + firstHost + "/"
	cmd := exec.CommandContext(ctx, "script", "-qfec", fmt.Sprintf("stty cols %d rows %d && exec bin/%s", width, height, command), "/dev/null")
	cmd.Env = append(os.Environ(), "TERM=xterm")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	t := vt.NewEmulator(width, height)
	defer t.Close()
	fmt.Fprintf(t, "$ %s\r\n", command)
	frames, rerr := watch(stdout, t, time.Now)
	if err := errors.Join(rerr, cmd.Wait()); err != nil {
		return fmt.Errorf("%s: %w\n%s", command, err, screen(t))
	}
	return os.WriteFile(picture, []byte(motion(frames)), 0o644)
}
