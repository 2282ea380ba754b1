package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"seatline/internal/testenv"
)

// figure is a line of /metrics, without its name; "" where there is none.
func (s *instance) figure(name string) string {
	s.t.Helper()
	status, body := s.get("/metrics", "")
	if status != 200 {
		s.t.Fatalf("/metrics: %d %s", status, body)
	}
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// TestMetrics: an operator's graphs show what goes on, and whether all is as
// before once it is over.
func TestMetrics(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		id := s.newLecture(`capacity:1`)
		s.mustEnroll("kim", id)
		s.must("kim", `mutation{enroll(lectureId:"`+id+`"){status}}`)
		watcher := transports["graphql-transport-ws"](s, "lee", fmt.Sprintf(watched, id))
		watcher.until("the first event", func(event) bool { return true })
		for name, want := range map[string]string{
			"seatline_open":                                        "1",
			"seatline_sockets":                                     "1",
			"seatline_watchers":                                    "1",
			"seatline_socket_operations":                           "1",
			"seatline_enrollments_in_flight":                       "0",
			"seatline_enrollments_failed_total":                    "0",
			`seatline_enrollments_total{state="ENROLLED"}`:         "1",
			`seatline_enrollments_total{state="ALREADY_ENROLLED"}`: "1",
		} {
			if got := s.figure(name); got != want {
				t.Errorf("%s %s, want %s", name, got, want)
			}
		}
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes", `seatline_redis_connections{state="idle"}`, "seatline_sockets_opened_total"} {
			if s.figure(name) == "" {
				t.Errorf("there is no %s", name)
			}
		}
		watcher.close()
		testenv.Eventually(t, 10*time.Second, func() bool {
			return s.figure("seatline_sockets") == "0" && s.figure("seatline_watchers") == "0" && s.figure("seatline_socket_operations") == "0"
		}, "all is as before")
	})
}

func TestMetricsMayBeTurnedOff(t *testing.T) {
	s := start(t, env{"METRICS": "off"})
	s.awaitReady()
	if status, body := s.get("/metrics", ""); status != 404 || strings.Contains(body, "goroutines") {
		t.Errorf("/metrics: %d %s", status, body)
	}
}
