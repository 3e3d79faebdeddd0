package bench

// goal is the project's limit for a result: an upper or a lower one.
type goal struct{ most, least float64 }

// goals are those that are not given where a result is measured, for the default numbers of
// parties. Those of scalar triples with S14-64 are from before products were sacrificed, which
// costs about half as much again.
var goals = map[string]goal{
	"mul_s14_64":                         {most: 10},
	"matmul_d128_s14_64":                 {most: 4},
	"matmul_d128_s14_64_plain":           {most: 25},
	"matmul_d128_s14_64_speedup_2_cores": {least: 1.8},
	"evk_wire_bytes_d128":                {most: 0.36e9},

	"scalar_triples_per_cpu_second":        {least: 60000},
	"scalar_bytes_per_triple":              {most: 700},
	"matrix_d128_cpu_seconds_per_triple":   {most: 0.25},
	"matrix_d128_bytes_per_triple":         {most: 10.5e6},
	"peak_rss_scalar":                      {most: 0.6e9},
	"peak_rss_matrix_d128":                 {most: 3e9},
	"scalar_growth_p128_p4096":             {most: 1.5},
	"scalar_first_batch_seconds_3_parties": {most: 2},
	"scalar_next_batch_seconds_3_parties":  {most: 2},

	"scalar_triples_per_cpu_second_s14_32":      {least: 30000},
	"scalar_bytes_per_triple_s14_32":            {most: 1400},
	"scalar_sacrifice_cpu_s14_32":               {most: 90},
	"matrix_d128_cpu_seconds_per_triple_s14_32": {most: 0.4},
	"matrix_d128_bytes_per_triple_s14_32":       {most: 16e6},
	"matrix_d128_sacrifice_cpu_s14_32":          {most: 8},
	"matrix_d128_sacrifice_bytes_s14_32":        {most: 3},
	"keygen_d128_seconds_3_parties_s14_32":      {most: 120},
	"keygen_d128_bytes_3_parties_s14_32":        {most: 1.5e9},
	"keygen_d128_peak_rss_3_parties_s14_32":     {most: 3e9},

	"multikey_nand_k4_speedup_2_cores":  {least: 1.8},
	"multikey_nand_k8_speedup_2_cores":  {least: 1.8},
	"multikey_nand_k16_speedup_2_cores": {least: 1.8},
	"multikey_nand_k32_speedup_2_cores": {least: 1.8},
}

// AddGoals adds goals to the results that do not have one yet. The ratio is 1 or less if the goal
// is met.
func AddGoals(list []Result) {
	for i, r := range list {
		g, ok := goals[r.Name]
		if !ok || r.Want != nil {
			continue
		}
		if g.least > 0 {
			ratio := g.least / r.Value
			list[i].Want, list[i].WantRatio = &g.least, &ratio
			continue
		}
		list[i] = r.Wanted(g.most)
	}
}
