package config

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// CheckHealth asks the server that listens at Addr on this machine whether it is
// ready. It is what -healthcheck does, for containers that hold nothing else to
// ask with.
func (c Config) CheckHealth(ctx context.Context) error {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // a container may not know the name localhost
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	url := "http://" + net.JoinHostPort(host, port) + "/readyz"
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// Straight to this machine, whatever proxy the environment names.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, reply.Status)
	}
	return nil
}
