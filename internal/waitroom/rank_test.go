package waitroom

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRanks holds the digest against counting: exact where it says so, and
// elsewhere between the right bounds and never falling behind a neighbour.
func TestRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SliceOfNDistinct(rapid.Int64Range(1, 100_000), 0, 600, rapid.ID[int64]).Draw(t, "line")
		slices.Sort(line)
		head := rapid.IntRange(1, 50).Draw(t, "head")
		samples := rapid.IntRange(1, 40).Draw(t, "samples")
		d := digestOf(line, head, samples)
		last := 0
		for want, seq := range line {
			got := d.of(seq)
			if got.exact && got.ahead != want {
				t.Fatalf("sequence %d: rank %d said to be exact, want %d", seq, got.ahead, want)
			}
			if want < head && !got.exact {
				t.Fatalf("sequence %d: rank %d of the head is an estimate", seq, want)
			}
			if got.ahead < last {
				t.Fatalf("sequence %d: rank %d comes before its neighbour's %d", seq, got.ahead, last)
			}
			step := max(1, (len(line)-head+samples-1)/samples)
			if diff := got.ahead - want; diff > step || diff < -step {
				t.Fatalf("sequence %d: rank %d, want %d within %d", seq, got.ahead, want, step)
			}
			last = got.ahead
			if d.lacks(seq) {
				t.Fatalf("sequence %d is in line and said not to be", seq)
			}
			if want < head && !slices.Contains(line, seq-1) && !d.lacks(seq-1) {
				t.Fatalf("sequence %d of the head is not in line, and not said so", seq-1)
			}
		}
		if len(line) <= head && !d.lacks(100_001) {
			t.Fatal("nobody is behind the last of a line known whole, and that is not said")
		}
		if n := len(line); n > 0 {
			if got := d.of(line[n-1] + 1); got.ahead != n {
				t.Fatalf("behind the last of %d: rank %d", n, got.ahead)
			}
		}
	})
}

// digestOf is what peek.lua makes of a line.
func digestOf(line []int64, head, samples int) ranks {
	d := ranks{head: min(head, len(line))}
	for i := range d.head {
		d.rank, d.seq = append(d.rank, i), append(d.seq, line[i])
	}
	if len(line) > head {
		step := max(1, (len(line)-head+samples-1)/samples)
		for i := head; i < len(line); i += step {
			d.rank, d.seq = append(d.rank, i), append(d.seq, line[i])
		}
		if last := len(line) - 1; d.rank[len(d.rank)-1] != last {
			d.rank, d.seq = append(d.rank, last), append(d.seq, line[last])
		}
	}
	return d
}
