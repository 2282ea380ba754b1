package registrar

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxTitle       = 200
	maxDescription = 5000
	maxMessage     = 500
	maxCapacity    = 1_000_000
	maxUserKey     = 128 // bytes

	minRate, maxRate         = 0.01, 10_000.0
	minBurst, maxBurst       = 1, 10_000
	minTTL, maxTTL           = 1, 3600
	minOverbook, maxOverbook = 100, 200
)

// validUserKey tells whether a key can have been let in at the edge. One that
// cannot has no enrolments, and must not reach a statement.
func validUserKey(key string) bool {
	return key != "" && len(key) <= maxUserKey && utf8.ValidString(key) && !strings.ContainsFunc(key, unicode.IsControl)
}

func checkTitle(title string) error {
	if err := checkText("title", title, maxTitle, false); err != nil {
		return err
	}
	if strings.TrimSpace(title) == "" {
		return &InvalidError{Field: "title", Reason: "must not be blank"}
	}
	return nil
}

// checkText holds a text to a number of characters and to what can be stored
// and shown: no control characters, but for the ends of lines and tabs where
// there may be several lines.
func checkText(field, text string, most int, lines bool) error {
	if utf8.RuneCountInString(text) > most {
		return &InvalidError{Field: field, Reason: fmt.Sprintf("must be at most %d characters", most)}
	}
	control := func(r rune) bool {
		return unicode.IsControl(r) && !(lines && strings.ContainsRune("\n\r\t", r))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, control) {
		return &InvalidError{Field: field, Reason: "must be valid text without control characters"}
	}
	return nil
}

func checkOptionalText(field string, text *string, most int) error {
	if text == nil {
		return nil
	}
	return checkText(field, *text, most, true)
}

// checkRange refuses NaN as well, which is in no range.
func checkRange[N int | float64](field string, n, least, most N) error {
	if n >= least && n <= most {
		return nil
	}
	return &InvalidError{Field: field, Reason: fmt.Sprintf("must be between %v and %v", least, most)}
}

// checkHours holds the hours of a whole lecture, after a change to either.
func checkHours(opensAt, closesAt *time.Time) error {
	if opensAt != nil && closesAt != nil && !instant(*closesAt).After(instant(*opensAt)) {
		return &InvalidError{Field: "closesAt", Reason: "must be after opensAt"}
	}
	return nil
}

// checkGiven refuses null where a field has no null.
func checkGiven[T any](field string, o Optional[T], check func(T) error) error {
	switch {
	case !o.Set:
		return nil
	case o.Value == nil:
		return &InvalidError{Field: field, Reason: "must not be null"}
	}
	return check(*o.Value)
}

func (c SettingsChange) validate() error {
	checks := []error{
		checkGiven("settings.paused", c.Paused, func(bool) error { return nil }),
		checkGiven("settings.admitPerSecond", c.AdmitPerSecond, func(v float64) error {
			return checkRange("settings.admitPerSecond", v, minRate, maxRate)
		}),
		checkGiven("settings.burst", c.Burst, func(v int) error {
			return checkRange("settings.burst", v, minBurst, maxBurst)
		}),
		checkGiven("settings.ticketTtlSeconds", c.TicketTTLSeconds, func(v int) error {
			return checkRange("settings.ticketTtlSeconds", v, minTTL, maxTTL)
		}),
		checkGiven("settings.overbookPercent", c.OverbookPercent, func(v int) error {
			return checkRange("settings.overbookPercent", v, minOverbook, maxOverbook)
		}),
		checkOptionalText("settings.message", c.Message.Value, maxMessage),
	}
	return first(checks)
}

func (n NewLecture) validate() error {
	return first([]error{
		checkTitle(n.Title),
		checkOptionalText("description", n.Description, maxDescription),
		checkRange("capacity", n.Capacity, 0, maxCapacity),
		checkHours(n.OpensAt, n.ClosesAt),
		n.Settings.validate(),
	})
}

func (c LectureChange) validate() error {
	return first([]error{
		checkGiven("title", c.Title, checkTitle),
		checkOptionalText("description", c.Description.Value, maxDescription),
		checkGiven("capacity", c.Capacity, func(v int) error {
			return checkRange("capacity", v, 0, maxCapacity)
		}),
		c.Settings.validate(),
	})
}

// first is the first error of several checks.
func first(errs []error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
