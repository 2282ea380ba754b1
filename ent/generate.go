// Package ent is Seatline's data model. Only this file and schema/ are written by hand.
package ent

//go:generate go tool ent generate --feature sql/lock,sql/modifier,sql/execquery,sql/versioned-migration ./schema
