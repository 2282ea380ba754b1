package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// website is a handler behind a real server.
type website struct {
	*testing.T
	url string
}

func serve(t *testing.T, h http.Handler) website {
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return website{t, server.URL}
}

// reply is an answer with its body read, compressed or not as it came.
type reply struct {
	*http.Response
	body []byte
}

// do sends a request with the header's lines, "Name: value".
func (s website) do(method, address string, lines ...string) reply {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+address, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Add(name, value)
	}
	client := &http.Transport{DisableCompression: true}
	defer client.CloseIdleConnections()
	response, err := client.RoundTrip(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{response, body}
}

// get is what a browser's GET gives, decompressed.
func (s website) get(address string) reply {
	s.Helper()
	got := s.do("GET", address, "Accept-Encoding: gzip, deflate, br, zstd")
	if got.Header.Get("Content-Encoding") == "gzip" {
		got.body = gunzip(s.T, got.body)
	}
	return got
}

func gunzip(t *testing.T, body []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// tree is a small site; what is in it is what the tests below change.
func tree() fstest.MapFS {
	return fstest.MapFS{
		"index.html": {Data: []byte(`<!doctype html><title>x</title><link rel="stylesheet" href="style.css"><script type="module" src="/app/main.js"></script>
<img src="https://elsewhere.example/x.png"><a href="sdk.js">the SDK</a><code>&lt;script src="sdk.js"&gt;</code><link rel="next" href="manual.html">` + strings.Repeat("words ", 100))},
		"manual.html":     {Data: []byte(`<script type="module" src="sdk.js"></script>`)},
		"help/index.html": {Data: []byte(`<link href="../style.css"><script src="help.js"></script>`)},
		"help/help.js":    {Data: []byte("export {}")},
		"app/main.js":     {Data: []byte(strings.Repeat("import '../sdk.js';\n", 50))},
		"sdk.js":          {Data: []byte(strings.Repeat("export const x = 1;\n", 50))},
		"sdk.d.ts":        {Data: []byte("export declare const x: number;")},
		"style.css":       {Data: []byte("body { color: red }")},
	}
}

func serveTree(t *testing.T, tree, assets fs.FS) (website, *handler) {
	t.Helper()
	h, err := newHandler(tree, assets)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, h), h
}

func TestEveryFileIsServed(t *testing.T) {
	s := serve(t, Handler())
	sources, err := readAll(sub(t, static, "static"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		got := s.get("/" + source.name)
		if got.StatusCode != http.StatusOK || got.Header.Get("Content-Type") != contentTypes[path.Ext(source.name)] {
			t.Errorf("%s: %s, of type %q", source.name, got.Status, got.Header.Get("Content-Type"))
		}
		if !source.isPage() && !bytes.Equal(got.body, source.content) {
			t.Errorf("%s: another content", source.name)
		}
		if cache := got.Header.Get("Cache-Control"); cache != "no-cache" {
			t.Errorf("%s: Cache-Control: %s", source.name, cache)
		}
	}
	for _, name := range []string{"/sdk.js", "/sdk.d.ts"} {
		if origin := s.get(name).Header.Get("Access-Control-Allow-Origin"); origin != "*" {
			t.Errorf("%s is for pages of %q", name, origin)
		}
	}
	if origin := s.get("/").Header.Get("Access-Control-Allow-Origin"); origin != "" {
		t.Errorf("the app is for pages of %q", origin)
	}
}

var (
	loaded     = regexp.MustCompile(`<(?:link|script|img)\b[^>]*?\b(?:href|src)="([^"]+)"`)
	imported   = regexp.MustCompile(`(?m)^(?:import|export)\b[^'"]*?\bfrom '([^']+)'|^import '([^']+)'`)
	importedOn = regexp.MustCompile(`\bimport\('([^']+)'\)`) // when somebody asks for it
)

// Everything that a browser loads to show the app has an address that changes with
// its content, and there is little enough of it for ten thousand phones at once.
func TestFirstLoad(t *testing.T) {
	s := serve(t, Handler())
	page := s.get("/")
	content, all := 0, 0 // without and with what HTTP/1.1 says of each file
	count := func(address string) {
		got := s.do("GET", address, "Accept-Encoding: gzip")
		var header bytes.Buffer
		if err := got.Header.Write(&header); err != nil {
			t.Fatal(err)
		}
		content += len(got.body)
		all += len(got.body) + header.Len() + len("HTTP/1.1 200 OK\r\n\r\n")
	}
	count("/")
	var visit func(address string, counted bool)
	seen := map[string]bool{}
	visit = func(address string, counted bool) {
		if seen[address] {
			return
		}
		seen[address] = true
		got := s.get(address)
		if got.StatusCode != http.StatusOK || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, Cache-Control: %s", address, got.Status, got.Header.Get("Cache-Control"))
		}
		if counted {
			count(address)
		}
		if path.Ext(address) != ".js" {
			return
		}
		for _, m := range imported.FindAllSubmatch(got.body, -1) {
			visit(path.Join(path.Dir(address), string(m[1])+string(m[2])), counted)
		}
		for _, m := range importedOn.FindAllSubmatch(got.body, -1) {
			visit(path.Join(path.Dir(address), string(m[1])), false)
		}
	}
	for _, m := range loaded.FindAllSubmatch(page.body, -1) {
		visit(string(m[1]), true)
	}
	if len(seen) < 5 {
		t.Errorf("only %v is loaded", seen)
	}
	t.Logf("first load: %d files, %.1f KB, and with headers %.1f KB", len(seen)+1, float64(content)/1024, float64(all)/1024)
	if all > 60<<10 {
		t.Errorf("a first load of %d bytes", all)
	}
}

