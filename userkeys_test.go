package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"seatline/internal/testenv"
)

// spellings are user keys that some layer or other might take for one another,
// or for something else than a key. Each is a person of their own.
var spellings = []string{
	"kim", "Kim", "KIM", "kim ", " kim", "kim\u00a0", "k im", "kim.", "kim:", "kim:kim", ":", "::",
	"caf\u00e9", "cafe\u0301", "\u1112\u1161\u11ab", "\ud55c", "\u00c5", "\u212b", "\ufb01", "fi", "ß", "ss", "İ", "i\u0307", "ı", "ſ", "K", "\u212a",
	"❤", "❤\ufe0f", "👩‍🚀", "👩🚀", "e\u200b", "e\u200d", "\ufeffkim", "\u202ekim", "\u2028", "\u00ad",
	"{1}", "{", "}", "lecture:{1}", "queue:lecture:{1}", "admitted:lecture:{1}:user:kim", "user:kim", "*", "kim*", "?", "[a-z]", "\\", `\\`, `\n`, `\u0041`, "A",
	"%", "_", "k%", "k_m", "%6B", "%6b", "%25", "%00", "+", "a+b", "a b", "a%20b", "/", "../kim", "..", ".", "//", "#", "&", ";", "|", "^", "$1", "${kim}", "{{kim}}", "<b>", "&lt;b&gt;",
	"'", "''", `"`, `""`, "`", "' OR 1=1 --", "'; DROP TABLE enrollments; --", "kim,lee", "=1+1", "@kim", "-1", "0", "00", "1", "1.0", "1e0", "null", "NULL", "nil", "true", "undefined", "NaN", "inf", "-", "(null)",
	strings.Repeat("k", 127), strings.Repeat("k", 128), strings.Repeat("é", 64), strings.Repeat("%", 128), strings.Repeat("👩", 32),
}

