package main

import (
	"errors"
	"fmt"
	"strings"
)

// exit is a status that the process ends with. Scripts rely on the numbers.
type exit int

// The exit statuses.
const (
	exitOK          exit = 0
	exitError       exit = 1
	exitUsage       exit = 2
	exitStopped     exit = 3
	exitDeadLetters exit = 4
	exitInUse       exit = 5
	exitDamaged     exit = 6
	exitNothing     exit = 7
)

// exitMeanings are the meanings of the statuses, by number.
var exitMeanings = [...]string{
	exitOK:          "finished, or stopped by --max-pages; in a cloud also: left running",
	exitError:       "an error; committed pages are kept",
	exitUsage:       "wrong use: a flag or a URL is wrong, or contradicts the crawl",
	exitStopped:     "stopped before the end, by a signal, --max-time or 'orbweaver stop'",
	exitDeadLetters: "finished, but some mail between partitions could not be read",
	exitInUse:       "another process works on the folder, steps on the crawl that --new is to replace, or another rank job is under way",
	exitDamaged:     "stored data is damaged: fsck found it, or another command could not read it",
	exitNothing:     "nothing could be fetched, or no ranks are finished yet",
}

// exitStatuses lists them for the help.
func exitStatuses() string {
	var b strings.Builder
	for status, meaning := range exitMeanings {
		fmt.Fprintf(&b, "  %d  %s\n", status, meaning)
	}
	return b.String()
}

// failure is why a command ends with a status other than 0. Without an error the command has reported
// everything.
type failure struct {
	status exit
	err    error
}

func (f *failure) Error() string {
	if f.err == nil {
		return fmt.Sprintf("exit status %d", f.status)
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error { return f.err }

// fail gives an error the status to end with. err is nil if the command has reported everything. exitOK is
// no failure.
func fail(status exit, err error) error {
	if status == exitOK {
		return err
	}
	return &failure{status, err}
}

// usagef returns the error of a wrong use.
func usagef(format string, args ...any) error { return fail(exitUsage, fmt.Errorf(format, args...)) }

// statusOf returns the status that the process ends with after an error.
func statusOf(err error) exit {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f.status
	}
	return exitError
}
