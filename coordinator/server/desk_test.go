package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/coordinator"
	"github.com/starling-fl/starling/coordinator/monitor"
	"github.com/starling-fl/starling/coordinator/store"
)

// TestOperatorsNameViewers: an operator gives and takes the role of a viewer, and no other, and
// sees no more of the others than their acts.
func TestOperatorsNameViewers(t *testing.T) {
	h, s, f := deskOf(t)
	_, operator, err := f.AddOperator("Ada", store.RoleOperator, time.Hour)
	ok(t, err)
	_, _, err = f.AddOperator("Grace", store.RoleAdmin, time.Hour)
	ok(t, err)
	code, body := posted(h, operator, "/v1/admin/operators", `{"name": "board", "role": "viewer", "seconds": 3600}`)
	var board Added
	if err := json.Unmarshal([]byte(body), &board); code != 200 || err != nil || board.Role != store.RoleViewer {
		t.Fatalf("%d %s", code, body)
	}
	if code, body := posted(h, operator, "/v1/admin/operators", `{"name": "Eve", "role": "operator", "seconds": 3600}`); code != 403 || !strings.Contains(body, "viewers only") {
		t.Errorf("an operator names an operator: %d %s", code, body)
	}
	if code, body := posted(h, operator, "/v1/admin/operators", `{"name": "Eve", "role": "owner", "seconds": 3600}`); code != 400 {
		t.Errorf("no role: %d %s", code, body)
	}
	seen := func(token string) (names []string) {
		code, b := asked(t, h, "GET", "/v1/admin/operators.json", map[string]string{"Authorization": "Bearer " + token})
		var all []store.Operator
		if err := json.Unmarshal(b, &all); code != 200 || err != nil {
			t.Fatalf("%d %s", code, b)
		}
		for _, o := range all {
			names = append(names, o.Name)
		}
		return names
	}
	if got := seen(operator); fmt.Sprint(got) != "[board]" {
		t.Errorf("an operator sees %v", got)
	}
	if got := seen(s.AdminToken()); fmt.Sprint(got) != "[Ada Grace board]" {
		t.Errorf("an admin sees %v", got)
	}
	for _, other := range []string{"Grace", "Ada"} {
		if code, body := posted(h, operator, "/v1/admin/operators/"+other+"/revoke", ""); code != 403 {
			t.Errorf("an operator revokes %s: %d %s", other, code, body)
		}
	}
	if code, _ := posted(h, operator, "/v1/admin/operators/nobody/revoke", ""); code != 404 {
		t.Errorf("nobody is revoked: %d", code)
	}
	if code, body := posted(h, operator, "/v1/admin/operators/board/revoke", ""); code != 200 {
		t.Errorf("a viewer is not revoked: %d %s", code, body)
	}
	if code, _ := asked(t, h, "GET", "/v1/admin/who.json", map[string]string{"Authorization": "Bearer " + board.Token}); code != 401 {
		t.Errorf("a revoked link shows the job: %d", code)
	}
}

