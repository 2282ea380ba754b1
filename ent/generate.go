// Package ent is Seatline's data model. Only this file, schema/ and template/ are written by hand.
package ent

//go:generate go tool ent generate --feature sql/lock,sql/modifier,sql/execquery,sql/versioned-migration --template dir=./template ./schema
