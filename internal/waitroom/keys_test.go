package waitroom

import (
	"net/url"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	k := keysOf(7)
	for _, tc := range []struct{ got, want string }{
		{k.lecture, "lecture:{7}"},
		{k.queue, "queue:lecture:{7}"},
		{k.tickets, "tickets:lecture:{7}"},
		{k.claims, "claims:lecture:{7}"},
		{k.holds, "holds:lecture:{7}"},
		{k.parked, "parked:lecture:{7}"},
		{k.seen, "seen:lecture:{7}"},
		{k.expired, "expired:lecture:{7}"},
		{k.enrolled, "enrolled:lecture:{7}"},
		{k.changed, "changed:lecture:{7}"},
		{k.mirror("kim-1.a_b~c"), "admitted:lecture:{7}:user:kim-1.a_b~c"},
		{k.mirror("a:b{c} %"), "admitted:lecture:{7}:user:a%3Ab%7Bc%7D%20%25"},
		{k.mirror("서울"), "admitted:lecture:{7}:user:%EC%84%9C%EC%9A%B8"},
		{activeKey, "lectures:active"},
		{rateKey("person", "kim-1"), "rate:{person:kim-1}"},
		{rateKey("address", "2001:db8::/64"), "rate:{address:2001%3Adb8%3A%3A%2F64}"},
		{rateKey("person", "}:lecture:{1}"), "rate:{person:%7D%3Alecture%3A%7B1%7D}"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
	}
}

// FuzzUserInKeys: two people never share a key, and no name is read as another
// part of one.
func FuzzUserInKeys(f *testing.F) {
	for _, user := range []string{"kim", "kim ", "a:b{c} %", "%41", "}:lecture:{1}", "서울", "\x00", "\xed\xa0\x80", "+", "%", ""} {
		f.Add(user)
	}
	f.Fuzz(func(t *testing.T, user string) {
		for prefix, key := range map[string]string{"admitted:lecture:{7}:user:": keysOf(7).mirror(user), "rate:{person:": rateKey("person", user)} {
			name, ok := strings.CutPrefix(key, prefix)
			name = strings.TrimSuffix(name, "}")
			if back, err := url.PathUnescape(name); !ok || err != nil || back != user || strings.ContainsAny(name, "{}: \n") {
				t.Errorf("%q becomes %q", user, key)
			}
		}
	})
}
