// Package graphqlws carries GraphQL operations over WebSockets. It is a
// [graphql.Transport] for gqlgen on gorilla/websocket and speaks two
// subprotocols: graphql-transport-ws, and the older graphql-ws of
// subscriptions-transport-ws, called legacy here.
//
// # Life of a socket
//
//	           upgrade              connection_init           Init returned
//	admitted ──────────► opened ──────────────────► initialising ──────────► acknowledged
//	   │                   │                              │                       │
//	   │ 429, 503          └──────────────┬───────────────┴───────────────────────┘
//	   ▼                                  ▼
//	refused                            closing ──► gone
//
// A request is counted and may be refused before the upgrade, while an HTTP
// status can still be sent. In every state but acknowledged only the messages
// that lead to it are accepted. Closing begins once, with the first reason
// found; from then on every operation is cancelled and nothing but the close
// frame is written. A socket is gone, and its place in the counts is free,
// when its goroutines have ended.
//
// # Life of an operation
//
// An operation owns its id from the subscribe message until the last message
// about it is about to be written, or until the client completes it. So a
// client that has seen `complete` or `error` can use the id again at once, and
// an id never carries a message that belongs to an earlier owner. The messages
// are `next`* then `complete`, or `next`* then `error`: never both ends, and
// none after either.
//
// `error` ends an operation that could not be executed (parse, validation,
// limits, a refusal by an interceptor, a subscription that could not start):
// in the words of the GraphQL specification a request error, recognised by a
// response without data. It also ends a stream that broke, by a panic or by
// [AddSubscriptionError]. Errors beside data travel in `next`.
//
// # Guarantees
//
//   - A client that stops reading costs no one else anything. A message that
//     is not with the kernel WriteTimeout after it was ready takes its socket
//     down, with all of the socket's operations.
//   - One goroutine writes at a time, and what waits for it is bounded: one
//     message an operation, and a few of the connection's own. When those have
//     no room the connection is not read either, so the client feels its own
//     pressure.
//   - An operation is asked for its next response only when the one before is
//     written. Sources that keep only their latest state lose nothing but the
//     states nobody had time for.
//   - A peer that says nothing for two ping intervals is gone.
//   - A peer that says more than MaxMessages a second is read more slowly.
//   - Nothing a resolver does ends the process or keeps an id, except a panic
//     in a goroutine that the resolver started itself.
//   - At rest a socket with one subscription costs two goroutines: one reads,
//     one waits for the subscription's next response. Timers need none.
//
// # Close codes
//
//	1000  echo of the peer's own normal close, or of connection_terminate
//	1001  nothing has run here for IdleTimeout
//	1009  message larger than MaxFrame
//	1011  a fault of the server
//	1012  the server restarts: come back, with back-off
//	1013  too many sockets for this person, or the server cannot verify now
//	4400  not a message of the protocol
//	4401  operation before the acknowledgement, refused login, token run out
//	4403  known, and not allowed in
//	4406  no subprotocol in common
//	4408  no acknowledgement within InitTimeout
//	4409  id already in use
//	4429  a second connection_init
//
// The peer is never closed with 1000 unasked: stock clients answer it with an
// immediate reconnect, without back-off and without end. A peer whose
// connection does not take bytes any more, and a dead one, get a reset instead
// of a code. Violations of RFC 6455 itself are answered with 1002 by gorilla.
//
// # Legacy
//
// The legacy protocol names its messages otherwise (start, data, stop) and has
// connection_error, which precedes every refusal here, and ka, the server's
// sign of life. It has no ping of its own, so a WebSocket ping goes with each ka
// to make the peer answer. Its clients may send start without waiting for the
// acknowledgement; such operations wait for it.
package graphqlws
