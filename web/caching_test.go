package web

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

func TestPagesNameWhatNeverChanges(t *testing.T) {
	s, h := serveTree(t, tree(), fstest.MapFS{})
	at := "/static/" + h.site.hash
	for address, wants := range map[string][]string{
		"/": {
			`href="` + at + `/style.css"`, `src="` + at + `/app/main.js"`, `src="https://elsewhere.example/x.png"`,
			`<a href="sdk.js">`, `&lt;script src="sdk.js"&gt;`, `href="manual.html"`,
		},
		"/manual.html": {`src="` + at + `/sdk.js"`},
		"/help/":       {`href="` + at + `/style.css"`, `src="` + at + `/help/help.js"`},
	} {
		got := s.get(address)
		for _, want := range wants {
			if !bytes.Contains(got.body, []byte(want)) {
				t.Errorf("%s: no %s in\n%s", address, want, got.body)
			}
		}
	}
}

// While instances of two builds are running, either may be asked for what a page
// of the other names.
func TestAnotherBuild(t *testing.T) {
	before, h := serveTree(t, tree(), fstest.MapFS{})
	changed := tree()
	changed["app/main.js"] = &fstest.MapFile{Data: []byte("import '../sdk.js'; // changed")}
	after, h2 := serveTree(t, changed, fstest.MapFS{})
	if h.site.hash == h2.site.hash {
		t.Fatal("another content has the same address")
	}
	if a, b := before.get("/").Header.Get("ETag"), after.get("/").Header.Get("ETag"); a == b {
		t.Error("the page that names it has the same ETag")
	}
	if a, b := before.get("/sdk.js").Header.Get("ETag"), after.get("/sdk.js").Header.Get("ETag"); a != b {
		t.Error("a file that did not change has another ETag")
	}
	got := after.get(h.site.address("app/main.js"))
	if got.StatusCode != http.StatusOK || !bytes.Contains(got.body, []byte("changed")) || got.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("what the older page names: %s %q, Cache-Control: %s", got.Status, got.body, got.Header.Get("Cache-Control"))
	}
	for _, address := range []string{
		h.site.address("app/none.js"), h.site.address("index.html"), h.site.address(""), h2.site.address("index.html"),
		"/static/xyz/app/main.js", "/static/0123456789abcde/app/main.js", "/static/g123456789abcdef/app/main.js",
	} {
		if got := after.get(address); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", address, got.Status)
		}
	}
}

func TestRevalidation(t *testing.T) {
	s, h := serveTree(t, tree(), fstest.MapFS{})
	for _, address := range []string{"/", "/sdk.js", "/playground", h.site.address("app/main.js")} {
		plain := s.do("GET", address)
		small := s.do("GET", address, "Accept-Encoding: gzip")
		plainTag, smallTag := plain.Header.Get("ETag"), small.Header.Get("ETag")
		if plainTag == smallTag || !strings.HasPrefix(plainTag, `"`) || !strings.HasPrefix(smallTag, `"`) {
			t.Errorf("%s: ETag %s, compressed %s", address, plainTag, smallTag)
		}
		for _, c := range []struct {
			name  string
			lines []string
			want  int
		}{
			{"the same", []string{"If-None-Match: " + plainTag}, 304},
			{"the same, compressed", []string{"If-None-Match: " + smallTag, "Accept-Encoding: gzip"}, 304},
			{"weakened by a proxy", []string{"If-None-Match: W/" + smallTag, "Accept-Encoding: gzip"}, 304},
			{"one of several", []string{`If-None-Match: "a", "b", ` + plainTag}, 304},
			{"any", []string{"If-None-Match: *"}, 304},
			{"another", []string{`If-None-Match: "another"`}, 200},
			{"the other encoding's", []string{"If-None-Match: " + plainTag, "Accept-Encoding: gzip"}, 200},
			{"nonsense", []string{"If-None-Match: " + strings.Trim(plainTag, `"`)}, 200},
		} {
			got := s.do("GET", address, c.lines...)
			if got.StatusCode != c.want {
				t.Errorf("%s, %s: %s", address, c.name, got.Status)
			}
			if c.want != http.StatusNotModified {
				continue
			}
			for _, name := range []string{"ETag", "Cache-Control", "Vary", "Content-Security-Policy"} {
				if got.Header.Get(name) == "" {
					t.Errorf("%s, %s: a 304 without %s", address, c.name, name)
				}
			}
			if len(got.body) > 0 {
				t.Errorf("%s, %s: a 304 with %d bytes", address, c.name, len(got.body))
			}
		}
	}
}

func TestCompression(t *testing.T) {
	s, _ := serveTree(t, tree(), fstest.MapFS{})
	want := tree()["app/main.js"].Data
	for accept, gzipped := range map[string]bool{
		"":                             false,
		"gzip":                         true,
		"GZIP":                         true,
		"x-gzip":                       true,
		"deflate, gzip;q=1.0, *;q=0.5": true,
		"br, gzip ; q=0.1":             true,
		"*":                            true,
		"*;q=0":                        false,
		"gzip;q=0":                     false,
		"gzip;q=0.000, *":              false,
		"gzip;q=x":                     false,
		"identity":                     false,
		"br":                           false,
		"gzipped":                      false,
		",;,q=1":                       false,
	} {
		got := s.do("GET", "/app/main.js", "Accept-Encoding: "+accept)
		if (got.Header.Get("Content-Encoding") == "gzip") != gzipped {
			t.Errorf("%q: Content-Encoding: %s", accept, got.Header.Get("Content-Encoding"))
		}
		body := got.body
		if got.Header.Get("Content-Length") != strconv.Itoa(len(body)) || got.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %d bytes, %v", accept, len(body), got.Header)
		}
		if gzipped {
			if len(body) >= len(want) {
				t.Errorf("%q: %d bytes of %d", accept, len(body), len(want))
			}
			body = gunzip(t, body)
		}
		if !bytes.Equal(body, want) {
			t.Errorf("%q: another content", accept)
		}
	}
	if got := s.do("GET", "/style.css", "Accept-Encoding: gzip"); got.Header.Get("Content-Encoding") != "" {
		t.Error("what compression makes larger is compressed")
	}
}

// What is compressed when it is first asked for is compressed once, whoever asks.
func TestManyAtOnce(t *testing.T) {
	content := bytes.Repeat([]byte("react, react, "), 20_000)
	s, _ := serveTree(t, tree(), allAssets(t, content))
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			got := s.do("GET", "/playground/react@18.2.0/react.production.min.js", "Accept-Encoding: gzip")
			if !bytes.Equal(gunzip(s.T, got.body), content) {
				s.Error("another content")
			}
		})
	}
	wg.Wait()
}
