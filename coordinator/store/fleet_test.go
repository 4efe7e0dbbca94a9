package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/starling-fl/starling/dp"
)

func key(n byte) [32]byte { return [32]byte{n, 0xab, 0xcd, 0xef} }

// TestHostileInvitation: an invitation lets in as many new devices as it has uses,
// until it expires or is revoked, and who has enrolled by it comes back.
func TestHostileInvitation(t *testing.T) {
	dir, now := folder(t), time.Unix(1e9, 0)
	opt := options()
	opt.Now = func() time.Time { return now }
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f, err := OpenFleet(dir) // beside the coordinator
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.now = opt.Now
	once, secret, err := f.Invite("a laptop", 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	twice, _, err := f.Invite("two phones", 2, 2*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.SecretsFor(key(1)); err != nil || len(got) != 2 || string(got[0].Secret) != string(secret) {
		t.Fatalf("good invitations %v, %v", got, err)
	}
	for range 3 { // coming again takes no further use
		if _, err := s.Enrol(key(1), once.ID); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Enrol(key(2), once.ID); !errors.Is(err, ErrInvitation) {
		t.Errorf("a second device by a one-time invitation: %v", err)
	}
	if got, err := s.SecretsFor(key(1)); err != nil || len(got) != 1 || got[0].ID != once.ID {
		t.Errorf("the secret of one that has enrolled: %v, %v", got, err)
	}
	if got, err := s.SecretsFor(key(2)); err != nil || len(got) != 1 || got[0].ID != twice.ID {
		t.Errorf("secrets for a new one: %v, %v", got, err)
	}
	now = now.Add(3 * time.Hour)
	if _, err := s.Enrol(key(2), twice.ID); !errors.Is(err, ErrInvitation) {
		t.Errorf("by an expired invitation: %v", err)
	}
	third, _, err := f.Invite("", 9, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Revoke(third.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enrol(key(2), third.ID); !errors.Is(err, ErrInvitation) {
		t.Errorf("by a revoked invitation: %v", err)
	}
	if err := f.Revoke(77); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoking none: %v", err)
	}
	list, err := f.Invitations()
	if err != nil || len(list) != 3 || list[0].Used != 1 || list[1].Used != 0 || !list[2].Revoked || list[0].Note != "a laptop" {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestHostileDeviceStaysOut: an exclusion is kept, a pardon ends it, and who was
// not seen for long is in no draw until it comes again.
func TestHostileDeviceStaysOut(t *testing.T) {
	dir, now := folder(t), time.Unix(1e9, 0)
	opt := options()
	opt.Now = func() time.Time { return now }
	s, err := Open(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	for n := range byte(3) {
		if added, err := s.Enrol(key(n), 0); err != nil || !added {
			t.Fatal(added, err)
		}
	}
	if err := errors.Join(s.Strike(key(1), 4, "it dealt garbage", true), s.Strike(key(2), 4, "silent", false), s.Strike(key(2), 4, "silent", false), s.Close()); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(dir, opt); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Enrol(key(1), 0); !errors.Is(err, ErrExcluded) || !strings.Contains(err.Error(), "garbage") {
		t.Errorf("an excluded device came in: %v", err)
	}
	now = now.Add(48 * time.Hour)
	if _, err := s.Enrol(key(2), 0); err != nil {
		t.Fatal(err)
	}
	out, err := s.NotDrawn(now.Add(-time.Hour))
	if why, absent := out[key(0)]; err != nil || len(out) != 2 || !strings.Contains(out[key(1)], "garbage") || !absent || why != "" {
		t.Errorf("out are %v, %v", out, err)
	}
	if n, err := s.Strikes(); err != nil || n[key(1)] != 1 || n[key(2)] != 1 {
		t.Errorf("strikes %v, %v", n, err)
	}
	f, err := OpenFleet(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	name := fmt.Sprintf("%x", key(1))
	for _, bad := range []string{"", "01", "01abcd%_", "01abcdee", name + "00"} {
		if _, err := f.Pardon(bad); !errors.Is(err, ErrUnknown) {
			t.Errorf("pardon of %q: %v", bad, err)
		}
	}
	if id, err := f.Pardon(strings.ToUpper(name[:8])); err != nil || id != name {
		t.Errorf("pardon of %s: %v", id, err)
	}
	if _, err := s.Enrol(key(1), 0); err != nil {
		t.Errorf("a pardoned device: %v", err)
	}
	if _, err := f.Ban("02abcdef", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enrol(key(2), 0); !errors.Is(err, ErrExcluded) {
		t.Errorf("a banned device: %v", err)
	}
	devices, err := f.Devices()
	if err != nil || len(devices) != 3 || devices[1].Excluded != "" || devices[1].Strikes != 0 || devices[2].Excluded == "" || devices[2].Strikes != 1 {
		t.Errorf("%+v, %v", devices, err)
	}
	if _, err := OpenFleet(folder(t)); !errors.Is(err, ErrNoStore) {
		t.Errorf("a folder without a store: %v", err)
	}
}

// TestHostileReaderOfTheFolder: state is written for its owner alone, and a file of
// it that was open to others is not gone on with.
func TestHostileReaderOfTheFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := filepath.Join(folder(t), "state")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir)
	commit(t, s, 1)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) < 3 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	for _, mode := range []os.FileMode{0o640, 0o602} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir, options()); !errors.Is(err, ErrMode) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// TestHostileEditOfThePromise: what the ledger promises is hashed into its chain.
func TestHostileEditOfThePromise(t *testing.T) {
	for _, edit := range []string{
		`UPDATE meta SET value = 'true' WHERE key = 'private'`, `UPDATE meta SET value = '0.5' WHERE key = 'delta'`,
		`UPDATE meta SET value = 'another' WHERE key = 'task'`, `DELETE FROM meta WHERE key = 'promise'`,
	} {
		dir, opt := folder(t), options()
		opt.NotPrivate = true
		s, err := Open(dir, opt)
		if err != nil {
			t.Fatal(err)
		}
		commit(t, s, 1)
		if l, err := ReadLedger(dir); err != nil || l.Private {
			t.Fatalf("%+v, %v", l, err)
		}
		if _, err := s.db.Exec(edit); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLedger(dir); !errors.Is(err, ErrLedger) {
			t.Errorf("%s: %v", edit, err)
		}
	}
}

// TestHostileSeededRun: a run whose coins came from anywhere but the system's
// generator is never shown as private, whatever its file says of itself.
func TestHostileSeededRun(t *testing.T) {
	for generator, private := range map[string]bool{"crypto/rand": true, "injected": false, "": false} {
		dir := folder(t)
		s := open(t, dir)
		cert := dp.Certificate{Method: dp.MethodPoisson, Generator: generator, Rate: 1, Population: 24}
		id, err := s.BeginRound(Round{Rank: 1, Certificate: cert})
		if err != nil {
			t.Fatal(err)
		}
		ev := event(id, dp.KindCharged)
		ev.Certificate = cert.Hash()
		if _, err := s.Charge(ev, Note{}); err != nil {
			t.Fatal(err)
		}
		if l, err := s.Ledger(); err != nil || l.Private != private {
			t.Errorf("coins from %q: private %t, %v", generator, l.Private, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
