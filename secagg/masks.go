package secagg

// masks is the set of masks that is still in a shard's running sum. It never holds the self-mask
// and the mask key of the same device, so no single vector can be unmasked with it.
type masks struct {
	dim, width int
	roster     Hash
	survivors  Set    // U3
	selves     []byte // the self-masks' keys, in roster order
	dropped    Set    // U2 without U3
	private    []byte // their mask keys, in roster order
	peers      []byte // public mask keys of the survivors, where anybody dropped
}

// sum adds the masks up modulo 2^Width. This is the expensive part of Unmask.
func (m *masks) sum() []uint32 {
	var plus, minus []maskKey
	defer func() { clear(plus); clear(minus) }()
	for at := 0; at < len(m.selves); at += maskKeyLen {
		plus = append(plus, maskKey(m.selves[at:at+maskKeyLen]))
	}
	at := 0
	for i := range 8 * len(m.dropped) {
		if !m.dropped.Has(i) {
			continue
		}
		k := [scalarSize]byte(m.private[at : at+scalarSize])
		at += scalarSize
		plus, minus = m.pairMasks(i, x25519Private(&k), plus, minus)
	}
	sum := make([]uint32, m.dim)
	addMasks(sum, plus, minus, m.width)
	for i := range sum {
		sum[i] &= ringMask(m.width)
	}
	return sum
}

// pairMasks appends the masks that survivors added with a view to device i,
// which dropped. A survivor before i added its mask, one after i took it off.
func (m *masks) pairMasks(i int, priv dhKey, plus, minus []maskKey) (p, n []maskKey) {
	peers := m.peers
	for v := range 8 * len(m.survivors) {
		if !m.survivors.Has(v) {
			continue
		}
		k, err := pairMaskKey(priv, peers[:maskKeySize], &m.roster, i, v)
		if err != nil {
			panic(err) // keys of low order are in no roster
		}
		peers = peers[maskKeySize:]
		if v < i {
			plus = append(plus, k)
		} else {
			minus = append(minus, k)
		}
	}
	return plus, minus
}

// erase overwrites the keys with zeros.
func (m *masks) erase() {
	clear(m.selves)
	clear(m.private)
}
