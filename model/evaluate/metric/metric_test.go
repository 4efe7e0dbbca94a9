package metric

import "testing"

// The rank that the fleet found best: of the last half of rounds, by how little noise was in
// what was said, by accuracy where there are labels, else by loss.
func TestBestOf(t *testing.T) {
	said := func(rank, version int, accuracy, loss, noise float64) Fleet {
		return Fleet{Rank: rank, Version: version, Accuracy: Noisy{accuracy, noise / 2}, Loss: Noisy{loss, noise}}
	}
	all := []Fleet{
		said(1, 0, 1, 0, 0.1), // before anything was learnt: it does not count
		said(1, 5, 0.6, 1, 0.1), said(2, 6, 0.7, 0.9, 0.1), said(2, 7, 0, 3, 100), said(4, 8, 0.65, 0.8, 0.1),
	}
	best, ranks := BestOf(all, 10)
	if best != 2 || len(ranks) != 3 || ranks[1].Rank != 2 || ranks[1].Accuracy < 0.69 {
		t.Errorf("rank %d of %+v", best, ranks)
	}
	for i := range all {
		all[i].Accuracy = Noisy{}
	}
	if best, ranks = BestOf(all, 10); best != 4 {
		t.Errorf("by loss rank %d of %+v", best, ranks)
	}
	if best, ranks = BestOf(nil, 10); best != 0 || len(ranks) != 0 {
		t.Errorf("of nothing rank %d of %+v", best, ranks)
	}
	exact := []Fleet{{Rank: 3, Version: 9, Loss: Noisy{Mean: 1}}, {Rank: 1, Version: 9, Loss: Noisy{Mean: 0.5}}}
	if best, _ = BestOf(exact, 10); best != 1 {
		t.Errorf("without noise rank %d", best)
	}
}
