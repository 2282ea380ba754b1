package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"strings"
)

var (
	//go:embed playground/page.html playground/playground.js playground/examples.js playground/playground.css playground/assets.json
	playgroundFiles embed.FS

	// embeddedAssets has what `make assets` found in npm's packages: all that
	// assets.json names, or nothing.
	//
	//go:embed all:assets
	embeddedAssets embed.FS
)

// cdn serves the files of npm's packages.
const cdn = "https://cdn.jsdelivr.net/npm/"

// asset is a file of an npm package that the playground is made of. Wherever it
// comes from, the browser takes it only if it has this hash.
type asset struct {
	Package, Version, Path, Integrity string

	Location string // where this build's page loads it from
}

func (a asset) IsStyle() bool { return path.Ext(a.Path) == ".css" }

// newPlayground makes /playground of GraphiQL out of the assets, or out of a CDN
// where this build has none. The page says which of the two it is.
func newPlayground(assets fs.FS) (map[string]*file, error) {
	wanted, err := readAssets()
	if err != nil {
		return nil, err
	}
	files := map[string]*file{}
	for _, name := range []string{"playground.js", "examples.js", "playground.css"} {
		content, err := playgroundFiles.ReadFile("playground/" + name)
		if err != nil {
			return nil, err
		}
		files["/playground/"+name] = newFile(name, content, revalidate)
	}
	embedded := true
	for i, a := range wanted {
		content, err := fs.ReadFile(assets, path.Base(a.Path))
		if errors.Is(err, fs.ErrNotExist) {
			embedded = false
			break
		}
		if err != nil {
			return nil, err
		}
		wanted[i].Location = fmt.Sprintf("/playground/%s@%s/%s", a.Package, a.Version, path.Base(a.Path))
		files[wanted[i].Location] = newFile(a.Path, content, keep)
	}
	if !embedded {
		for i, a := range wanted {
			wanted[i].Location = fmt.Sprintf("%s%s@%s/%s", cdn, a.Package, a.Version, a.Path)
		}
	}
	page, err := playgroundPage(wanted, embedded)
	if err != nil {
		return nil, err
	}
	page.header.Set("Content-Security-Policy", playgroundPolicy(wanted, embedded))
	files["/playground"], files["/playground/"] = page, page
	return files, nil
}

func readAssets() ([]asset, error) {
	content, err := playgroundFiles.ReadFile("playground/assets.json")
	if err != nil {
		return nil, err
	}
	var assets []asset
	if err := json.Unmarshal(content, &assets); err != nil {
		return nil, fmt.Errorf("assets.json: %w", err)
	}
	return assets, nil
}

func playgroundPage(assets []asset, embedded bool) (*file, error) {
	page, err := template.ParseFS(playgroundFiles, "playground/page.html")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = page.Execute(&b, struct {
		Assets   []asset
		Embedded bool
		CDN      string
	}{assets, embedded, strings.TrimSuffix(strings.TrimPrefix(cdn, "https://"), "/npm/")})
	return newFile("page.html", b.Bytes(), revalidate), err
}

// playgroundPolicy allows what GraphiQL needs beyond the other pages: fonts within
// its style sheet. From a CDN it allows these very files.
func playgroundPolicy(assets []asset, embedded bool) string {
	scripts, styles := "'self'", "'self'"
	for _, a := range assets {
		switch {
		case embedded:
		case a.IsStyle():
			styles += " " + a.Location
		default:
			scripts += " " + a.Location
		}
	}
	return "default-src 'none'; script-src " + scripts + "; style-src " + styles + "; img-src 'self' data:; font-src data:; " +
		"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}
