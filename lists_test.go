package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestRosterAndItsCSV(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		id := s.newLecture(`capacity:10`)
		people := []string{"=cmd|' /C calc'!A0", "+1", "-1", "@sum", `quo"te,comma`, "보통 사람"}
		for _, user := range people {
			s.mustEnroll(user, id)
		}
		s.must("operator", `mutation{removeEnrollment(lectureId:"`+id+`",userKey:"+1"){userKey cancelledAt}}`)
		if a := s.must("operator", `mutation{removeEnrollment(lectureId:"`+id+`",userKey:"nobody"){userKey}}`); a.at("removeEnrollment") != nil {
			t.Errorf("removing nobody: %v", a.Data)
		}
		a := s.must("operator", `{enrollments(lectureId:"`+id+`",first:2){totalCount nodes{number userKey} pageInfo{hasNextPage hasPreviousPage endCursor}}}`)
		if a.at("enrollments.totalCount") != 5.0 || a.at("enrollments.pageInfo.hasNextPage") != true || a.at("enrollments.pageInfo.hasPreviousPage") != false {
			t.Errorf("the first page: %v", a.Data)
		}
		a = s.must("operator", `{enrollments(lectureId:"`+id+`",first:100,after:"`+a.at("enrollments.pageInfo.endCursor").(string)+`",includeCancelled:true){totalCount nodes{number cancelledAt}}}`)
		if a.at("enrollments.totalCount") != 6.0 || len(a.at("enrollments.nodes").([]any)) != 3 {
			t.Errorf("the second page: %v", a.Data)
		}
		if a := s.must("operator", `{enrollments(lectureId:"`+id+`",search:"사람"){totalCount nodes{userKey}}}`); a.at("enrollments.totalCount") != 1.0 {
			t.Errorf("search: %v", a.Data)
		}

		path := "/lectures/" + id + "/enrollments.csv"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path+"?includeCancelled=true&bom=true", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", bearer(t, "operator"))
		res, err := s.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/csv") || !strings.Contains(res.Header.Get("Content-Disposition"), "lecture-"+id+"-enrollments.csv") {
			t.Fatalf("%d %v %v", res.StatusCode, res.Header, err)
		}
		text, found := bytes.CutPrefix(b, []byte("\ufeff"))
		if !found || !bytes.Contains(text, []byte("\r\n")) {
			t.Errorf("no byte order mark, or no CRLF: %q", b)
		}
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(rows) != 1+len(people) {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i, row := range rows[1:] {
			want := people[i]
			if i < 4 {
				want = "'" + want // or a spreadsheet would run it
			}
			if row[0] != fmt.Sprint(i+1) || row[1] != want || (row[3] != "") != (people[i] == "+1") {
				t.Errorf("row %v", row)
			}
		}
		if status, body := s.get(path, "operator"); status != 200 || strings.Count(body, "\r\n") != 6 {
			t.Errorf("without the cancelled: %d %s", status, body)
		}
		if status, body := s.get("/lectures/"+s.newLecture(`capacity:1`)+"/enrollments.csv", "operator"); status != 200 || strings.Count(body, "\r\n") != 1 {
			t.Errorf("an empty roster: %d %s", status, body)
		}
		for user, want := range map[string]int{"": 401, "kim": 403} {
			if status, _ := s.get(path, user); status != want {
				t.Errorf("as %q: %d", user, status)
			}
		}
		if status, body := s.get("/lectures/999999/enrollments.csv", "operator"); status != 404 || !strings.Contains(body, "NOT_FOUND") {
			t.Errorf("unknown: %d %s", status, body)
		}
	})
}