func TestMethods(t *testing.T) {
	s, h := serveTree(t, tree(), fstest.MapFS{})
	for _, address := range []string{"/", "/sdk.js", "/playground", h.site.address("sdk.js"), "/none"} {
		get := s.do("GET", address, "Accept-Encoding: gzip")
		head := s.do("HEAD", address, "Accept-Encoding: gzip")
		if len(head.body) > 0 || head.StatusCode != get.StatusCode {
			t.Errorf("HEAD %s: %s, %d bytes", address, head.Status, len(head.body))
		}
		get.Header.Del("Date")
		head.Header.Del("Date")
		if fmt.Sprint(get.Header) != fmt.Sprint(head.Header) {
			t.Errorf("HEAD %s: %v\nGET: %v", address, head.Header, get.Header)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"} {
		if got := s.do(method, "/"); got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %s, Allow: %s", method, got.Status, got.Header.Get("Allow"))
		}
	}
}

// As it is sent, a path may be anything; what there is are files by exact names.
func TestUnknownPaths(t *testing.T) {
	s, h := serveTree(t, tree(), fstest.MapFS{"react.production.min.js": {Data: []byte("x")}})
	for _, address := range []string{
		"/none", "/index", "/index.html/", "/sdk.js/", "/SDK.js", "/app", "/app/", "/help", "/static", "/static/", "/static/app/main.js",
		"/../web.go", "/app/../../web.go", "/%2e%2e/web.go", "/..%2fweb.go", "/app/..%5c..%5cweb.go", "/./sdk.js", "//sdk.js", "/app//main.js",
		"/static/" + h.site.hash, "/static/" + h.site.hash + "/", "/static/" + h.site.hash + "/../../web.go", "/static/" + h.site.hash + "/%2e%2e/web.go",
		"/sdk.js%00", "/sdk.js%00.html", "/etc/passwd", "/playground/page.html", "/playground/package.json", "/playground/assets.json",
		"/playground/../web.go", "/playground/node_modules/", "/assets/.gitignore", "/playground/react.production.min.js", "/%ff",
	} {
		if got := s.raw(address); got.StatusCode != http.StatusNotFound || got.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %s %v", address, got.Status, got.Header)
		}
	}
	if got := s.raw("/sdk.js?v=1"); got.StatusCode != http.StatusOK {
		t.Errorf("with a query: %s", got.Status)
	}
}

// raw sends an address as it stands, which no client would.
func (s website) raw(address string) reply {
	s.Helper()
	conn, err := new(net.Dialer).DialContext(s.Context(), "tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", address); err != nil {
		s.Fatal(err)
	}
	got, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	body, err := io.ReadAll(got.Body)
	if err != nil {
		s.Fatal(err)
	}
	return reply{got, body}
}

var (
	inlineScript = regexp.MustCompile(`(?i)<script\b(?:[^>]*>\s*[^<\s]|[^>s]*>)|\son[a-z]+\s*=|\sstyle\s*=|<style\b|="\s*javascript:`)
	external     = regexp.MustCompile(`(?i)(?:src|href)="(?:https?:)?//`)
)

func TestNothingInlineAndNothingFromElsewhere(t *testing.T) {
	s := serve(t, Handler())
	for _, address := range pages(t) {
		got := s.get(address)
		if at := inlineScript.Find(got.body); at != nil {
			t.Errorf("%s: inline %s", address, at)
		}
		if at := external.Find(got.body); at != nil {
			t.Errorf("%s: loads or links %s", address, at)
		}
		checkPolicy(t, address, got.Header)
	}
	checkPolicy(t, "a page that is still good", s.do("GET", "/", "If-None-Match: *").Header)
	for _, h := range []reply{s.get("/none"), s.do("POST", "/"), s.get("/sdk.js"), s.get("/favicon.svg")} {
		if h.Header.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'" || h.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", h.Status, h.Header)
		}
	}
	for _, bad := range []string{`<script>x</script>`, `<p onclick = "x">`, `<p style="x">`, `<script src="x">x</script>`} {
		if !inlineScript.MatchString(bad) {
			t.Errorf("this test does not see %s", bad)
		}
	}
}

// pages are the addresses of the HTML in static.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"/"}
	sources, err := readAll(sub(t, static, "static"))
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		if source.isPage() {
			all = append(all, "/"+source.name)
		}
	}
	return all
}

func checkPolicy(t *testing.T, what string, h http.Header) {
	t.Helper()
	policy := h.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'; ", "base-uri 'none'", "frame-ancestors 'none'", "form-action ", "connect-src 'self';"} {
		if !strings.Contains(policy, want) {
			t.Errorf("%s: no %q in %s", what, want, policy)
		}
	}
	for _, bad := range []string{"unsafe", "*", " https:;", " https: ", " http:", " ws", "blob:", "script-src 'self' data:"} {
		if strings.Contains(policy, bad) {
			t.Errorf("%s: %q in %s", what, bad, policy)
		}
	}
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || !strings.Contains(h.Get("Permissions-Policy"), "camera=()") {
		t.Errorf("%s: %v", what, h)
	}
}

func sub(t testing.TB, files fs.FS, folder string) fs.FS {
	t.Helper()
	f, err := fs.Sub(files, folder)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkHandler is what making everything ready adds to a start.
func BenchmarkHandler(b *testing.B) {
	for b.Loop() {
		Handler()
	}
}
