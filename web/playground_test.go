package web

import (
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html"
	"io/fs"
	"net/http"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// allAssets has a file for each asset that the playground wants.
func allAssets(t *testing.T, content []byte) fstest.MapFS {
	t.Helper()
	wanted, err := readAssets()
	if err != nil {
		t.Fatal(err)
	}
	all := fstest.MapFS{".gitignore": {Data: []byte("*")}}
	for _, a := range wanted {
		all[path.Base(a.Path)] = &fstest.MapFile{Data: content}
	}
	return all
}

var assetTag = regexp.MustCompile(`<(?:link rel="stylesheet"|script defer) (?:href|src)="([^"]+)" integrity="([^"]+)" crossorigin="anonymous">`)

func TestPlaygroundFromTheBinary(t *testing.T) {
	s, _ := serveTree(t, tree(), allAssets(t, []byte("GraphiQL")))
	page := s.get("/playground")
	checkPolicy(t, "/playground", page.Header)
	if strings.Contains(string(page.body), "//") || strings.Contains(page.Header.Get("Content-Security-Policy"), "//") {
		t.Errorf("names another server: %s\n%s", page.Header.Get("Content-Security-Policy"), page.body)
	}
	if !strings.Contains(string(page.body), "GraphiQL from this binary") {
		t.Errorf("does not say where it is from: %s", page.body)
	}
	if at := inlineScript.Find(page.body); at != nil {
		t.Errorf("inline %s", at)
	}
	tags := assetTag.FindAllStringSubmatch(string(page.body), -1)
	if len(tags) != 4 {
		t.Fatalf("loads %v of\n%s", tags, page.body)
	}
	for _, tag := range tags {
		got := s.get(tag[1])
		if got.StatusCode != http.StatusOK || string(got.body) != "GraphiQL" || !strings.Contains(got.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %s, Cache-Control: %s", tag[1], got.Status, got.Header.Get("Cache-Control"))
		}
		if want := contentTypes[path.Ext(tag[1])]; got.Header.Get("Content-Type") != want {
			t.Errorf("%s is %s", tag[1], got.Header.Get("Content-Type"))
		}
	}
	for _, m := range loaded.FindAllSubmatch(page.body, -1) {
		if address := string(m[1]); address != "/favicon.svg" && s.get(address).StatusCode != http.StatusOK {
			t.Errorf("there is no %s", address)
		}
	}
}

func TestPlaygroundFromTheCDN(t *testing.T) {
	some := allAssets(t, []byte("GraphiQL"))
	delete(some, "graphiql.min.js")
	for name, assets := range map[string]fs.FS{"no assets": fstest.MapFS{".gitignore": {}}, "some assets": some} {
		t.Run(name, func(t *testing.T) {
			s, _ := serveTree(t, tree(), assets)
			page := s.get("/playground")
			policy := page.Header.Get("Content-Security-Policy")
			checkPolicy(t, "/playground", page.Header)
			if !strings.Contains(string(page.body), "GraphiQL from cdn.jsdelivr.net, held to its hashes") {
				t.Errorf("does not say where it is from: %s", page.body)
			}
			tags := assetTag.FindAllStringSubmatch(string(page.body), -1)
			if len(tags) != 4 {
				t.Fatalf("loads %v of\n%s", tags, page.body)
			}
			wanted, err := readAssets()
			if err != nil {
				t.Fatal(err)
			}
			hashes := map[string]string{}
			for _, a := range wanted {
				hashes[cdn+a.Package+"@"+a.Version+"/"+a.Path] = a.Integrity
			}
			for _, tag := range tags {
				if hash := html.UnescapeString(tag[2]); hashes[tag[1]] != hash || !strings.HasPrefix(hash, "sha384-") {
					t.Errorf("%s with %s, not %s", tag[1], hash, hashes[tag[1]])
				}
				directive := "script-src"
				if path.Ext(tag[1]) == ".css" {
					directive = "style-src"
				}
				_, rest, _ := strings.Cut(policy, directive)
				if allowed, _, _ := strings.Cut(rest, ";"); !strings.Contains(allowed, " "+tag[1]) {
					t.Errorf("%s is not allowed by %s", tag[1], policy)
				}
			}
			if strings.Count(policy, "https://") != 4 {
				t.Errorf("allows more than that: %s", policy)
			}
		})
	}
}

func TestPlaygroundIsOneOfTheTwo(t *testing.T) {
	s := serve(t, Handler())
	body := string(s.get("/playground").body)
	if strings.Contains(body, "GraphiQL from this binary") == strings.Contains(body, "GraphiQL from cdn.jsdelivr.net") {
		t.Error(body)
	}
	if other := string(s.get("/playground/").body); other != body {
		t.Error("/playground/ is another page")
	}
}

// Versions are in three places; a package that is updated in one of them only
// would not load.
func TestAssetsAreThoseOfTheLockFile(t *testing.T) {
	content, err := os.ReadFile("playground/package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version, Resolved string
			Dependencies      map[string]string
		}
	}
	if err := json.Unmarshal(content, &lock); err != nil {
		t.Fatal(err)
	}
	wanted, err := readAssets()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range wanted {
		if locked := lock.Packages["node_modules/"+a.Package].Version; locked != a.Version || lock.Packages[""].Dependencies[a.Package] != a.Version {
			t.Errorf("%s %s, locked %s, wanted %s", a.Package, a.Version, locked, lock.Packages[""].Dependencies[a.Package])
		}
		if embedded, err := fs.ReadFile(embeddedAssets, "assets/"+path.Base(a.Path)); !errors.Is(err, fs.ErrNotExist) {
			sum := sha512.Sum384(embedded)
			if hash := "sha384-" + base64.StdEncoding.EncodeToString(sum[:]); err != nil || hash != a.Integrity {
				t.Errorf("web/assets has a %s with %s: run make assets", a.Path, hash)
			}
		}
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("%s is bound to %s", name, p.Resolved)
		}
	}
}
