package graph

import (
	"seatline/graph/generated"
	"seatline/internal/registrar"
)

func newLecture(in generated.CreateLectureInput) (registrar.NewLecture, error) {
	settings, err := settingsChange(in.Settings.Value(), false)
	return registrar.NewLecture{
		Title:       in.Title,
		Description: in.Description.Value(),
		Capacity:    in.Capacity,
		OpensAt:     in.OpensAt.Value(),
		ClosesAt:    in.ClosesAt.Value(),
		Settings:    settings,
	}, err
}

func lectureChange(in generated.UpdateLectureInput) (registrar.LectureChange, error) {
	settings, err := settingsChange(in.Settings.Value(), in.Settings.IsSet())
	return registrar.LectureChange{
		Title:       optional(in.Title),
		Description: optional(in.Description),
		Capacity:    optional(in.Capacity),
		OpensAt:     optional(in.OpensAt),
		ClosesAt:    optional(in.ClosesAt),
		Settings:    settings,
	}, err
}

// settingsChange reads the settings. null in their place is refused where it
// could be taken for "back to the defaults".
func settingsChange(in *generated.LineSettingsInput, refuseNull bool) (registrar.SettingsChange, error) {
	switch {
	case in == nil && refuseNull:
		return registrar.SettingsChange{}, &registrar.InvalidError{Field: "settings", Reason: "must not be null"}
	case in == nil:
		return registrar.SettingsChange{}, nil
	}
	return registrar.SettingsChange{
		Paused:           optional(in.Paused),
		AdmitPerSecond:   optional(in.AdmitPerSecond),
		Burst:            optional(in.Burst),
		TicketTTLSeconds: optional(in.TicketTTLSeconds),
		OverbookPercent:  optional(in.OverbookPercent),
		Message:          optional(in.Message),
	}, nil
}
