package config

import (
	"fmt"
	"io"
	"strings"
)

const (
	nameWidth = 24
	lineWidth = 100
)

// writeManual prints what -h shows: every setting with its default, its meaning
// and what it takes. A terminal that goes away is nothing to report.
func writeManual(out io.Writer, settings []setting) {
	var b strings.Builder
	b.WriteString(`Seatline: a waiting line that knows the seats.

Usage: seatline [flags]

Settings are environment variables. A flag of the same name in lower case with dashes
wins over its variable: -max-body 1MiB over MAX_BODY. An empty variable is not set.
With no settings at all, Seatline runs on stores within the process, to try it out.

  -h                      show this
  -healthcheck            ask the server at ADDR whether it is ready, and exit with 0 or 1
`)
	group := ""
	for _, s := range settings {
		if s.group != group {
			group = s.group
			fmt.Fprintf(&b, "\n%s\n", group)
		}
		words := s.help
		if s.bounds != "" {
			words += " (" + s.bounds + ")"
		}
		if s.byDefault != "" {
			words += " [" + s.byDefault + "]"
		}
		for i, line := range wrap(words, lineWidth-nameWidth-2) {
			name := ""
			if i == 0 {
				name = s.name
			}
			fmt.Fprintf(&b, "  %-*s%s\n", nameWidth, name, line)
		}
	}
	_, _ = io.WriteString(out, b.String())
}

// wrap breaks text between words into lines of at most width letters.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
