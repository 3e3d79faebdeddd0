package main

import (
	"cmp"
	"hash/fnv"
	"path"
	"slices"
	"strings"
)

// share picks count of the mutations, or all when count is 0, and gives the names of the others.
// Successive seeds take successive shares of one fixed order, so that as many seeds as there are
// shares go through all. The order keeps the mutations of a package together, because most of the
// time of a share goes into building test binaries.
func share(all []mutation, count int, seed uint64) (chosen []mutation, left []string) {
	if count <= 0 || count >= len(all) {
		return all, nil
	}
	ranks := map[string]uint64{}
	for _, m := range all {
		ranks[path.Dir(m.File)] = rank(path.Dir(m.File))
	}
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b mutation) int {
		return cmp.Or(cmp.Compare(ranks[path.Dir(a.File)], ranks[path.Dir(b.File)]), strings.Compare(a.Name, b.Name))
	})
	shares := uint64((len(order) + count - 1) / count)
	start := int(seed%shares) * count
	taken := map[string]bool{}
	for _, m := range order[start:min(start+count, len(order))] {
		taken[m.Name] = true
	}
	for _, m := range all { // in the order of the sources
		if taken[m.Name] {
			chosen = append(chosen, m)
		} else {
			left = append(left, m.Name)
		}
	}
	return chosen, left
}

// rank mixes the packages, so that successive shares come from all parts of the module.
func rank(dir string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(dir))
	return h.Sum64()
}
