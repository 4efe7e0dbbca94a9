package model

// Index maps each value of the vector at rank b to its place in the vector at
// r_max: an optimizer keeps its state there. It has Size(b) entries, in
// ascending order, and refuses a rank outside 0..r_max.
func (l *Layout) Index(b int) ([]int, error) {
	if err := l.CheckRank(b); err != nil {
		return nil, err
	}
	index := make([]int, 0, l.Size(b))
	run := func(from, n int) {
		for i := range n {
			index = append(index, from+i)
		}
	}
	for _, s := range l.Spans(l.Method.RMax) {
		switch s.Kind {
		case KindA: // the first b rows
			run(s.Offset, b*s.Shape[1])
		case KindB: // the first b columns
			for row := range s.Shape[0] {
				run(s.Offset+row*s.Shape[1], b)
			}
		default:
			run(s.Offset, s.Len)
		}
	}
	return index, nil
}
