package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seatline/internal/config"
)

// filesNamed finds what is ours, not what has been installed.
func filesNamed(t *testing.T, pattern string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git" || d.Name() == "bin" || d.Name() == "artefacts"):
			return filepath.SkipDir
		case d.IsDir():
			return nil
		}
		matched, err := filepath.Match(pattern, d.Name())
		if matched {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return names
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestThreatModelNamesWhatThereIs: each test and setting that SECURITY.md counts
// on exists.
func TestThreatModelNamesWhatThereIs(t *testing.T) {
	model := readFile(t, "SECURITY.md")
	exists := map[string]bool{}
	for _, name := range filesNamed(t, "*_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(readFile(t, name), -1) {
			exists[m[1]] = true
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(model, -1)
	if len(named) < 40 {
		t.Errorf("it names %d tests", len(named))
	}
	for _, m := range named {
		if !exists[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}

	var manual strings.Builder
	if _, err := config.Load([]string{"-h"}, func(string) (string, bool) { return "", false }, &manual); manual.Len() == 0 {
		t.Fatalf("no manual: %v", err)
	}
	elsewhere := map[string]bool{"LISTEN": true, "UNAVAILABLE": true, "INTERNAL": true} // of the compose file; codes
	for _, m := range regexp.MustCompile("`([A-Z][A-Z_]+)(?:=\\w+)?`").FindAllStringSubmatch(model, -1) {
		if !elsewhere[m[1]] && !strings.Contains(manual.String(), "\n  "+m[1]+" ") {
			t.Errorf("there is no setting %s", m[1])
		}
	}
}

// TestPackagesArePinned: npm's packages are exact versions, each held to a hash,
// and from no registry in particular.
func TestPackagesArePinned(t *testing.T) {
	exact := regexp.MustCompile(`^\d+\.\d+\.\d+$`)
	for _, name := range filesNamed(t, "package.json") {
		var wanted struct{ Dependencies, DevDependencies map[string]string }
		if err := json.Unmarshal([]byte(readFile(t, name)), &wanted); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, packages := range []map[string]string{wanted.Dependencies, wanted.DevDependencies} {
			for p, version := range packages {
				if !exact.MatchString(version) {
					t.Errorf("%s wants %s %s", name, p, version)
				}
			}
		}
		var lock struct {
			Packages map[string]struct {
				Version, Resolved, Integrity string
			}
		}
		locked := filepath.Join(filepath.Dir(name), "package-lock.json")
		if err := json.Unmarshal([]byte(readFile(t, locked)), &lock); err != nil {
			t.Fatalf("%s: %v", locked, err)
		}
		for at, p := range lock.Packages {
			if at != "" && (p.Integrity == "" || p.Resolved != "" || !strings.HasPrefix(p.Integrity, "sha512-")) {
				t.Errorf("%s: %s is %+v", locked, at, p)
			}
		}
	}
}

// TestContainersAreWeak: what runs in the image may do little, and all images have
// a version.
func TestContainersAreWeak(t *testing.T) {
	dockerfile, compose := readFile(t, "Dockerfile"), readFile(t, "docker-compose.yml")
	stages := map[string]bool{"scratch": true}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)(?: AS (\S+))?|COPY --from=(\S+)`).FindAllStringSubmatch(dockerfile, -1) {
		if image := m[1] + m[3]; !stages[image] && !regexp.MustCompile(`^[a-z/]+:\d[\w.-]*$`).MatchString(image) {
			t.Errorf("the image %q has no version", image)
		}
		stages[m[2]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^\s+image: (\S+)`).FindAllStringSubmatch(compose, -1) {
		if m[1] != "seatline" && !regexp.MustCompile(`^[a-z/]+:\d[\w.-]*$`).MatchString(m[1]) {
			t.Errorf("the image %q has no version", m[1])
		}
	}
	last := dockerfile[strings.LastIndex(dockerfile, "\nFROM "):]
	if !strings.HasPrefix(last, "\nFROM scratch\n") || !strings.Contains(last, "\nUSER 65532:65532\n") {
		t.Errorf("the image is %s", last)
	}
	service, _, _ := strings.Cut(compose, "\nservices:")
	for _, weak := range []string{`user: "65532:65532"`, "read_only: true", "cap_drop: [ALL]", `security_opt: ["no-new-privileges:true"]`} {
		if !strings.Contains(service, "\n  "+weak+"\n") {
			t.Errorf("the service is not %s", weak)
		}
	}
	if strings.Count(compose, "ports:") != 1 || !strings.Contains(compose, `ports: ["${LISTEN:-127.0.0.1:8080}:8080"]`) || !strings.Contains(compose, "stores:\n    internal: true") {
		t.Error("more is published than the proxy, or the stores' network is no island")
	}
}