func TestPages(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		before := s.must("", `{lectures{totalCount}}`).at("lectures.totalCount").(float64)
		var ids []string
		for range 5 {
			ids = append(ids, s.newLecture(`capacity:3`))
		}
		var walked []string
		for after := ""; ; {
			a := s.must("", `{lectures(first:2,search:"LECTURE",after:"`+after+`"){edges{cursor node{id lineState waiting}} pageInfo{hasNextPage hasPreviousPage startCursor endCursor}}}`)
			for _, e := range a.at("lectures.edges").([]any) {
				walked = append(walked, answer{Data: e.(map[string]any)}.at("node.id").(string))
			}
			if a.at("lectures.pageInfo.hasPreviousPage") != (after != "") {
				t.Errorf("hasPreviousPage after %q: %v", after, a.Data)
			}
			if a.at("lectures.pageInfo.hasNextPage") != true {
				break
			}
			after = a.at("lectures.pageInfo.endCursor").(string)
		}
		if fmt.Sprint(walked) != fmt.Sprint(ids) {
			t.Errorf("walked %v, created %v", walked, ids)
		}
		if a := s.must("", `{lectures(first:null,search:null,after:null){totalCount}}`); a.at("lectures.totalCount") != before+5 {
			t.Errorf("all: %v", a.Data)
		}
		if a := s.must("", `{lectures(search:"100%_no"){totalCount nodes{id} pageInfo{startCursor endCursor hasNextPage}}}`); a.at("lectures.totalCount") != 0.0 || a.at("lectures.pageInfo.endCursor") != nil {
			t.Errorf("none: %v", a.Data)
		}
		cursor := s.must("", `{lectures(first:1){pageInfo{endCursor}}}`).at("lectures.pageInfo.endCursor").(string)
		for _, arguments := range []string{`first:0`, `first:-1`, `first:101`, `after:"x"`, `after:"` + cursor[:len(cursor)-2] + `"`} {
			if a := s.ask("", `{lectures(`+arguments+`){totalCount nodes{id}}}`); a.code() != "BAD_USER_INPUT" {
				t.Errorf("lectures(%s): %+v", arguments, a)
			}
		}
		for _, query := range []string{
			`{receipts(first:0){totalCount nodes{id}}}`, `{receipts(first:101){totalCount nodes{id}}}`, `{receipts(after:"` + cursor + `"){nodes{id}}}`,
			`{enrollments(lectureId:"` + ids[0] + `",first:101){nodes{id}}}`, `{enrollments(lectureId:"` + ids[0] + `",after:"` + cursor + `"){nodes{id}}}`,
		} {
			if a := s.ask("operator", query); a.code() != "BAD_USER_INPUT" {
				t.Errorf("%s: %+v", query, a)
			}
		}
	})
}

func TestUnknownLectures(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		for _, id := range []string{"999999", "x", "2147483648", "9223372036854775807", "1:2", "١"} {
			if a := s.must("", `{lecture(id:"`+id+`"){title}}`); a.at("lecture") != nil {
				t.Errorf("lecture(%s): %v", id, a.Data)
			}
			for _, query := range []string{
				`{queuePosition(lectureId:"` + id + `"){status}}`, `{receipt(lectureId:"` + id + `"){number}}`, `{enrollments(lectureId:"` + id + `"){totalCount}}`,
				`mutation{joinQueue(lectureId:"` + id + `"){status}}`, `mutation{leaveQueue(lectureId:"` + id + `"){status}}`,
				`mutation{enroll(lectureId:"` + id + `"){status}}`, `mutation{cancelEnrollment(lectureId:"` + id + `"){number}}`,
				`mutation{updateLecture(id:"` + id + `",input:{capacity:1}){id}}`, `mutation{removeEnrollment(lectureId:"` + id + `",userKey:"kim"){number}}`,
			} {
				if a := s.ask("operator", query); a.code() != "NOT_FOUND" {
					t.Errorf("%s: %+v", query, a)
				}
			}
			for name, subscribe := range transports {
				for _, query := range []string{`subscription{queuePosition(lectureId:"` + id + `"){status}}`, `subscription{lineStats(lectureId:"` + id + `"){waiting}}`} {
					stream := subscribe(s, "operator", query)
					e := stream.until("an error", func(e event) bool { return true })
					stream.close()
					if e.code() != "NOT_FOUND" || e.Data != nil {
						t.Errorf("%s, %s: %+v", name, query, e)
					}
				}
			}
		}
		e := transports["graphql-transport-ws"](s, "", `subscription{queuePosition(lectureId:"1"){status}}`).until("an error", func(e event) bool { return true })
		if e.code() != "UNAUTHENTICATED" {
			t.Errorf("signed out: %+v", e)
		}
		e = transports["sse"](s, "kim", `subscription{lineStats(lectureId:"1"){waiting}}`).until("an error", func(e event) bool { return true })
		if e.code() != "FORBIDDEN" {
			t.Errorf("no operator: %+v", e)
		}
	})
}
