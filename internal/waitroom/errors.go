package waitroom

import (
	"context"
	"errors"
	"fmt"

	"seatline/internal/lecture"
)

// unavailable marks an error of Redis as safe to retry: every script is safe
// to run twice. The end of the caller's own context is not Redis's fault.
func unavailable(op string, err error) error {
	if errors.Is(err, context.Canceled) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s: %w: %w", op, lecture.ErrUnavailable, err)
}

func isNotFound(err error) bool { return errors.Is(err, lecture.ErrNotFound) }
