package party

import (
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	linearv1 "github.com/lodge-mpc/lodge/proto/lodge/linear/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/store/disk"
)

// newWork lists the methods that are rejected while a disk is low. Fetching reserved tuples,
// releasing reservations and revoking tuples stay available: they need little space, and free some.
var newWork = map[string]bool{
	keygenv1.KeygenService_Start_FullMethodName:                   true,
	triplesv1.TriplesService_Start_FullMethodName:                 true,
	popkv1.PopkService_Start_FullMethodName:                       true,
	thresholdv1.ThresholdService_Start_FullMethodName:             true,
	thresholdv1.ThresholdService_Decrypt_FullMethodName:           true,
	thresholdv1.ThresholdService_ApproveDecryption_FullMethodName: true,
	decryptionv1.DecryptionService_DecryptShare_FullMethodName:    true,
	tuplesv1.TuplesService_Propose_FullMethodName:                 true,
	multikeyv1.KeysService_MakeKeys_FullMethodName:                true,
	//lodge:check party/disk/submit [run=TestLowDiskRefusesNewWork] a party whose disk fills accepts multi-key evaluations
	multikeyv1.EvaluationService_Submit_FullMethodName: true,
	linearv1.LinearService_Multiply_FullMethodName:     true,
	linearv1.LinearService_Ask_FullMethodName:          true,
	linearv1.LinearService_Answer_FullMethodName:       true,
}

// watchDisks watches the file systems that a party writes to.
func watchDisks(f *config.PartyFile) *disk.Watch {
	volumes := []disk.Volume{{Name: disk.Audit, Dir: f.AuditDir}}
	if f.Vault.Dir != "" {
		volumes = append(volumes, disk.Volume{Name: disk.Store, Dir: f.Vault.Dir})
	}
	return disk.New(uint64(f.Disk.MinFree), volumes...)
}

// usable reports whether this party is ready: its store is open, without fault or quarantine, its
// audit log can be written, and no disk is low.
func (p *party) usable() bool {
	reason, err := p.vault.Quarantined()
	return err == nil && reason == "" && p.vault.Healthy() == nil && p.audit.Fault() == nil && p.disks.Low() == nil
}
