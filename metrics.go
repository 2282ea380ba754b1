package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// metrics serves the figures of this instance, and of the Go program that it is,
// in the format of Prometheus. They name no person and no lecture.
func (f *front) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(f, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Describe is part of prometheus.Collector: what there is, Collect tells.
func (f *front) Describe(descriptions chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(f, descriptions)
}

// Collect is part of prometheus.Collector. Before the stores have answered there
// is nothing more to tell than that.
func (f *front) Collect(out chan<- prometheus.Metric) {
	f.mu.RLock()
	api, room, reg, redis, stopping := f.api, f.room, f.registrar, f.redis, f.stopping
	f.mu.RUnlock()
	tell := func(kind prometheus.ValueType, name, help string, value float64, labels ...string) {
		var names []string
		if len(labels) > 0 {
			names = []string{"state"}
		}
		out <- prometheus.MustNewConstMetric(prometheus.NewDesc("seatline_"+name, help, names, nil), kind, value, labels...)
	}
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	open := 0.0
	if api != nil && !stopping {
		open = 1
	}
	tell(gauge, "open", "1 while people are let in, 0 while starting or stopping.", open)
	if api == nil {
		return
	}

	sockets := api.Stats()
	tell(gauge, "sockets", "WebSockets and event streams that are open.", float64(sockets.Sockets))
	tell(gauge, "socket_operations", "Operations in flight on WebSockets, subscriptions among them.", float64(sockets.Operations))
	tell(counter, "sockets_opened_total", "WebSockets that were opened.", float64(sockets.Opened))
	tell(counter, "sockets_refused_total", "Connections refused for a limit, or while stopping.", float64(sockets.Refused))
	const lost = "WebSockets that were given up, by what the peer did."
	tell(counter, "sockets_lost_total", lost, float64(sockets.Slow), "not reading")
	tell(counter, "sockets_lost_total", lost, float64(sockets.Dead), "not answering")
	tell(counter, "sockets_lost_total", lost, float64(sockets.Cut), "gone")

	tell(gauge, "lectures_active", "Lectures whose lines are looked after.", float64(room.Lectures()))
	tell(gauge, "watchers", "Open streams of places and of lines' figures.", float64(room.Watchers()))

	seats := reg.Stats()
	tell(gauge, "enrollments_in_flight", "Enrolments that are not over.", float64(seats.InFlight))
	for status, n := range seats.Ended {
		tell(counter, "enrollments_total", "Enrolments that were tried here, by how they ended.", float64(n), string(status))
	}
	tell(counter, "enrollments_failed_total", "Enrolments that ended without an outcome.", float64(seats.Failed))

	pool := redis.PoolStats()
	const connections = "Connections to Redis."
	tell(gauge, "redis_connections", connections, float64(pool.IdleConns), "idle")
	tell(gauge, "redis_connections", connections, max(0, float64(pool.TotalConns)-float64(pool.IdleConns)), "in use")
	tell(counter, "redis_timeouts_total", "Waits for a connection to Redis that were in vain.", float64(pool.Timeouts))
}
