package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// event is what a subscription says: a response, or how it ended.
type event struct {
	answer
	end string // "complete", "error", or the close of the connection
}

// stream is a subscription over one of the transports.
type stream struct {
	t      testing.TB
	events chan event
	close  func() // ends it, and waits until its reader is gone
}

// transports are the ways to subscribe.
var transports = map[string]func(s *instance, user, query string) *stream{
	"graphql-transport-ws": func(s *instance, user, query string) *stream {
		return s.socket("graphql-transport-ws", "subscribe", user, query)
	},
	"graphql-ws": func(s *instance, user, query string) *stream { return s.socket("graphql-ws", "start", user, query) },
	"sse":        (*instance).eventStream,
}

func (s *instance) socket(protocol, subscribe, user, query string) *stream {
	s.t.Helper()
	return s.socketAs(bearer(s.t, user), protocol, subscribe, query)
}

func (s *instance) socketAs(authorization, protocol, subscribe, query string) *stream {
	s.t.Helper()
	out, err := s.trySocket(authorization, protocol, subscribe, query)
	if err != nil {
		s.t.Fatalf("%s: %v", protocol, err)
	}
	return out
}

// trySocket is socketAs where being refused is an answer too.
func (s *instance) trySocket(authorization, protocol, subscribe, query string) (*stream, error) {
	dialer := websocket.Dialer{Subprotocols: []string{protocol}, HandshakeTimeout: 10 * time.Second}
	ws, res, err := dialer.DialContext(s.t.Context(), strings.Replace(s.url, "http", "ws", 1)+"/graphql", nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	s.t.Cleanup(func() { ws.Close() })
	params := map[string]string{}
	if authorization != "" {
		params["Authorization"] = authorization
	}
	var ack struct{ Type string }
	err = ws.WriteJSON(map[string]any{"type": "connection_init", "payload": params})
	if err == nil {
		err = ws.ReadJSON(&ack)
	}
	if err == nil && ack.Type != "connection_ack" {
		err = fmt.Errorf("greeted with %q", ack.Type)
	}
	if err == nil {
		err = ws.WriteJSON(map[string]any{"type": subscribe, "id": "1", "payload": map[string]any{"query": query}})
	}
	if err != nil {
		ws.Close()
		return nil, err
	}
	return newStream(s.t, ws, func(out *stream) { out.readSocket(ws) }), nil
}

func newStream(t testing.TB, conn io.Closer, read func(*stream)) *stream {
	out := &stream{t: t, events: make(chan event, 1000)}
	out.close = func() {
		conn.Close()
		for range out.events {
		}
	}
	t.Cleanup(out.close)
	go read(out)
	return out
}

func (out *stream) readSocket(ws *websocket.Conn) {
	defer close(out.events)
	for {
		var m struct {
			Type    string
			Payload json.RawMessage
		}
		if err := ws.ReadJSON(&m); err != nil {
			out.events <- event{end: err.Error()}
			return
		}
		switch m.Type {
		case "next", "data":
			var e event
			if err := json.Unmarshal(m.Payload, &e.answer); err != nil {
				e.end = err.Error()
			}
			out.events <- e
		case "error":
			e := event{end: "error"}
			if err := json.Unmarshal(m.Payload, &e.Errors); err != nil { // a list, or in the older protocol one error
				_ = json.Unmarshal([]byte(`[`+string(m.Payload)+`]`), &e.Errors)
			}
			out.events <- e
		case "complete":
			out.events <- event{end: "complete"}
		case "ping":
			_ = ws.WriteJSON(map[string]string{"type": "pong"})
		}
	}
}

func (s *instance) eventStream(user, query string) *stream {
	s.t.Helper()
	return s.eventStreamAs(bearer(s.t, user), query)
}

func (s *instance) eventStreamAs(authorization, query string) *stream {
	s.t.Helper()
	b, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", bytes.NewReader(b))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Authorization", authorization)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return newStream(s.t, res.Body, func(out *stream) { out.readEvents(res.Body) })
}

func (out *stream) readEvents(body io.Reader) {
	defer close(out.events)
	kind := ""
	for lines := bufio.NewScanner(body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimPrefix(value, " "); {
		case name == "event":
			kind = value
		case name == "data" && kind == "next":
			var e event
			if err := json.Unmarshal([]byte(value), &e.answer); err != nil {
				e.end = err.Error()
			}
			out.events <- e
		case name == "data" && kind == "complete":
			out.events <- event{end: "complete"}
		}
	}
	out.events <- event{end: "the connection ended"}
}

// until reads events until one is as wanted, and returns it.
func (out *stream) until(what string, wanted func(event) bool) event {
	out.t.Helper()
	within := time.After(20 * time.Second)
	var last event
	for {
		select {
		case e, ok := <-out.events:
			if !ok {
				out.t.Fatalf("waiting for %s: nothing more after %+v", what, last)
			}
			if last = e; wanted(e) {
				return e
			}
		case <-within:
			out.t.Fatalf("waiting for %s: not after %+v", what, last)
		}
	}
}

// untilStatus reads until the position's status is this one.
func (out *stream) untilStatus(status string) event {
	out.t.Helper()
	return out.until(status, func(e event) bool { return e.at("queuePosition.status") == status })
}

// completed expects the end, and nothing but it.
func (out *stream) completed() {
	out.t.Helper()
	if e := out.until("the end", func(e event) bool { return true }); e.end != "complete" {
		out.t.Errorf("after the last event came %+v", e)
	}
}
