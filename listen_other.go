//go:build !linux

package main

import (
	"syscall"
	"time"
)

// giveUpAfter leaves it to the system's own patience with what is not
// acknowledged; TCP keep-alive finds peers that vanished while nothing was sent.
func giveUpAfter(time.Duration) func(network, address string, c syscall.RawConn) error { return nil }
