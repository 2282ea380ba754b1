package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

// site is the web app and the SDK: a tree of files, each at its own address.
//
// Whatever is not a page is also at /static/<hash>/, where hash is that of all of
// them together: modules import each other by relative addresses, so the hash in
// the address that a page names is in all that follows from it.
type site struct {
	files map[string]*file
	hash  string
}

// hashLength is in hexadecimal digits.
const hashLength = 16

func newSite(tree fs.FS) (*site, error) {
	contents, err := readAll(tree)
	if err != nil {
		return nil, err
	}
	s := &site{files: map[string]*file{}, hash: hashOf(contents)}
	for _, c := range contents {
		if c.isPage() {
			continue
		}
		f := newFile(c.name, c.content, revalidate)
		f.gzipped() // now, and not when people come
		s.files["/"+c.name] = f
		s.files[s.address(c.name)] = f.cached(keep)
	}
	for _, c := range contents {
		if !c.isPage() {
			continue
		}
		f := newFile(c.name, s.link(c), revalidate)
		f.gzipped()
		s.files["/"+c.name] = f
		if folder, name := path.Split(c.name); name == "index.html" {
			s.files["/"+folder] = f
		}
	}
	// Pages of other sites may import the SDK; whether the API answers them is
	// decided by ALLOWED_ORIGINS.
	for _, name := range []string{"/sdk.js", "/sdk.d.ts"} {
		if f, ok := s.files[name]; ok {
			f.header.Set("Access-Control-Allow-Origin", "*")
		}
	}
	return s, nil
}

// address is where a file that never changes is.
func (s *site) address(name string) string { return "/static/" + s.hash + "/" + name }

// ofAnotherBuild finds what is asked for by a page that another instance sent, one
// that is older or newer than this one: the same file of this build is the best
// answer there is, as long as nobody keeps it.
func (s *site) ofAnotherBuild(address string) (*file, bool) {
	rest, ok := strings.CutPrefix(address, "/static/")
	if !ok {
		return nil, false
	}
	hash, name, ok := strings.Cut(rest, "/")
	if _, err := hex.DecodeString(hash); !ok || err != nil || len(hash) != hashLength {
		return nil, false
	}
	if _, ok := s.files[s.address(name)]; !ok {
		return nil, false
	}
	f, ok := s.files["/"+name]
	return f, ok
}

var (
	loadingTag    = regexp.MustCompile(`<(?:link|script|img)\b[^>]*>`)
	localLocation = regexp.MustCompile(`\b(href|src)="([^"?#:]+)"`)
)

// link lets a page load from addresses that never change.
func (s *site) link(page source) []byte {
	return loadingTag.ReplaceAllFunc(page.content, func(tag []byte) []byte {
		return localLocation.ReplaceAllFunc(tag, func(attribute []byte) []byte {
			m := localLocation.FindSubmatch(attribute)
			name := string(m[2])
			if !path.IsAbs(name) {
				name = path.Join("/", path.Dir(page.name), name)
			}
			name = strings.TrimPrefix(name, "/")
			if _, ok := s.files[s.address(name)]; !ok {
				return attribute
			}
			return fmt.Appendf(nil, `%s="%s"`, m[1], s.address(name))
		})
	})
}

// source is a file as it was written.
type source struct {
	name    string
	content []byte
}

func (s source) isPage() bool { return path.Ext(s.name) == ".html" }

// readAll reads a tree in the order of its names.
func readAll(tree fs.FS) ([]source, error) {
	var all []source
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		all = append(all, source{name: name, content: content})
		return err
	})
	return all, err
}

// hashOf is of all that pages load, names included.
func hashOf(sources []source) string {
	h := sha256.New()
	for _, s := range sources {
		if !s.isPage() {
			fmt.Fprintf(h, "%d %s\n%d\n", len(s.name), s.name, len(s.content))
			h.Write(s.content)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:hashLength]
}