// TestPauseOverHTTP: an operator pauses the job, which draws nothing meanwhile, and has it go on;
// a viewer does neither, and sees who did.
func TestPauseOverHTTP(t *testing.T) {
	h, s, f := deskOf(t)
	_, operator, err := f.AddOperator("Ada", store.RoleOperator, time.Hour)
	ok(t, err)
	_, viewer, err := f.AddOperator("board", store.RoleViewer, time.Hour)
	ok(t, err)
	paused := func() *store.Pause {
		code, b := asked(t, h, "GET", "/v1/admin/paused.json", map[string]string{"Authorization": "Bearer " + viewer})
		var p Paused
		if err := json.Unmarshal(b, &p); code != 200 || err != nil {
			t.Fatalf("%d %s", code, b)
		}
		return p.Pause
	}
	if p := paused(); p != nil {
		t.Errorf("it begins with %+v", p)
	}
	if code, _ := posted(h, viewer, "/v1/admin/job/pause", `{}`); code != http.StatusForbidden {
		t.Errorf("a viewer pauses: %d", code)
	}
	if code, body := posted(h, operator, "/v1/admin/job/resume", `{}`); code != 400 || !strings.Contains(body, "not paused") {
		t.Errorf("nothing is resumed: %d %s", code, body)
	}
	for path, want := range map[string]int{"/v1/admin/job/stop": 404, "/v1/admin/job/pause": 400} {
		if code, _ := posted(h, operator, path, `{"reason": "`+strings.Repeat("a", store.MaxNote+1)+`"}`); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
	if code, body := posted(h, operator, "/v1/admin/job/pause", `{"reason": "a new phone"}`); code != 200 || !strings.Contains(body, "Ada") {
		t.Errorf("%d %s", code, body)
	}
	if p := paused(); p == nil || *p != (store.Pause{By: "Ada", Reason: "a new phone"}) {
		t.Errorf("paused by %+v", p)
	}
	if code, body := posted(h, s.AdminToken(), "/v1/admin/job/resume", ""); code != 200 || strings.TrimSpace(body) != `{"pause":null}` {
		t.Errorf("%d %s", code, body)
	}
	if code, _ := posted(h, viewer, "/v1/admin/job/begin", `{}`); code != http.StatusForbidden {
		t.Errorf("a viewer has the job begin: %d", code)
	}
	if code, body := posted(h, operator, "/v1/admin/job/begin", `{}`); code != 200 || !strings.Contains(body, `"says":"noted: 0 devices have enrolled and a round needs 3`) {
		t.Errorf("%d %s", code, body)
	}
	acts, _, err := f.Acts()
	ok(t, err)
	var said []string
	for _, a := range acts[2:] {
		said = append(said, a.By+": "+a.Act+" "+a.Subject)
	}
	if want := []string{"Ada: pause job a new phone", "(the folder): resume job ", "Ada: begin job "}; !slices.Equal(said, want) {
		t.Errorf("acts %q, want %q", said, want)
	}
}

// TestFleetPage: devices of a real job are counted and listed, with what they call themselves.
func TestFleetPage(t *testing.T) {
	job := tinyJob(3)
	job.Enrolment.Secret = "a secret of sixteen bytes"
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	h := s.named(s.AdminHandler())
	bearer := map[string]string{"Authorization": "Bearer " + s.AdminToken()}
	page := func(query string) (p FleetPage) {
		code, b := asked(t, h, "GET", "/v1/admin/fleet.json"+query, bearer)
		if err := json.Unmarshal(b, &p); code != 200 || err != nil {
			t.Fatalf("%s: %d %s", query, code, b)
		}
		return p
	}
	if p := page(""); p.Enrolled != 0 || p.Found != 0 || p.Devices == nil {
		t.Errorf("before any came: %+v", p)
	}
	enrolled(t, c, s)
	all := page("")
	if all.Enrolled != 3 || all.Found != 3 || len(all.Devices) != 3 || all.Seen[0].Devices != 3 || all.Devices[0].Agent == "" {
		t.Errorf("the fleet is %+v", all)
	}
	sum := func(of []store.Group) (n int) {
		for _, g := range of {
			n += g.Devices
		}
		return n
	}
	if sum(all.Programs) != 3 || sum(all.Platforms) != 3 || sum(all.Seen) != 3 {
		t.Errorf("groups are not of all: %+v", all.Summary)
	}
	second := page("?most=1&from=1")
	if second.Found != 3 || len(second.Devices) != 1 || second.Devices[0] != all.Devices[1] {
		t.Errorf("a page of one: %+v", second)
	}
	if p := page("?begins=" + all.Devices[2].Identity[:10]); p.Found != 1 || p.Devices[0].Identity != all.Devices[2].Identity {
		t.Errorf("by the first digits: %+v", p)
	}
	if code, body := posted(h, s.AdminToken(), "/v1/admin/devices/"+all.Devices[2].Identity+"/ban", ""); code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if p := page("?held=true"); p.Excluded != 1 || p.Found != 1 || p.Devices[0].Identity != all.Devices[2].Identity {
		t.Errorf("the held: %+v", p)
	}
	if p := page(""); p.Devices[0].Excluded == "" {
		t.Errorf("the excluded does not stand first: %+v", p.Devices)
	}
	for _, bad := range []string{"?most=0", "?most=501", "?from=-1", "?from=x", "?begins=%25", "?begins=" + strings.Repeat("a", 65), "?most=99999999999999999999"} {
		if code, b := asked(t, h, "GET", "/v1/admin/fleet.json"+bad, bearer); code != 400 {
			t.Errorf("%s: %d %s", bad, code, b)
		}
	}
}

// TestForecast: what is foretold of the rounds that were made is what was accounted, and the last
// point is what the job promised when it began.
func TestForecast(t *testing.T) {
	job := tinyJob(3)
	c, s := serve(t, job, Config{})
	t.Cleanup(func() { ok(t, c.Close()) })
	h := s.named(s.AdminHandler())
	ask := func() (f *coordinator.Forecast) {
		code, b := asked(t, h, "GET", "/v1/admin/forecast.json", map[string]string{"Authorization": "Bearer " + s.AdminToken()})
		if err := json.Unmarshal(b, &f); code != 200 || err != nil || f == nil {
			t.Fatalf("%d %s %v", code, b, err)
		}
		return f
	}
	if f := ask(); f.Charged != 0 || f.Left != job.Rounds || f.Affords != job.Rounds {
		t.Errorf("before the first round %+v", f)
	}
	enrolled(t, c, s)
	f := ask()
	if f.Charged != job.Rounds || f.Left != 0 || f.Affords != 0 {
		t.Errorf("after the last %+v", f)
	}
	about, err := c.About()
	ok(t, err)
	last := f.Points[len(f.Points)-1]
	if last.Rounds != job.Rounds || math.Abs(last.Delivered.Epsilon-about.Delivered.Epsilon) > 1e-12*about.Delivered.Epsilon {
		t.Errorf("the last point is %+v, promised were %+v", last, about.Delivered)
	}
	shown := map[int]float64{}
	for _, r := range c.Rounds() {
		shown[r.Version] = r.Delivered.Epsilon
	}
	for _, p := range f.Points {
		if e, is := shown[p.Rounds]; !is || e != p.Delivered.Epsilon {
			t.Errorf("after %d rounds %g is foretold, %g was accounted", p.Rounds, p.Delivered.Epsilon, e)
		}
	}
}

// TestRoundsInPieces: however many rounds a dashboard lacks, no event is long, and none is left out.
func TestRoundsInPieces(t *testing.T) {
	n := monitor.News{Rounds: make([]monitor.RoundRecord, 2*roundsAtOnce+1)}
	for i := range n.Rounds {
		n.Rounds[i].Round = uint64(i + 1)
	}
	b, err := events(n)
	ok(t, err)
	told := 0
	for block := range strings.SplitSeq(string(b), "\n\n") {
		data, is := strings.CutPrefix(block, "event: rounds\ndata: ")
		if !is {
			continue
		}
		var some []monitor.RoundRecord
		if err := json.Unmarshal([]byte(data), &some); err != nil || len(some) > roundsAtOnce {
			t.Fatalf("%d rounds in one piece, %v", len(some), err)
		}
		for _, r := range some {
			if told++; r.Round != uint64(told) {
				t.Fatalf("round %d is told as the %dth", r.Round, told)
			}
		}
	}
	if told != len(n.Rounds) {
		t.Errorf("%d of %d rounds are told", told, len(n.Rounds))
	}
}
