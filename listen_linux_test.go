package main

import (
	"net"
	"syscall"
	"testing"
	"time"

	"seatline/internal/config"
)

// TestAcceptedConnectionsInheritTheLimit: a half-open connection to which we
// only write, as an event stream, ends with this and nothing else.
func TestAcceptedConnectionsInheritTheLimit(t *testing.T) {
	l, err := listen(t.Context(), config.Config{Addr: "127.0.0.1:0", Keepalive: 25 * time.Second, WriteTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[int]int{tcpUserTimeout: 50_000, syscall.TCP_KEEPIDLE: 25, syscall.TCP_KEEPCNT: 3} {
		var got int
		var asked error
		if err := raw.Control(func(fd uintptr) { got, asked = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, name) }); err != nil || asked != nil {
			t.Fatal(err, asked)
		}
		if got != want {
			t.Errorf("option %d is %d, want %d", name, got, want)
		}
	}
}
