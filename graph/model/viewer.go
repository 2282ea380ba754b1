package model

import (
	"time"

	"seatline/internal/auth"
)

// Session is a guest's sign-in.
type Session struct {
	Token     string
	ExpiresAt time.Time
	Viewer    *auth.Viewer
}
