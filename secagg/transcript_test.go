package secagg

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
)

type transcript struct {
	Seed     string `json:"seed"`
	LastTurn []Turn `json:"last_turn"`
	Config   struct {
		Dim        int    `json:"dim"`
		Width      int    `json:"width"`
		MaxSymbol  int    `json:"max_symbol"`
		ShardMax   int    `json:"shard_max"`
		ShardMin   int    `json:"shard_min"`
		CorruptPPM uint32 `json:"corrupt_ppm"`
		BreachBits int    `json:"breach_bits"`
		SemiHonest bool   `json:"semi_honest"`
		Identified bool   `json:"identified"`
		Logged     bool   `json:"logged"`
		Dealt      bool   `json:"dealt"`
	} `json:"config"`
	ConfigEncoding string `json:"config_encoding"`
	Plan           string `json:"plan"`
	Devices        []struct {
		Advertise string  `json:"advertise"`
		Symbols   []int32 `json:"symbols"`
	} `json:"devices"`
	Shards []struct {
		Members       []int             `json:"members"`
		Threshold     int               `json:"threshold"`
		Roster        string            `json:"roster"`
		RosterHash    string            `json:"roster_hash"`
		Shares        map[string]string `json:"shares"`
		Delivery      map[string]string `json:"delivery"`
		Masked        map[string]string `json:"masked"`
		Survivors     string            `json:"survivors"`
		Confirmation  map[string]string `json:"confirmation"`
		Confirmations string            `json:"confirmations"`
		Reveal        map[string]string `json:"reveal"`
		Sum           []int64           `json:"sum"`
	} `json:"shards"`
}

// TestTranscript plays rounds with fixed randomness and holds every message, byte
// for byte, and the unmasked sum against testdata/transcript.json, which
// testdata/transcript.py computed without this package.
func TestTranscript(t *testing.T) {
	data, err := os.ReadFile("testdata/transcript.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []transcript
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 3 {
		t.Fatalf("%d transcripts", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Seed, func(t *testing.T) { playTranscript(t, &c) })
	}
}

func playTranscript(t *testing.T, c *transcript) {
	v := c.Config
	cfg := Config{Dim: v.Dim, Width: v.Width, MaxSymbol: v.MaxSymbol, ShardMax: v.ShardMax, ShardMin: v.ShardMin,
		CorruptPPM: v.CorruptPPM, BreachBits: v.BreachBits, SemiHonest: v.SemiHonest, Identified: v.Identified, Logged: v.Logged, Dealt: v.Dealt, Suite: SuiteX25519}
	r := newRound(t, c.Seed, cfg, len(c.LastTurn))
	same := func(what string, want string, got []byte) {
		t.Helper()
		if hex.EncodeToString(got) != want {
			t.Fatalf("%s:\n got %x\nwant %s", what, got, want)
		}
	}
	bytesOf := func(m wireMessage) []byte { b, _ := m.AppendBinary(nil); return b }
	same("config", c.ConfigEncoding, bytesOf(r.cfg))
	same("plan hash", c.Plan, r.plan[:])
	for i, d := range r.devices {
		d.lastTurn = c.LastTurn[i]
		if !slices.Equal(d.symbols, c.Devices[i].Symbols) {
			t.Fatalf("device %d draws other symbols", i)
		}
	}
	r.key()
	for i, d := range r.devices {
		same(fmt.Sprintf("advertise %d", i), c.Devices[i].Advertise, d.c.Resend(TurnAdvertise))
	}
	if len(r.shards) != len(c.Shards) {
		t.Fatalf("%d shards, want %d", len(r.shards), len(c.Shards))
	}
	for k, s := range r.shards {
		want := &c.Shards[k]
		if s.Threshold() != want.Threshold {
			t.Fatalf("shard %d: threshold %d, want %d", k, s.Threshold(), want.Threshold)
		}
		for i, id := range s.Members() {
			if r.devices[want.Members[i]].id != id {
				t.Fatalf("shard %d: another device at %d", k, i)
			}
		}
		same("roster", want.Roster, bytesOf(s.Roster()))
		hash := s.Roster().Hash()
		same("roster hash", want.RosterHash, hash[:])

		r.must(r.share(s))
		deliveries := map[string]string{}
		for i, id := range s.Members() {
			if r.byID[id].lastTurn >= TurnMask {
				deliveries[fmt.Sprint(i)] = hex.EncodeToString(bytesOf(s.Delivery(id)))
			}
		}
		sv, err := r.mask(s)
		r.must(err)
		cs, err := r.confirm(s, sv)
		r.must(err)
		r.reveal(s, cs)
		same("survivors", want.Survivors, bytesOf(sv))
		same("confirmations", want.Confirmations, bytesOf(cs))
		sent := func(turn Turn) map[string]string {
			out := map[string]string{}
			for i, id := range s.Members() {
				if d := r.byID[id]; d.lastTurn >= turn {
					out[fmt.Sprint(i)] = hex.EncodeToString(d.sent(turn))
				}
			}
			return out
		}
		for _, x := range []struct {
			what      string
			want, got map[string]string
		}{
			{"shares", want.Shares, sent(TurnShare)}, {"delivery", want.Delivery, deliveries}, {"masked", want.Masked, sent(TurnMask)},
			{"confirmation", want.Confirmation, sent(TurnConfirm)}, {"reveal", want.Reveal, sent(TurnReveal)},
		} {
			if len(x.got) != len(x.want) || len(x.got) < s.Threshold() {
				t.Fatalf("shard %d: %d messages %s, want %d", k, len(x.got), x.what, len(x.want))
			}
			for i := range x.want {
				if x.got[i] != x.want[i] {
					t.Fatalf("shard %d, device %s, %s:\n got %s\nwant %s", k, i, x.what, x.got[i], x.want[i])
				}
			}
		}
		sum, err := s.Unmask()
		r.must(err)
		if !slices.Equal(sum, want.Sum) {
			t.Fatalf("shard %d: sum %v, want %v", k, sum, want.Sum)
		}
	}
}
