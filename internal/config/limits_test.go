package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestTrustedProxies(t *testing.T) {
	for text, want := range map[string][]string{
		"":                              nil,
		"10.0.0.1":                      {"10.0.0.1/32"},
		"10.1.2.3/8":                    {"10.0.0.0/8"},
		" 10.0.0.0/8 , 192.168.0.0/16 ": {"10.0.0.0/8", "192.168.0.0/16"},
		"::1,fd00::/8":                  {"::1/128", "fd00::/8"},
	} {
		var got []string
		for _, p := range load(t, env{"TRUSTED_PROXIES": text}).TrustedProxies {
			got = append(got, p.String())
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{
		"proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0", "10.0.0.1,", ",", "0.0.0.0/0", "::/0", "10.0.0.1:80", "fe80::1%eth0", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104",
	} {
		_, err := Load(nil, env{"TRUSTED_PROXIES": bad}.lookup, t.Output())
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("TRUSTED_PROXIES: %q is not addresses or ranges", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestBurstsAreSecondsWorth(t *testing.T) {
	for _, tc := range []struct {
		env  env
		want string
	}{
		{env{"RATE_PER_PERSON": "-1"}, `RATE_PER_PERSON: "-1" is not 0 to 100000`},
		{env{"BURST_PER_PERSON": "49"}, `BURST_PER_PERSON: "49" is less than RATE_PER_PERSON, "50"`},
		{env{"RATE_PER_ADDRESS": "3000"}, `BURST_PER_ADDRESS: "2000" is less than RATE_PER_ADDRESS, "3000"`},
	} {
		if _, err := Load(nil, tc.env.lookup, t.Output()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v; want %s", tc.env, err, tc.want)
		}
	}
	if c := load(t, env{"RATE_PER_PERSON": "0", "BURST_PER_PERSON": "1"}); c.RatePerPerson != 0 {
		t.Error("the limit is not lifted")
	}
}
