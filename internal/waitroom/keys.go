package waitroom

import (
	"strconv"
	"strings"
)

// activeKey is the set of lectures to tick: a cache (protocol.md rule 7).
const activeKey = "lectures:active"

// lineKeys are the keys of one lecture's line. All share the hash tag {L}, so
// a Redis Cluster keeps a lecture on one node and spreads lectures over nodes.
type lineKeys struct {
	lecture  string // HASH, the line's own state
	queue    string // ZSET, user → sequence
	tickets  string // ZSET, user → deadline ms
	claims   string // ZSET, user → claimUntil ms
	holds    string // HASH, user → "<seq> <deadline> <attempt|-> <claimUntil|0>"
	parked   string // ZSET, user → sequence
	seen     string // ZSET, user → last seen ms
	expired  string // ZSET, user → when ms (+0.5 where a parked place ran out)
	enrolled string // ZSET, user → seat_version of the commit
	changed  string // ZSET, user → change number
	mirrors  string // prefix of the ticket mirrors
}

func keysOf(id int) lineKeys {
	line := "lecture:{" + strconv.Itoa(id) + "}"
	return lineKeys{
		lecture:  line,
		queue:    "queue:" + line,
		tickets:  "tickets:" + line,
		claims:   "claims:" + line,
		holds:    "holds:" + line,
		parked:   "parked:" + line,
		seen:     "seen:" + line,
		expired:  "expired:" + line,
		enrolled: "enrolled:" + line,
		changed:  "changed:" + line,
		mirrors:  "admitted:" + line + ":user:",
	}
}

// mirror is the key that mirrors one ticket for people and redis-cli. Only the
// user is encoded.
func (k lineKeys) mirror(user string) string { return k.mirrors + encoded(user) }

// rateKey is the bucket of one who asks. Each has a hash tag of their own, so a
// Redis Cluster spreads them.
func rateKey(kind, who string) string { return "rate:{" + kind + ":" + encoded(who) + "}" }

// encoded writes every byte but A–Z a–z 0–9 . _ ~ - as %XX.
func encoded(s string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '~', c == '-':
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}
