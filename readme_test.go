package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"seatline/internal/config"
)

// readmeBlock is a fenced block of the README.
type readmeBlock struct{ language, text string }

func readme(t *testing.T) (text string, blocks []readmeBlock) {
	t.Helper()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	text = string(b)
	for _, m := range regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```").FindAllStringSubmatch(text, -1) {
		blocks = append(blocks, readmeBlock{m[1], m[2]})
	}
	return text, blocks
}

// TestReadmeSession pastes the README's session, in its order, into the program
// as `go run .` starts it.
func TestReadmeSession(t *testing.T) {
	s := start(t)
	s.awaitReady()
	_, blocks := readme(t)
	guest, user, id, ran := "", "", "", 0
	for _, b := range blocks {
		if b.language != "graphql" {
			continue
		}
		ran++
		who, _, _ := strings.Cut(b.text, "\n")
		authorization, known := map[string]string{
			"# as nobody": "", "# as the operator": bearer(t, "operator"), "# as a guest, with the lecture's id": guest,
		}[who]
		if !known {
			t.Fatalf("nobody is %q", who)
		}
		if strings.Contains(b.text, "subscription ") {
			query := strings.NewReplacer("($id: ID!)", "", "$id", `"`+id+`"`).Replace(b.text)
			w := s.socket("graphql-transport-ws", "subscribe", user, query)
			if e := w.until("the first event", func(event) bool { return true }); e.at("queuePosition.status") != "ADMITTED" {
				t.Errorf("the subscription begins with %+v", e)
			}
			w.close()
			continue
		}
		a := s.paste(authorization, b.text, id)
		switch {
		case strings.Contains(b.text, "startSession"):
			guest, user = "Bearer "+a.at("startSession.token").(string), a.at("startSession.viewer.userKey").(string)
		case strings.Contains(b.text, "createLecture"):
			id = a.at("createLecture.id").(string)
		case strings.Contains(b.text, "joinQueue") && a.at("joinQueue.status") != "ADMITTED",
			strings.Contains(b.text, "enroll(") && a.at("enroll.status") != "ENROLLED",
			strings.Contains(b.text, "receipt(") && a.at("receipt.lecture.lineState") != "SOLD_OUT",
			strings.Contains(b.text, "cancelEnrollment") && a.at("cancelEnrollment.cancelledAt") == nil:
			t.Errorf("%s\ncomes to %v", b.text, a.Data)
		}
	}
	if ran != 7 {
		t.Errorf("%d operations were pasted, want 7", ran)
	}
}

// paste posts an operation of the README, with the lecture's id as its variable.
func (s *instance) paste(authorization, query, id string) answer {
	s.t.Helper()
	variables := map[string]any{}
	if strings.Contains(query, "$id") {
		variables["id"] = id
	}
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	_, text, err := s.do(r)
	var a answer
	if err == nil {
		err = json.Unmarshal([]byte(text), &a)
	}
	if err != nil || len(a.Errors) > 0 {
		s.t.Fatalf("%s\nis answered with %s, %v", query, text, err)
	}
	return a
}

// TestReadmeCommands holds what the README tells people to type to what there is.
func TestReadmeCommands(t *testing.T) {
	text, blocks := readme(t)
	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`?make ([a-z-]+)`?").FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(makefile), "\n"+m[1]+":") {
			t.Errorf("make %s: no such target", m[1])
		}
	}
	ci, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(ci), "make test") {
		t.Error("CI does not run the README's test command")
	}
	var shell []string
	for _, b := range blocks {
		if b.language == "sh" {
			shell = append(shell, b.text)
		}
	}
	for _, command := range []string{"go run .", "make test", "docker compose up"} {
		if !strings.Contains(strings.Join(shell, "\n"), command) {
			t.Errorf("the README does not say %q", command)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^):#]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("the README points at %s, which is not there", m[1])
		}
	}
}

// TestReadmeSettings: what can be set is in the README, and what the README
// says can be set can.
func TestReadmeSettings(t *testing.T) {
	text, _ := readme(t)
	var help bytes.Buffer
	if _, err := config.Load([]string{"-h"}, func(string) (string, bool) { return "", false }, &help); err == nil {
		t.Fatal("-h did not stop the program")
	}
	settings := regexp.MustCompile(`(?m)^  ([A-Z][A-Z_]+) `).FindAllStringSubmatch(help.String(), -1)
	if len(settings) < 20 {
		t.Fatalf("-h lists %d settings", len(settings))
	}
	known := map[string]bool{}
	for _, m := range settings {
		known[m[1]] = true
		if !strings.Contains(text, "`"+m[1]+"`") {
			t.Errorf("%s is not in the README", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| (`[A-Z_`, ]+`) ").FindAllStringSubmatch(text, -1) {
		for name := range strings.SplitSeq(m[1], ",") {
			if name = strings.Trim(name, "` "); !known[name] {
				t.Errorf("the README lists %s, which cannot be set", fmt.Sprint(name))
			}
		}
	}
}
