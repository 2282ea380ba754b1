package waitroom

import (
	"slices"
	"sort"
)

// How much of a line a peek returns: all of it up to exactRanks; of a longer
// one the first headRanks and rankSamples of the rest.
const (
	exactRanks  = 4096
	headRanks   = 200
	rankSamples = 256
)

// rank is how many wait before somebody, and whether that is counted or
// estimated.
type rank struct {
	ahead int
	exact bool
}

// ranks is a line's digest: known ranks with their sequences, both rising.
// Between two known ones a rank is estimated.
type ranks struct {
	rank []int
	seq  []int64
	head int // ranks 0 … head−1 are all known
}

// ranksOf reads peek.lua's digest.
func ranksOf(first, sampled reply) ranks {
	d := ranks{head: len(first), rank: make([]int, 0, len(first)+len(sampled)/2), seq: make([]int64, 0, len(first)+len(sampled)/2)}
	for i := range first {
		d.rank, d.seq = append(d.rank, i), append(d.seq, first.int64(i))
	}
	for i := 0; i+1 < len(sampled); i += 2 {
		d.rank, d.seq = append(d.rank, sampled.int(i)), append(d.seq, sampled.int64(i+1))
	}
	return d
}

// lacks reports whether a sequence is certainly not in line: it is not where
// all of them are known.
func (d ranks) lacks(seq int64) bool {
	i, found := slices.BinarySearch(d.seq, seq)
	return !found && (i < d.head || d.head == len(d.seq))
}

// of is the rank of a sequence: the one function that turns a sequence into a
// place for watchers.
func (d ranks) of(seq int64) rank {
	i := sort.Search(len(d.seq), func(i int) bool { return d.seq[i] >= seq })
	switch {
	case i == len(d.seq):
		// Behind all that the digest knows: joined since, or alone.
		if i == 0 {
			return rank{ahead: 0, exact: true}
		}
		return rank{ahead: d.rank[i-1] + 1, exact: d.head == len(d.rank)}
	case d.seq[i] == seq || i < d.head || i == 0:
		return rank{ahead: d.rank[i], exact: true}
	}
	before, after := d.rank[i-1], d.rank[i]
	if after == before+1 {
		return rank{ahead: after, exact: true}
	}
	share := float64(seq-d.seq[i-1]) / float64(d.seq[i]-d.seq[i-1])
	ahead := before + int(share*float64(after-before))
	return rank{ahead: min(max(ahead, before+1), after), exact: false}
}
