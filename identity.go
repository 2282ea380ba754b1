package main

import (
	"context"

	"seatline/internal/auth"
)

// identity is who may sign in, and how.
type identity struct {
	verifier *auth.Verifier
	issuer   *auth.Guests    // nil: no tokens are given out here
	guests   *auth.Guests    // nil: guest sessions are not enabled
	keys     *auth.KeyServer // nil: none is configured
}

// identify waits for the key server, where there is one, as for a store: for
// START_TIMEOUT at most. Without a key no token could be judged, and a wrong URL
// is better found when somebody looks.
func (p *program) identify(ctx context.Context) (*identity, error) {
	c := p.cfg
	who := &identity{}
	tokens := auth.Options{Secret: []byte(c.JWTSecret), Issuer: c.JWTIssuer, Audience: c.JWTAudience, OperatorClaim: c.OperatorClaim}
	var err error
	if c.JWKSURL != "" {
		who.keys, err = auth.NewKeyServer(auth.KeyServerOptions{
			URL: c.JWKSURL, AllowHTTP: c.JWKSAllowHTTP, Refresh: c.JWKSRefresh, MaxStale: c.JWKSMaxStale, Log: p.log,
		})
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, c.StartTimeout)
		defer cancel()
		if err := persist(ctx, p.log, "JWKS_URL", "the key server", who.keys.Fetch); err != nil {
			return nil, err
		}
		tokens.Keys = who.keys
	}
	if who.verifier, err = auth.NewVerifier(tokens); err != nil {
		return nil, err
	}
	if c.JWTSecret != "" && (c.GuestSessions || c.Embedded()) {
		if who.issuer, err = auth.NewGuests(tokens); err != nil {
			return nil, err
		}
	}
	if c.GuestSessions {
		who.guests = who.issuer
	}
	return who, nil
}

// run keeps the keys fresh until ctx ends.
func (w *identity) run(ctx context.Context) error {
	if w.keys == nil {
		return nil
	}
	return w.keys.Run(ctx)
}