// literal is a string as GraphQL writes it.
func literal(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// TestEachSpellingIsItsOwnPerson from the token to the roster and its CSV.
func TestEachSpellingIsItsOwnPerson(t *testing.T) {
	onBackends(t, func(t *testing.T, s *instance) {
		seen := map[string]bool{}
		for _, user := range spellings {
			if seen[user] {
				t.Fatalf("%q is twice in the list", user)
			}
			seen[user] = true
		}
		id := s.newLecture(fmt.Sprintf(`capacity:%d,settings:{admitPerSecond:10000,burst:10000}`, len(spellings)+10))
		number := map[string]float64{}
		for _, user := range spellings {
			a := s.must(user, `{viewer{userKey} queuePosition(lectureId:"`+id+`"){status} receipt(lectureId:"`+id+`"){id}}`)
			if a.at("viewer.userKey") != user || a.at("queuePosition.status") != "NOT_QUEUED" || a.at("receipt") != nil {
				t.Fatalf("%q has something before they came: %v", user, a.Data)
			}
			s.must(user, `mutation{joinQueue(lectureId:"`+id+`"){status}}`)
			s.awaitStatus(user, id, "ADMITTED")
			a = s.must(user, `mutation{enroll(lectureId:"`+id+`"){status receipt{userKey number}}}`)
			if a.at("enroll.status") != "ENROLLED" || a.at("enroll.receipt.userKey") != user {
				t.Fatalf("%q enrols: %v", user, a.Data)
			}
			number[user] = a.at("enroll.receipt.number").(float64)
		}
		for _, user := range spellings {
			a := s.must(user, `{receipt(lectureId:"`+id+`"){number userKey} receipts{totalCount nodes{number}} queuePosition(lectureId:"`+id+`"){status receipt{number}}}`)
			if a.at("receipt.number") != number[user] || a.at("receipt.userKey") != user || a.at("receipts.totalCount") != 1.0 || a.at("queuePosition.receipt.number") != number[user] {
				t.Errorf("%q, number %v, reads %v", user, number[user], a.Data)
			}
		}

		// The roster, a page at a time; and a search finds a part, byte for byte.
		rostered := map[string]float64{}
		for after := ""; ; {
			a := s.must("operator", `{enrollments(lectureId:"`+id+`",first:50,after:"`+after+`"){nodes{userKey number} pageInfo{hasNextPage endCursor}}}`)
			for _, node := range a.at("enrollments.nodes").([]any) {
				node := node.(map[string]any)
				rostered[node["userKey"].(string)] = node["number"].(float64)
			}
			if a.at("enrollments.pageInfo.hasNextPage") != true {
				break
			}
			after = a.at("enrollments.pageInfo.endCursor").(string)
		}
		if fmt.Sprint(rostered) != fmt.Sprint(number) {
			t.Errorf("the roster has %v, who enrolled are %v", rostered, number)
		}
		for _, part := range spellings {
			if len(part) > 100 {
				continue // longer than a search may be
			}
			var want float64
			for _, user := range spellings {
				if strings.Contains(user, part) {
					want++
				}
			}
			if a := s.must("operator", `{enrollments(lectureId:"`+id+`",search:`+literal(part)+`){totalCount}}`); a.at("enrollments.totalCount") != want {
				t.Errorf("a search for %q finds %v, want %v", part, a.at("enrollments.totalCount"), want)
			}
		}
		status, body := s.get("/lectures/"+id+"/enrollments.csv", "operator")
		rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
		if status != http.StatusOK || err != nil || len(rows) != 1+len(spellings) {
			t.Fatalf("CSV: %d, %d rows, %v", status, len(rows), err)
		}
		for i, row := range rows[1:] {
			user, cell := spellings[i], spellings[i]
			if strings.IndexAny(user, "=+-@") == 0 {
				cell = "'" + user // keeps spreadsheets from reading a formula
			}
			if row[0] != fmt.Sprint(number[user]) || row[1] != cell {
				t.Errorf("row %v is not %q's", row, user)
			}
		}

		// Taking a seat from one takes it from nobody else.
		for i, user := range spellings {
			if i%2 == 0 {
				if a := s.must("operator", `mutation{removeEnrollment(lectureId:"`+id+`",userKey:`+literal(user)+`){userKey number}}`); a.at("removeEnrollment.userKey") != user || a.at("removeEnrollment.number") != number[user] {
					t.Errorf("removing %q: %v", user, a.Data)
				}
			}
		}
		for i, user := range spellings {
			a := s.must(user, `{receipt(lectureId:"`+id+`"){number} queuePosition(lectureId:"`+id+`"){status}}`)
			if gone := a.at("receipt") == nil && a.at("queuePosition.status") == "NOT_QUEUED"; gone != (i%2 == 0) {
				t.Errorf("%q afterwards: %v", user, a.Data)
			}
		}
	})
}

// TestSpellingsWaitApart: in one line, and with the proofs of their places, when
// the line is lost.
func TestSpellingsWaitApart(t *testing.T) {
	stores := env{"DATABASE_URL": testenv.Postgres(t), "REDIS_URL": testenv.Redis(t)}
	s := start(t, stores)
	s.awaitReady()
	id := s.newLecture(`capacity:1,settings:{paused:true}`)
	proof := map[string]string{}
	for i, user := range spellings {
		a := s.must(user, `mutation{joinQueue(lectureId:"`+id+`"){status position placeToken}}`)
		if a.at("joinQueue.status") != "WAITING" || a.at("joinQueue.position") != float64(i+1) {
			t.Fatalf("%q, who came as number %d: %v", user, i+1, a.Data)
		}
		proof[user] = a.at("joinQueue.placeToken").(string)
	}
	for i, user := range spellings {
		if a := s.must(user, `{queuePosition(lectureId:"`+id+`"){position}}`); a.at("queuePosition.position") != float64(i+1) {
			t.Errorf("%q is number %d and reads %v", user, i+1, a.Data)
		}
	}
	if err := openRedis(t, stores["REDIS_URL"]).FlushDB(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	// Backwards, so that places come from proofs and not from the order. Every
	// second one comes with the proof of the one before, of which there is no use.
	var restored, late []string
	for i, user := range slices.Backward(spellings) {
		token := proof[user]
		if i%2 == 1 {
			token = proof[spellings[i-1]]
			late = append(late, user)
		} else {
			restored = append([]string{user}, restored...)
		}
		s.must(user, `mutation{joinQueue(lectureId:"`+id+`",placeToken:"`+token+`"){status}}`)
	}
	for i, user := range append(restored, late...) {
		if a := s.must(user, `{queuePosition(lectureId:"`+id+`"){position}}`); a.at("queuePosition.position") != float64(i+1) {
			t.Errorf("%q has %v, want %d", user, a.at("queuePosition.position"), i+1)
		}
	}
}

// TestWhatIsNoUserKey is refused at every edge that takes one.
func TestWhatIsNoUserKey(t *testing.T) {
	s := start(t)
	s.awaitReady()
	id := s.newLecture(`capacity:1`)
	for name, key := range map[string]string{
		"empty": `""`, "NUL": `"kim\u0000"`, "newline": `"kim\n"`, "tab": `"\tkim"`, "escape": `"\u001b[31m"`, "DEL": `"kim\u007f"`, "C1": `"kim\u0085"`,
		"lone high surrogate": `"kim\ud800"`, "lone low surrogate": `"\udc00kim"`, "surrogates the wrong way round": `"\udc00\ud800"`, "U+FFFD": `"kim\ufffd"`,
		"129 bytes": `"` + strings.Repeat("k", 129) + `"`, "65 letters of 2": `"` + strings.Repeat("é", 65) + `"`,
		"not UTF-8": "\"kim\xff\"", "half a rune": "\"\xe2\x82\"", "overlong": "\"\xc0\xaf\"", "a surrogate in UTF-8": "\"\xed\xa0\x80\"",
	} {
		// As the subject of a token, in bytes that no encoder would write.
		signed := signRaw(t, `{"sub":`+key+`,"exp":9999999999}`)
		s.expectReception(name, "Bearer "+signed, refused)
		// As an argument, in a variable.
		body := `{"query":"mutation($u:String!){removeEnrollment(lectureId:\"` + id + `\",userKey:$u){userKey}}","variables":{"u":` + key + `}}`
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/graphql", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", bearer(t, "operator"))
		_, got, err := s.do(r)
		if err != nil || !strings.Contains(got, `"code":"BAD_USER_INPUT"`) {
			t.Errorf("%s as an argument: %s %v", name, got, err)
		}
		// And in the document itself, where it can be written there.
		if a := s.ask("operator", `mutation{removeEnrollment(lectureId:"`+id+`",userKey:`+key+`){userKey}}`); a.code() != "BAD_USER_INPUT" && a.code() != "GRAPHQL_PARSE_FAILED" {
			t.Errorf("%s in the document: %+v", name, a)
		}
	}
}

// signRaw signs claims as they stand.
func signRaw(t *testing.T, claims string) string {
	t.Helper()
	text := jwt.New(jwt.SigningMethodHS256)
	encoded := text.EncodeSegment([]byte(`{"alg":"HS256"}`)) + "." + text.EncodeSegment([]byte(claims))
	mac, err := jwt.SigningMethodHS256.Sign(encoded, []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return encoded + "." + text.EncodeSegment(mac)
}
