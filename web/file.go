package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	revalidate = "no-cache"                            // keep it, and ask each time whether it is still good
	keep       = "public, max-age=31536000, immutable" // for addresses that change with the content
)

// contentTypes are written down here, since what the mime package knows depends on
// the machine, and with nosniff a wrong one is a page that does not load.
var contentTypes = map[string]string{
	".css":         "text/css; charset=utf-8",
	".html":        "text/html; charset=utf-8",
	".ico":         "image/x-icon",
	".js":          "text/javascript; charset=utf-8",
	".json":        "application/json",
	".png":         "image/png",
	".svg":         "image/svg+xml",
	".ts":          "application/typescript; charset=utf-8",
	".txt":         "text/plain; charset=utf-8",
	".webmanifest": "application/manifest+json",
}

// file is what is sent for an address.
type file struct {
	contentType string
	content     []byte
	gzipped     func() []byte // nil where it would be no smaller
	tag         string        // of the content; each encoding adds its own mark
	header      http.Header   // beside what is sent with everything
}

// newFile makes a file of content, to be cached as cacheControl says.
func newFile(name string, content []byte, cacheControl string) *file {
	sum := sha256.Sum256(content)
	contentType, ok := contentTypes[path.Ext(name)]
	if !ok {
		contentType = "application/octet-stream"
	}
	header := http.Header{"Cache-Control": {cacheControl}, "Vary": {"Accept-Encoding"}}
	if path.Ext(name) == ".html" {
		maps.Copy(header, pageHeaders.Clone())
	}
	return &file{
		contentType: contentType,
		content:     content,
		gzipped:     sync.OnceValue(func() []byte { return compress(content) }),
		tag:         hex.EncodeToString(sum[:16]),
		header:      header,
	}
}

// cached is the same file for an address with another rule for caches.
func (f *file) cached(cacheControl string) *file {
	other := *f
	other.header = f.header.Clone()
	other.header.Set("Cache-Control", cacheControl)
	return &other
}

// ServeHTTP sends the file in the encoding that the client prefers. An ETag is one
// of a representation, so the two encodings have two.
func (f *file) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, values := range f.header {
		h[name] = slices.Clone(values)
	}
	h.Set("Content-Type", f.contentType)
	content, tag := f.content, f.tag
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		if small := f.gzipped(); small != nil {
			content, tag = small, f.tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Length", strconv.Itoa(len(small)))
		}
	}
	h.Set("ETag", strconv.Quote(tag))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func compress(content []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is one
	}
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	if b.Len() >= len(content) {
		return nil
	}
	return b.Bytes()
}

// acceptsGzip reads Accept-Encoding as RFC 9110 has it: a coding's own weight wins
// over that of *, and a weight of nought is a refusal.
func acceptsGzip(values []string) bool {
	named, others := -1.0, -1.0
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		coding, params, _ := strings.Cut(part, ";")
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(params, " ", "")), "q="); ok {
			weight, _ = strconv.ParseFloat(q, 64) // what is no number asks for nothing
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			named = max(named, weight)
		case "*":
			others = weight
		}
	}
	if named >= 0 {
		return named > 0
	}
	return others > 0
}
