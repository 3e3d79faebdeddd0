package main

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// share picks count of the mutations, or all when count is 0, and gives the names of the others. Successive seeds take
// successive shares of one fixed order, so that so many seeds as there are shares go through all.
func share(all []mutation, count int, seed uint64) (chosen []mutation, left []string) {
	if count <= 0 || count >= len(all) {
		return all, nil
	}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b mutation) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
	shares := uint64((len(order) + count - 1) / count)
	start := int(seed%shares) * count
	taken := map[string]bool{}
	for _, m := range order[start:min(start+count, len(order))] {
		taken[m.Name] = true
	}
	for _, m := range all { // in the order of the table
		if taken[m.Name] {
			chosen = append(chosen, m)
		} else {
			left = append(left, m.Name)
		}
	}
	return chosen, left
}

// rank mixes the areas of the table, so that a share has something of each.
func rank(name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum64()
}
