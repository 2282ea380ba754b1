// Package web serves Seatline's pages, which are part of the binary: the web app
// and the browser SDK in static, and a playground for the API.
//
// Everything is made ready when the program starts, so that ten thousand phones at
// ten o'clock cost no more than the sending. A page is revalidated each time, and
// what it loads has the hash of its content in the address and is kept for good:
// who refreshes asks once and is answered by a 304.
package web

import (
	"embed"
	"io/fs"
	"maps"
	"net/http"
)

//go:embed static
var static embed.FS

// Handler serves all pages. It answers 404 to what is not one: the web app's own
// addresses are behind a #.
func Handler() http.Handler {
	tree, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	assets, err := fs.Sub(embeddedAssets, "assets")
	if err != nil {
		panic(err)
	}
	h, err := newHandler(tree, assets)
	if err != nil {
		panic(err) // all that it reads is embedded
	}
	return h
}

// handler is what there is to see, by address.
type handler struct {
	files map[string]*file
	site  *site
}

func newHandler(tree, assets fs.FS) (*handler, error) {
	site, err := newSite(tree)
	if err != nil {
		return nil, err
	}
	playground, err := newPlayground(assets)
	if err != nil {
		return nil, err
	}
	maps.Copy(site.files, playground)
	return &handler{files: site.files, site: site}, nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	for name, value := range securityHeaders {
		header.Set(name, value)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "these are pages: GET or HEAD them", http.StatusMethodNotAllowed)
		return
	}
	f, ok := h.files[r.URL.Path]
	if !ok {
		f, ok = h.site.ofAnotherBuild(r.URL.Path)
	}
	if !ok {
		header.Set("Cache-Control", "no-cache")
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	f.ServeHTTP(w, r)
}

// securityHeaders are sent with everything. What is no page of its own has nothing
// to load, run or be framed by: a phone that asks for thirty files need not be told
// more than that with each of them.
var securityHeaders = map[string]string{
	"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":  "nosniff",
	"Referrer-Policy":         "no-referrer",
}

// pageHeaders are what a page needs beside them, and in their place.
//
// 'self' in connect-src covers the page's own WebSocket too. There is no inline
// script and no sink that makes code of text, so both are forbidden.
var pageHeaders = http.Header{
	"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
		"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"},
	"Permissions-Policy": {"camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"},
}
