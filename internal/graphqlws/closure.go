package graphqlws

import (
	"fmt"
	"unicode/utf8"

	"github.com/gorilla/websocket"
)

// maxReason is what a close frame has room for beside its code.
const maxReason = 123

// closure is a close frame's code and reason.
type closure struct {
	code   int
	reason string
}

// Reasons are fixed texts: what a client sent does not come back to it.
var (
	normalClosure  = &closure{websocket.CloseNormalClosure, ""}
	internalError  = &closure{websocket.CloseInternalServerErr, "Internal server error"}
	serviceRestart = &closure{websocket.CloseServiceRestart, "Service Restart"}
	nothingRuns    = &closure{websocket.CloseGoingAway, "Nothing runs here"}
	tooManySockets = &closure{websocket.CloseTryAgainLater, "Too many sockets"}
	tryAgainLater  = &closure{websocket.CloseTryAgainLater, "Try again later"}

	notAMessage     = &closure{4400, "Invalid message received"}
	unknownType     = &closure{4400, "Unexpected message type"}
	badID           = &closure{4400, "Invalid message id"}
	badPayload      = &closure{4400, "Invalid message payload"}
	unauthorized    = &closure{4401, "Unauthorized"}
	forbidden       = &closure{4403, "Forbidden"}
	notAcceptable   = &closure{4406, "Subprotocol not acceptable"}
	initTimeout     = &closure{4408, "Connection initialisation timeout"}
	tooManyRequests = &closure{4429, "Too many initialisation requests"}
)

func tooBig(most int64) *closure {
	return &closure{websocket.CloseMessageTooBig, fmt.Sprintf("Message larger than %d bytes", most)}
}

// alreadyExists names the id in question, as far as it has room.
func alreadyExists(id string) *closure {
	const before, after = "Subscriber for ", " already exists"
	room := maxReason - len(before) - len(after)
	if len(id) > room {
		for room > 0 && !utf8.RuneStart(id[room]) {
			room--
		}
		id = id[:room]
	}
	return &closure{4409, before + id + after}
}
