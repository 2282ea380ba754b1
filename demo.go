package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"seatline/internal/registrar"
)

// createDemo creates three lectures in a database that has none: one that is
// open, one that opens while one looks on, and one with hardly any seats.
func createDemo(ctx context.Context, reg *registrar.Registrar) error {
	n, err := reg.CountLectures(ctx, "")
	if err != nil || n > 0 {
		return err
	}
	text := func(s string) *string { return &s }
	soon := time.Now().Add(3 * time.Minute).Truncate(time.Second)
	for _, l := range []registrar.NewLecture{
		{
			Title:       "알고리즘 입문 · Introduction to Algorithms",
			Description: text("Open now, with seats for everybody who tries this out."),
			Capacity:    40,
		},
		{
			Title:       "현대 시 읽기 · Reading Modern Poetry",
			Description: text("Opens a few minutes after the server started: join, and see the line begin to move."),
			Capacity:    30,
			OpensAt:     &soon,
			Settings:    registrar.SettingsChange{Message: registrar.Some("곧 시작합니다 · We are about to open.")},
		},
		{
			Title:       "도예 실습 · Pottery Workshop",
			Description: text("Two seats. Whoever comes third waits for one to come back."),
			Capacity:    2,
			Settings: registrar.SettingsChange{
				AdmitPerSecond: registrar.Some(0.5), Burst: registrar.Some(1), TicketTTLSeconds: registrar.Some(60),
			},
		},
	} {
		if _, err := reg.Create(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// greet says what there is to open. The operator's link is for whoever started
// a server to try it out; a real one hands out no rights.
func (p *program) greet(who *identity) {
	home := "http://" + reachable(p.listener.Addr())
	var b strings.Builder
	row := func(name, text string) { fmt.Fprintf(&b, "  %-12s %s\n", name, text) }
	b.WriteString("Seatline is ready.\n")
	row("Web", home+"/")
	row("Playground", home+"/playground")
	row("GraphQL", home+"/graphql (also "+strings.Replace(home, "http", "ws", 1)+"/graphql)")
	if who.guests != nil {
		row("Guests", `sign in with mutation { startSession(name: "…") { token } }`)
	}
	if p.cfg.Embedded() && who.issuer != nil {
		if token, viewer, err := who.issuer.OperatorToken(); err == nil {
			row("Operator", home+"/#token="+token)
			row("", home+"/playground#token="+token)
			row("", "good until "+viewer.ExpiresAt.Local().Format(time.DateTime))
		}
	}
	if p.cfg.Embedded() {
		kept := "in " + p.cfg.DataDir
		if p.cfg.DataDir == "" {
			kept = "nowhere for long: they are gone when the program ends"
		}
		row("Seats", "kept "+kept)
	}
	fmt.Fprint(p.stdout, b.String())
	p.log.Info("ready", "addr", p.listener.Addr().String(), "embedded", p.cfg.Embedded())
}

// reachable is an address that a browser on this machine understands.
func reachable(addr net.Addr) string {
	host, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return addr.String()
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	return net.JoinHostPort(host, port)
}
