package config

import "strings"

// Nearest returns the known name that name was most likely meant to be, or "".
// Letter case does not count. At least one letter must be right, and a third
// of the name, two letters in a short one, may be wrong.
func Nearest(name string, known []string) string {
	best, bound := "", 1+min(len(name)-1, max(2, len(name)/3))
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bound {
			best, bound = k, d
		}
	}
	return best
}

// distance returns the number of bytes to insert, delete or replace to turn a into b (Levenshtein). A name
// too long to be a typing error is as far as it is long: a document may have keys of any size.
func distance(a, b string) int {
	if len(a) > 2*len(b)+8 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
