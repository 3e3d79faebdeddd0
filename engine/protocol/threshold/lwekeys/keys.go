package lwekeys

import (
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/secret"
	"github.com/lodge-mpc/lodge/engine/share"
)

// Result is one party's outcome.
type Result struct {
	Keys *lwe.Keys
	// Z and S are this party's shares, of degree t at the point of its index plus one, of the
	// coefficients of the ternary z and of the binary s.
	Z, S secret.Box[share.Vec]
}

// Wipe erases the shares.
func (r *Result) Wipe() {
	r.Z.Wipe()
	r.S.Wipe()
}

// rowsOf returns keys as rows of N words, in the order of the fields of lwe.Keys.
func (p *plan) rowsOf(k *lwe.Keys) (rows [][]uint64) {
	for _, part := range [][]uint64{k.Public, k.Switch, k.Rotation} {
		for from := 0; from < len(part); from += p.width {
			rows = append(rows, part[from:from+p.width:from+p.width])
		}
	}
	return rows
}

// isSwitch reports whether a row of the keys belongs to the switching key.
func (p *plan) isSwitch(row int) bool { return row >= 1 && row <= p.switches }
