//go:build !unix

package main

func ignoreSizeSignal() {}
