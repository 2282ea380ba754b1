// Package registrar keeps the seats.
package registrar
