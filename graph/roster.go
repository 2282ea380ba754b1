package graph

import (
	"encoding/csv"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"seatline/ent"
	"seatline/internal/registrar"
)

// roster is GET /lectures/{id}/enrollments.csv: a lecture's roster for a
// spreadsheet, RFC 4180, read and sent in pieces. ?includeCancelled=true adds
// cancelled enrolments, ?bom=true begins with a byte order mark, without which
// some spreadsheets take UTF-8 for something else.
type roster struct {
	seats     *registrar.Seats
	writeTime time.Duration
	log       *slog.Logger
}

func (h roster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	id, err := operated(ctx, r.PathValue("id"))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	query := r.URL.Query()
	out := &rosterWriter{w: w, id: id, bom: query.Get("bom") == "true", control: http.NewResponseController(w), within: h.writeTime}
	err = h.seats.EachOfRoster(ctx, id, query.Get("includeCancelled") == "true", out.row)
	switch {
	case err != nil && !out.begun:
		h.refuse(w, r, err)
	case err != nil:
		// The status is gone. A reply that breaks off is the only way left to
		// say that this is not the whole roster.
		problemOf(err).log(ctx, h.log, err)
		panic(http.ErrAbortHandler)
	default:
		out.begin()
		out.csv.Flush()
	}
}

func (h roster) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	p.log(r.Context(), h.log, err)
	if p.retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retry/time.Second)))
	}
	shown := &gqlerror.Error{Message: p.text, Extensions: p.extensions(r.Context())}
	w.Header().Set("Cache-Control", "no-store")
	writeJSON(w, p.status, typeJSON, requestResponse{Errors: gqlerror.List{shown}})
}

type rosterWriter struct {
	w       http.ResponseWriter
	control *http.ResponseController
	within  time.Duration
	csv     *csv.Writer
	id      int
	bom     bool
	begun   bool
}

// begin writes what comes before the first row, once.
func (o *rosterWriter) begin() {
	if o.begun {
		return
	}
	o.begun = true
	h := o.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="lecture-%d-enrollments.csv"`, o.id))
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if o.bom {
		_, _ = o.w.Write([]byte("\ufeff"))
	}
	o.csv = csv.NewWriter(o.w)
	o.csv.UseCRLF = true
	_ = o.csv.Write([]string{"number", "user_key", "enrolled_at", "cancelled_at", "receipt_id"})
}

func (o *rosterWriter) row(e *ent.Enrollment) error {
	o.begin()
	_ = o.control.SetWriteDeadline(time.Now().Add(o.within))
	cancelled := ""
	if e.CancelledAt != nil {
		cancelled = e.CancelledAt.UTC().Format(time.RFC3339Nano)
	}
	return o.csv.Write([]string{
		strconv.Itoa(e.Number), plainCell(e.UserKey), e.CreatedAt.UTC().Format(time.RFC3339Nano), cancelled, e.ID.String(),
	})
}

// plainCell keeps a spreadsheet from running a cell as a formula: people choose
// their keys, operators open the file.
func plainCell(s string) string {
	if strings.IndexAny(strings.TrimLeftFunc(s, unicode.IsSpace), "=+-@＝＋－＠") == 0 || strings.ContainsAny(s, "\t\r\n") {
		return "'" + s
	}
	return s
}
