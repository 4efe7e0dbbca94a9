package secagg

// A Server is the server's side of one shard, from turn 2 on. It keeps one
// running sum, never a vector. Not safe for concurrent use; shards are
// independent of each other.
type Server struct{ cfg Config }

// Shard is the shard's number in the round.
func (s *Server) Shard() int { return 0 }

// Size is |U1|.
func (s *Server) Size() int { return 0 }

// Threshold is t, from the size.
func (s *Server) Threshold() int { return 0 }

// Members lists identities in roster order.
func (s *Server) Members() []ID { return nil }

// Has reports whether a device is of this shard.
func (s *Server) Has(device ID) bool { return false }

// Turn is the turn whose messages are being taken: TurnShare .. TurnReveal, then
// TurnDone.
func (s *Server) Turn() Turn { return TurnDone }

// Got reports how many devices have sent the current turn's message, and how many can.
func (s *Server) Got() (have, of int) { return 0, 0 }

// Roster is the same message for every member.
func (s *Server) Roster() *Roster { return nil }

// AddShares takes turn 2 of a device.
func (s *Server) AddShares(from ID, m *Shares) error { return errSkeleton }

// CloseSharing fixes U2. A ShardError if fewer than t devices shared.
func (s *Server) CloseSharing() error { return errSkeleton }

// Delivery is a member of U2's own message; nil for anyone else.
func (s *Server) Delivery(to ID) *Delivery { return nil }

// Add takes turn 3 of a device: adds the vector to the running sum and forgets it.
func (s *Server) Add(from ID, m *Masked) error { return errSkeleton }

// CloseCollecting fixes U3. Persist the encoding of the result before sending
// it. A ShardError if fewer than t devices masked.
func (s *Server) CloseCollecting() (*Survivors, error) { return nil, errSkeleton }

// AddConfirmation takes turn 4 of a device.
func (s *Server) AddConfirmation(from ID, m *Confirmation) error { return errSkeleton }

// CloseConfirming fixes U4. A ShardError if fewer than t devices signed.
func (s *Server) CloseConfirming() (*Confirmations, error) { return nil, errSkeleton }

// AddReveal takes turn 5 of a device of U4.
func (s *Server) AddReveal(from ID, m *Reveal) error { return errSkeleton }

// Ready reports whether t reveals are in: Unmask can be tried.
func (s *Server) Ready() bool { return false }

// Unmask rebuilds the secrets and returns the exact sum of U3's vectors, centre
// lifted into -2^(b-1)..2^(b-1)-1, one value per symbol, and closes the shard. A ShardError with
// ErrBelowThreshold or ErrShare leaves the server open for more reveals.
func (s *Server) Unmask() ([]int64, error) { return nil, errSkeleton }

// Survivors is |U3| after CloseCollecting: |sum| <= MaxSymbol*Survivors for honest devices.
func (s *Server) Survivors() int { return 0 }

// Close erases what the server holds. Idempotent.
func (s *Server) Close() {}

// InU3 reports whether a device is a survivor, after CloseCollecting.
func (s *Server) InU3(device ID) bool { return false }

// InU4 reports whether a device confirmed, after CloseConfirming.
func (s *Server) InU4(device ID) bool { return false }
