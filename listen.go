package main

import (
	"context"
	"fmt"
	"net"

	"seatline/internal/config"
)

// listen opens ADDR so that a peer which vanished without a word is given up
// after two signs of life that it owed, as a socket is. Event streams need that:
// they are written to and never answered, and TCP by itself goes on for a quarter
// of an hour.
func listen(ctx context.Context, cfg config.Config) (net.Listener, error) {
	dead := max(2*cfg.Keepalive, cfg.WriteTimeout)
	l := net.ListenConfig{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: cfg.Keepalive, Interval: cfg.Keepalive / 3, Count: 3},
		Control:         giveUpAfter(dead),
	}
	listener, err := l.Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("ADDR: %w", err)
	}
	return listener, nil
}
