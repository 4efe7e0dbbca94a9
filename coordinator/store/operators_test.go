package store

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// hands opens a folder's fleet at a time that the test moves.
func hands(t *testing.T) (*Fleet, *time.Time) {
	t.Helper()
	dir := folder(t)
	s, err := Open(dir, Options{Task: "t"})
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	f, err := OpenFleet(dir)
	ok(t, err)
	t.Cleanup(func() { ok(t, f.Close()) })
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	f.now = func() time.Time { return now }
	return f, &now
}

func TestOperators(t *testing.T) {
	f, now := hands(t)
	ada, token, err := f.AddOperator("Ada", RoleOperator, time.Hour)
	ok(t, err)
	if got, err := f.OperatorByToken(token); err != nil || got != ada {
		t.Errorf("%+v, %v, want %+v", got, err, ada)
	}
	for _, other := range []string{"", "Ada", token[:len(token)-1], token + "0", strings.ToUpper(token), tokenPrefix + strings.Repeat("0", 64)} {
		if got, err := f.OperatorByToken(other); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q shows %+v, %v", other, got, err)
		}
	}
	*now = now.Add(time.Hour)
	if _, err := f.OperatorByToken(token); !errors.Is(err, ErrUnknown) {
		t.Errorf("an expired token: %v", err)
	}
	*now = now.Add(-time.Minute)
	ok(t, f.As("Grace").RevokeOperator("Ada"))
	if _, err := f.OperatorByToken(token); !errors.Is(err, ErrUnknown) {
		t.Errorf("a revoked token: %v", err)
	}
	if _, _, err := f.AddOperator("Ada", RoleViewer, time.Hour); !errors.Is(err, ErrRequest) {
		t.Errorf("a name that was given: %v", err)
	}
	if err := f.RevokeOperator("Alan"); !errors.Is(err, ErrUnknown) {
		t.Errorf("nobody is revoked: %v", err)
	}
	for _, bad := range []struct {
		name string
		role Role
		life time.Duration
	}{{"", RoleViewer, time.Hour}, {" Ada", RoleViewer, time.Hour}, {"a\nb", RoleViewer, time.Hour}, {strings.Repeat("a", 65), RoleViewer, time.Hour},
		{ByFolder, RoleViewer, time.Hour}, {"Bob", "root", time.Hour}, {"Bob", RoleViewer, time.Second}, {"Bob", RoleViewer, 11 * 365 * 24 * time.Hour}} {
		if _, _, err := f.AddOperator(bad.name, bad.role, bad.life); !errors.Is(err, ErrRequest) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	all, err := f.Operators()
	ok(t, err)
	if len(all) != 1 || !all[0].Revoked || all[0].Name != "Ada" {
		t.Errorf("operators %+v", all)
	}
	acts, head, err := f.Acts()
	ok(t, err)
	if len(acts) != 2 || acts[0].By != ByFolder || acts[0].Subject != "Ada as operator" || acts[1].By != "Grace" || acts[1].Act != "revoke operator" || head == [32]byte{} {
		t.Errorf("acts %+v", acts)
	}
}

func TestRolesAllow(t *testing.T) {
	for i, have := range Roles {
		for j, need := range Roles {
			if have.Allows(need) != (i >= j) {
				t.Errorf("%s allows %s: %v", have, need, have.Allows(need))
			}
		}
	}
	if Role("root").Allows("") || Role("").Allows(RoleViewer) || Role("").Allows("") || RoleAdmin.Allows("root") {
		t.Error("an unknown role allows something")
	}
}

// TestActsAreChained: what is changed in the file behind the program's back shows, and the
// program itself cannot.
func TestActsAreChained(t *testing.T) {
	f, _ := hands(t)
	for range 3 {
		_, _, err := f.Invite("", 1, time.Hour)
		ok(t, err)
	}
	ok(t, f.Revoke(2))
	if err := f.Revoke(9); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
	acts, _, err := f.Acts()
	ok(t, err)
	if len(acts) != 4 {
		t.Fatalf("%d acts, want 4: what failed is no act", len(acts))
	}
	for _, forbidden := range []string{`UPDATE act SET body = body`, `DELETE FROM act WHERE seq = 4`} {
		if _, err := f.db.Exec(forbidden); err == nil {
			t.Errorf("%s was done", forbidden)
		}
	}
	_, err = f.db.Exec(`DROP TRIGGER act_update; DROP TRIGGER act_delete`)
	ok(t, err)
	for _, rewritten := range []string{
		`UPDATE act SET body = replace(body, '"revoke', '"invoke') WHERE seq = 4`,
		`UPDATE act SET body = (SELECT body FROM act WHERE seq = 4), hash = (SELECT hash FROM act WHERE seq = 4) WHERE seq = 3`,
		`DELETE FROM act WHERE seq = 1`,
	} {
		_, err := f.db.Exec(`SAVEPOINT try; ` + rewritten)
		ok(t, err)
		if _, _, err := f.Acts(); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", rewritten, err)
		}
		_, err = f.db.Exec(`ROLLBACK TO try; RELEASE try`)
		ok(t, err)
	}
}
