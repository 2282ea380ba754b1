package graph

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
)

type addressKey struct{}

// addressOf is what limits per address count as one: an IPv4 address, or the
// /64 of an IPv6 one, all of which a single customer has. "" is not known.
func addressOf(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}

// proxies are those whose word on where a client is counts.
type proxies struct {
	trusted []netip.Prefix
	log     *slog.Logger
	hint    sync.Once
}

// middleware finds the client's address and puts it into the context, where
// sockets and their operations have it, too.
func (p *proxies) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), addressKey{}, grouped(p.client(r)))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// client is the last address on the way here that is not a proxy of ours. Each
// proxy adds the address it was called from at the end of X-Forwarded-For, so
// that list is read from its end, and not beyond the first hop that is not
// trusted: what stands before it is that hop's own word.
func (p *proxies) client(r *http.Request) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	at := peer.Addr().Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	if !p.trusts(at) {
		p.hintAt(at, hops)
		return at
	}
	for i := len(hops) - 1; i >= 0 && p.trusts(at); i-- {
		hop, ok := hopOf(hops[i])
		if !ok {
			break
		}
		at = hop
	}
	return at
}

func (p *proxies) trusts(a netip.Addr) bool {
	for _, network := range p.trusted {
		if network.Contains(a) {
			return true
		}
	}
	return false
}

// hintAt says once that there seems to be a proxy of which nobody told us: then
// all of its clients are counted as one.
func (p *proxies) hintAt(peer netip.Addr, hops []string) {
	if hops[0] == "" || !peer.IsPrivate() && !peer.IsLoopback() {
		return
	}
	p.hint.Do(func() {
		p.log.Warn("requests come through a proxy that TRUSTED_PROXIES does not name; its clients are counted as one address", "proxy", peer.String())
	})
}

// hopOf reads an entry of X-Forwarded-For, with or without a port.
func hopOf(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if a, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return a.Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddrPort(s)
	return a.Addr().Unmap().WithZone(""), err == nil
}

func grouped(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().String()
	}
	return a.String()
}
