package main

import "testing"

func TestHeaderWithoutControl(t *testing.T) {
	got := withoutControl([]byte("HTTP/1.1 200 \x1b[2J\x7f\r\nX:\ta\xff\r\n\r\n"))
	if want := "HTTP/1.1 200  [2J \r\nX:\ta\xff\r\n\r\n"; string(got) != want {
		t.Errorf("%q, want %q", got, want)
	}
}
